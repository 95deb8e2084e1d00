import type { Exchange } from '../http/exchange.ts'
import type { UpstreamFailure } from '../http/refusal.ts'
import type { DevicePassword } from '../password/device-source.ts'
import type { Later } from '../system/later.ts'
import type { Unavailable } from './backend.ts'
import { type AllIssued, type HandedOut, type Handout, reportHandOut } from './handout.ts'
import type { IssuedTokens } from './mint.ts'
import type { Outlets } from './state-events.ts'
import type { TokenStore } from './token-store.ts'

/**
 * The tokens for a right password, or why there are none. `other-name`: the password is right, but belongs to another name than
 * `username`. `overloaded`: too many passwords are being checked, or the request was answered meanwhile, so tokens would be lost.
 * `unchecked`: the hook gave no verdict about the present password. `unavailable`: the shared store did not respond. An `UpstreamFailure`:
 * the device has to check the password, and did not respond. `slowedFor`: the attempt may begin after this time (ms).
 */
export type LogInResult =
  | IssuedTokens
  | 'wrong'
  | 'other-name'
  | 'overloaded'
  | 'unchecked'
  | Unavailable
  | { readonly unavailable: UpstreamFailure }
  | { readonly slowedFor: number }

/** The request of a login. */
export type LoginRequest = Pick<Exchange, 'client' | 'answered' | 'onEnd'>

/**
 * Verifies the password and issues the tokens of a new grant. `grantType`: the `grant` label of the metric. `username`: as in
 * `Passwords.verify`.
 */
export type LogIn = (
  password: string,
  request: LoginRequest,
  grantType: string,
  username?: string,
) => Promise<LogInResult>

/**
 * Issues a token, unless the bound is reached or no change of a password could revoke it. `unknown-name`: no password has this name.
 * `no-password`: the account has no password now. `unfollowed`: a change of the password would go unnoticed, with `password.device` until the
 * next login, or because the hook gives no fingerprint.
 */
export type HandOut = (
  handout: Handout,
) => Later<HandedOut | AllIssued | 'unknown-name' | 'no-password' | 'unfollowed' | Unavailable>

/**
 * Whether tokens may be issued. `agreed`: for the passwords of this generation, under this epoch. `differs`: another sidecar has published
 * other passwords. `unknown`: the shared store has not answered since the start or since the password changed.
 */
export type Agreement =
  | { readonly kind: 'agreed'; readonly generation: number; readonly epoch: string }
  | { readonly kind: 'differs' | 'unknown' }

/** Keeps track of the passwords to which tokens are bound. */
export interface PasswordAgreement {
  present(): Promise<Agreement>
  /**
   * As `present`, before a password is verified. Only of a shared store: without an agreement a hash would be wasted, and a login gets its
   * tokens under this epoch or begins anew.
   */
  beforeLogin?: PasswordAgreement['present']
  /** Finds out about a later epoch. */
  settle(): Promise<unknown>
}

interface Dependencies extends Outlets {
  /** Whether the configuration has this name; the empty name stands for `password`. */
  readonly hasName: (name: string) => boolean
  readonly password: Pick<DevicePassword, 'generation' | 'has' | 'follows' | 'verify'>
  readonly agreement: PasswordAgreement
  readonly tokens: Pick<TokenStore, 'issue' | 'handOut'>
}

/** The most attempts of one login or handout: each change of the password meanwhile costs one. */
const ATTEMPTS = 4

/**
 * Issues tokens to right passwords and to operators. A token is bound to the passwords of one generation (C8): if these change while a
 * login is verified, or before its tokens are issued, the login begins anew. A login with a password that may be verified only once has no
 * verdict then.
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

  /** @param verified the generation and the epoch of a login; undefined: the present ones */
  async function issueUnder<T>(
    verified: { readonly generation?: number; readonly epoch?: string | undefined },
    issue: (epoch: string) => Later<T | 'stale' | 'again'>,
  ): Promise<T | Unavailable | 'again'> {
    const present = await agreement.present()
    if (present.kind !== 'agreed') return 'unavailable'
    const { generation, epoch } = present
    const isOther = generation !== (verified.generation ?? generation) || epoch !== (verified.epoch ?? epoch)
    if (isOther || generation !== password.generation) return 'again'
    const issued = await issue(epoch)
    if (issued !== 'stale') return issued
    // If this fails, the next attempt finds no agreement.
    await agreement.settle().catch(() => {})
    return 'again'
  }

  const logIn: LogIn = (candidate, request, grantType, username) =>
    repeat(async () => {
      const { client } = request
      const before = await agreement.beforeLogin?.()
      if (before !== undefined && before.kind !== 'agreed') return 'unavailable'
      const verified = await password.verify(candidate, client.key, username, (left) => request.onEnd(left))
      if ('unavailable' in verified) return verified
      const { result, generation, name = '', once = false } = verified
      if (result !== 'right') return once || generation === password.generation ? result : 'again'
      const issued = await issueUnder({ generation, epoch: before?.epoch }, (epoch) =>
        request.answered ? 'overloaded' : tokens.issue(client.address, grantType, name, epoch),
      )
      return issued === 'again' && once ? 'unchecked' : issued
    })

  const handOut: HandOut = (handout) =>
    repeat(() =>
      issueUnder({}, async (epoch) => {
        const { name } = handout
        if (!password.follows) return 'unfollowed'
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
