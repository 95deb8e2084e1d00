import type { DevicePassword } from '../password/device-source.ts'
import type { Later } from '../system/later.ts'
import { reportHandOut } from './handout.ts'
import type {
  AllIssued,
  HandedOut,
  HandOut,
  Handout,
  IssuedTokens,
  LogIn,
  StateDependencies,
  Unavailable,
} from './state.ts'

/**
 * Keeps track of the passwords to which tokens are bound. `agreed`: tokens may be issued for the passwords of this generation, under this
 * epoch. Otherwise no token may be issued: another sidecar has published other passwords (`differs`), or that cannot be found out.
 */
export interface Agreement {
  present(): Promise<
    | { readonly kind: 'agreed'; readonly generation: number; readonly epoch: string }
    | { readonly kind: 'differs' | 'unknown' }
  >
  /** Finds out about a later epoch. */
  settle(): Promise<unknown>
}

interface Dependencies extends Pick<StateDependencies, 'hasName' | 'log' | 'metrics'> {
  readonly password: Pick<DevicePassword, 'generation' | 'has' | 'verify'>
  readonly agreement: Agreement
  /** `stale`: a later epoch has begun, so the token would be void. */
  readonly tokens: {
    issue(
      client: string,
      grantType: string,
      name: string,
      epoch: string,
    ): Later<IssuedTokens | Unavailable | 'stale'>
    handOut(handout: Handout, epoch: string): Later<HandedOut | AllIssued | Unavailable | 'stale'>
  }
}

/** The most attempts of one login or handout: each change of the password meanwhile costs one. */
const ATTEMPTS = 4

/**
 * Issues tokens to right passwords and to operators. A token is bound to the passwords of one generation (C8): if these change while a
 * login is verified, or before its tokens are issued, the login begins anew.
 */
export function createIssuing(deps: Dependencies) {
  const { hasName, password, agreement, tokens } = deps

  async function repeat<T>(attempt: () => Promise<T | 'again'>): Promise<T | Unavailable> {
    for (let count = 0; count < ATTEMPTS; count++) {
      const result = await attempt()
      if (result !== 'again') return result
    }
    return 'unavailable'
  }

  /** @param of the generation that was verified; undefined: the present one */
  async function issueUnder<T>(
    of: number | undefined,
    issue: (epoch: string) => Later<T | 'stale'>,
  ): Promise<T | Unavailable | 'again'> {
    const present = await agreement.present()
    if (present.kind !== 'agreed') return 'unavailable'
    const { generation, epoch } = present
    if (generation !== password.generation || generation !== (of ?? generation)) return 'again'
    const issued = await issue(epoch)
    if (issued !== 'stale') return issued
    await agreement.settle().catch(() => {})
    return 'again'
  }

  const logIn: LogIn = (candidate, request, grantType, username) =>
    repeat(async () => {
      const { client } = request
      // Without an agreement, a hash would be wasted.
      if ((await agreement.present()).kind !== 'agreed') return 'unavailable'
      const verified = await password.verify(candidate, client.key, username, (left) => request.onEnd(left))
      if ('unavailable' in verified) return verified
      const { result, generation, name = '' } = verified
      if (result !== 'right') return generation === password.generation ? result : 'again'
      return issueUnder(generation, (epoch) =>
        hasName(name) ? tokens.issue(client.address, grantType, name, epoch) : 'wrong',
      )
    })

  const handOut: HandOut = (handout) =>
    repeat(() =>
      issueUnder(undefined, async (epoch) => {
        const { name } = handout
        if (!hasName(name)) return 'unknown-name'
        if (!password.has(name)) return 'no-password'
        const handedOut = await tokens.handOut(handout, epoch)
        if (typeof handedOut === 'object' && 'accessToken' in handedOut)
          reportHandOut(deps, handout, handedOut)
        return handedOut
      }),
    )

  return { logIn, handOut }
}
