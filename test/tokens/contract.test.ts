import { join } from 'node:path'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import type { SharedStore } from '../../src/fleet/shared-store.ts'
import { prefix64 } from '../../src/http/ip.ts'
import type { Backend } from '../../src/tokens/backend.ts'
import { shareOf, type TokenPolicy } from '../../src/tokens/grant-rules.ts'
import { createGrantTable } from '../../src/tokens/grant-table.ts'
import { openJournal } from '../../src/tokens/journal.ts'
import { createMemoryBackend } from '../../src/tokens/memory-backend.ts'
import { digestToken, type IssuedTokens } from '../../src/tokens/mint.ts'
import type { TokenEvents } from '../../src/tokens/state-events.ts'
import { createTokenStore, type Tokens } from '../../src/tokens/token-store.ts'
import { open } from '../store/opened.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { isInstalled, needs } from '../support/tools.ts'
import { liveRequests } from './live-requests.ts'
import { openSharedTokens } from './shared-sidecar.ts'
import { HOUR, POLICY, present, WEEK } from './support.ts'

/** One family of tokens. */
interface Opened {
  /** Lets time pass: for the process, and for the server. */
  readonly advance: (time: number) => Promise<void>
  readonly backend: Backend
  readonly tokens: Tokens
  readonly issue: (client?: string) => Promise<IssuedTokens>
  /** What its listener heard; a revocation as the number of grants and the reason. */
  readonly events: readonly unknown[]
  /** The family after a restart of its process. The memory of a process has none: it goes on. */
  readonly restart: () => Promise<Opened>
}

const CLIENT = '192.0.2.1'

function listening(): readonly [TokenEvents, readonly unknown[]] {
  const events: unknown[] = []
  const listener: TokenEvents = {
    issued: (kind) => events.push(['issued', kind]),
    revoked: (grants, reason) => events.push(['revoked', grants, reason]),
    evicted: (kind, count) => events.push(['evicted', kind, count]),
  }
  return [listener, events]
}

function openLocal(changed: Partial<TokenPolicy>, dir?: string, clock = stillClock()): Promise<Opened> {
  const [listener, events] = listening()
  const policy = { ...POLICY, ...changed }
  const [live, table] = [liveRequests(), createGrantTable(policy.capacity)]
  const journal =
    dir === undefined ? undefined : openJournal({ dir, clock, table, policy, heir: '', listener: NO_TROUBLE })
  if (journal !== undefined) closeLater(journal.close)
  const backend = createMemoryBackend({ policy, clock, journal, table, listener, live })
  const tokens = createTokenStore({ policy, backend, listener, live })
  const opened: Opened = {
    ...{ backend, tokens, events, advance: clock.advance },
    issue: async (client = CLIENT) => tokens.issue(client, 'password'),
    async restart() {
      if (dir === undefined) return opened
      journal?.close()
      return openLocal(changed, dir, clock)
    },
  }
  return Promise.resolve(opened)
}

const openJournaled = (changed: Partial<TokenPolicy>): Promise<Opened> =>
  openLocal(changed, join(temporaryDirectory(), 'state'))

const trouble = (...what: readonly unknown[]): never => expect.unreachable(what.join(' '))
const NO_TROUBLE = {
  ...{ failed: trouble, setAside: trouble, copied: trouble, clock: trouble },
  recovered: () => {},
}

let redis: RedisServer
let stores = 0

async function openShared(
  changed: Partial<TokenPolicy>,
  prefix = `contract-${stores++}`,
  clock = stillClock(),
): Promise<Opened> {
  needs('redis-server')
  const { store } = await open(`valkey://${redis.at}`, { prefix })
  const policy = { ...POLICY, offlineGrace: 60_000, ...changed }
  const [listener, events] = listening()
  const timed = { ...store, run: atTimeOf(clock, store.run), runDurably: atTimeOf(clock, store.runDurably) }
  const opened = await openSharedTokens({ store: timed, clock, policy, listener })
  async function advance(time: number): Promise<void> {
    await clock.advance(time)
    opened.heard()
  }
  return { ...opened, events, advance, restart: () => openShared(changed, prefix, clock) }
}

/** The scripts at the time of this clock: the server's own may only delete keys later than they say. */
function atTimeOf(clock: MovableClock, run: SharedStore['run']): SharedStore['run'] {
  return ({ name, source }, ...question) =>
    run({ name, source: source.replace(/local now = .*/, `local now = ${clock.wall()}`) }, ...question)
}

beforeAll(async () => {
  if (isInstalled('redis-server')) redis = await startRedis()
})

const UNKNOWN = { kind: 'refused', cause: 'unknown' }
const REVOKED = { kind: 'refused', cause: 'revoked' }

describe.each([
  ['of this process', (changed: Partial<TokenPolicy>) => openLocal(changed)],
  ['of a journal', openJournaled],
  ['of a shared store', openShared],
])('tokens %s', (_family, opened) => {
  const at = async (policy: Partial<TokenPolicy> = {}) => {
    const family = await opened(policy)
    const { tokens } = family
    return {
      ...family,
      identify: async (token: string) => tokens.identify(token, CLIENT),
      async refresh(token: string): Promise<IssuedTokens> {
        const issued = present(await tokens.refresh(token))
        if (issued === 'unavailable') throw new Error(issued)
        return issued
      },
    }
  }

  it('C5 C10 are of two kinds, and neither passes for the other', async () => {
    const { tokens, issue, identify } = await at()
    const issued = await issue()
    expect(issued).toMatchObject({ expiresIn: POLICY.accessLifetime / 1000 })
    expect(await identify(issued.accessToken)).toEqual({ kind: 'valid', grant: issued.grant })
    for (const odd of [issued.refreshToken, issued.accessToken.slice(1), '', 'x'.repeat(43)])
      expect(await identify(odd)).toEqual(UNKNOWN)
    for (const odd of [issued.accessToken, issued.refreshToken.slice(1), '', 'x'.repeat(43)])
      expect(await tokens.refresh(odd)).toBeUndefined()
  })

  it('C6 without rotation keep their refresh token and earlier access tokens', async () => {
    const { issue, identify, refresh } = await at()
    const first = await issue()
    const second = await refresh(first.refreshToken)
    expect(second).toMatchObject({ grant: first.grant, refreshToken: first.refreshToken })
    for (const { accessToken } of [first, second])
      expect(await identify(accessToken)).toMatchObject({ kind: 'valid', grant: first.grant })
  })

  it('C6 with rotation give a retry within the grace the same pair', async () => {
    const { issue, refresh } = await at({ rotateRefresh: true })
    const first = await issue()
    const second = await refresh(first.refreshToken)
    expect(second.refreshToken).not.toBe(first.refreshToken)
    expect(second.grant).toBe(first.grant)
    expect(await refresh(first.refreshToken)).toEqual(second)
    expect((await refresh(second.refreshToken)).refreshToken).not.toBe(second.refreshToken)
  })

  it.each<[string, (tokens: Tokens, token: string) => unknown]>([
    ['exchanged', ({ refresh }, token) => refresh(token)],
    ['revoked', ({ revoke }, token) => revoke({ token }, 'test')],
  ])('C6 C8 stay as they are if the refresh token was %s since it was read', async (_, meanwhile) => {
    const { backend, tokens, issue } = await at({ rotateRefresh: true, refreshGrace: HOUR })
    const { refreshToken } = await issue()
    const { token } = await backend.read(refreshToken)
    await meanwhile(tokens, refreshToken)
    const grants = await tokens.grants()
    const added = [{ kind: 'access', digest: digestToken(refreshToken), lifetime: HOUR }] as const
    expect(await present(token).set({ added, spends: undefined })).toBe(false)
    expect(await tokens.grants()).toEqual(grants)
  })

  it('C6 without a grace take the first retry for reuse, which revokes the grant and no other', async () => {
    const { tokens, issue, identify, refresh, events } = await at({ rotateRefresh: true, refreshGrace: 0 })
    const [first, other] = [await issue(), await issue()]
    const second = await refresh(first.refreshToken)
    expect(await tokens.refresh(first.refreshToken)).toBeUndefined()
    expect(await tokens.refresh(second.refreshToken)).toBeUndefined()
    for (const { accessToken } of [first, second]) expect(await identify(accessToken)).toEqual(REVOKED)
    expect(await identify(other.accessToken)).toMatchObject({ kind: 'valid' })
    expect(JSON.stringify(events)).toContain('refresh_token_reuse')
  })

  it('C6 after a reload, the shorter of the old and the new grace holds', async () => {
    const policy = { ...POLICY, rotateRefresh: true, offlineGrace: HOUR }
    const { tokens, issue, refresh, advance } = await at(policy)
    const [first, other] = [await issue(), await issue()]
    const next = await refresh(first.refreshToken)
    tokens.applyPolicy({ ...policy, refreshGrace: HOUR })
    await advance(POLICY.refreshGrace - 1)
    expect(await refresh(first.refreshToken)).toEqual(next)
    await advance(1)
    expect(await tokens.refresh(first.refreshToken)).toBeUndefined()
    await refresh(other.refreshToken)
    tokens.applyPolicy({ ...policy, refreshGrace: 0 })
    expect(await tokens.refresh(other.refreshToken)).toBeUndefined()
    expect(await tokens.grants()).toEqual([])
  })

  it('C7 are valid until the millisecond before their end, which no reload moves, also after a restart', async () => {
    const { tokens, issue, advance, restart } = await at()
    const { grant, accessToken, refreshToken } = await issue()
    tokens.applyPolicy({ ...POLICY, accessLifetime: 2 * HOUR, refreshLifetime: 1, offlineGrace: HOUR })
    await advance(HOUR - 1)
    const again = await restart()
    expect(await again.tokens.identify(accessToken, CLIENT)).toEqual({ kind: 'valid', grant })
    await again.advance(1)
    expect(await again.tokens.identify(accessToken, CLIENT)).toMatchObject({ kind: 'refused' })
    await again.advance(WEEK - HOUR - 1)
    const last = await again.restart()
    expect(await last.tokens.refresh(refreshToken)).toMatchObject({ grant, refreshToken })
    await last.advance(1)
    expect(await last.tokens.refresh(refreshToken)).toBeUndefined()
  })

  it('C8 are revoked by grant, by client, by a token of either kind, or all', async () => {
    const { tokens, issue, identify } = await at()
    const issued = await Promise.all(
      ['192.0.2.7', '2001:db8::1', '2001:db8::2', '192.0.2.8', '192.0.2.9', '192.0.2.10'].map(issue),
    )
    const [one, , , four, five, six] = issued.map(present)
    const alive = async (): Promise<boolean[]> =>
      Promise.all(issued.map(async ({ accessToken }) => (await identify(accessToken)).kind === 'valid'))
    expect(await tokens.revoke({ grant: one?.grant ?? '' }, 'test')).toBe(1)
    expect(await alive()).toEqual([false, true, true, true, true, true])
    expect(await tokens.revoke({ client: prefix64('2001:db8::3') }, 'test')).toBe(2)
    expect(await tokens.revoke({ token: four?.accessToken ?? '' }, 'test')).toBe(1)
    expect(await tokens.revoke({ token: five?.refreshToken ?? '' }, 'test')).toBe(1)
    expect(await tokens.revoke({ token: five?.refreshToken ?? '' }, 'test')).toBe(0)
    expect(await alive()).toEqual([false, false, false, false, false, true])
    expect(await tokens.revoke({ all: true }, 'test')).toBe(1)
    expect(await identify(six?.accessToken ?? '')).toEqual(REVOKED)
    expect(await tokens.grants()).toEqual([])
  })

  it('H150 are listed as grants, the most recently used first, with the number of all', async () => {
    const { tokens, issue, identify } = await at()
    const [first, second] = [await issue('192.0.2.7'), await issue('192.0.2.8')]
    await identify(first.accessToken)
    expect(await tokens.recentGrants(1)).toMatchObject({
      total: 2,
      grants: [{ id: first.grant, client: '192.0.2.7', accessTokens: 1, refreshTokens: 1 }],
    })
    const all = await tokens.grants()
    expect(all).toHaveLength(2)
    expect(JSON.stringify(all)).toContain(second.grant)
  })

  it('of one grant are a share of the capacity at most, and keep the live refresh token', async () => {
    const capacity = 40
    const { tokens, issue, identify, refresh } = await at({ capacity })
    const [first, other] = [await issue(), await issue()]
    let last = first
    for (let i = 0; i < 2 * shareOf(capacity); i++) last = await refresh(first.refreshToken)
    const grants = await tokens.grants()
    if (grants === 'unavailable') throw new Error(grants)
    const grown = grants.find(({ id }) => id === first.grant)
    expect(grown).toMatchObject({ accessTokens: shareOf(capacity) - 1, refreshTokens: 1 })
    for (const { accessToken } of [last, other])
      expect(await identify(accessToken)).toMatchObject({ kind: 'valid' })
  })

  it('are evicted by whole grants when there are too many', async () => {
    const { tokens, issue, identify, events } = await at({ capacity: 4 })
    const issued = [await issue(), await issue(), await issue()]
    expect(events.filter((event) => Array.isArray(event) && event[0] === 'evicted')).toEqual([
      ['evicted', 'access', 1],
      ['evicted', 'refresh', 1],
    ])
    const grants = await tokens.grants()
    expect(grants).toHaveLength(2)
    const gone = issued.filter(({ grant }) => !JSON.stringify(grants).includes(grant ?? ''))
    expect(gone).toHaveLength(1)
    expect(await tokens.refresh(gone[0]?.refreshToken ?? '')).toBeUndefined()
    for (const { grant, accessToken } of issued.filter((each) => !gone.includes(each)))
      expect(await identify(accessToken)).toEqual({ kind: 'valid', grant })
  })

  it('are evicted down to a capacity that a reload lowers, at the latest by the next login', async () => {
    const { tokens, issue, identify } = await at({ capacity: 10 })
    for (let i = 0; i < 5; i++) await issue()
    tokens.applyPolicy({ ...POLICY, capacity: 4, offlineGrace: HOUR })
    const last = await issue()
    expect(await tokens.grants()).toHaveLength(2)
    expect(await identify(last.accessToken)).toMatchObject({ kind: 'valid' })
  })

  it('C8 H102 that were revoked, reused or evicted stay so after a restart, and when there is room again', async () => {
    const { tokens, issue, refresh, restart } = await at({
      capacity: 6,
      rotateRefresh: true,
      refreshGrace: 0,
    })
    const reused = await issue()
    const next = await refresh(reused.refreshToken)
    expect(await tokens.refresh(reused.refreshToken)).toBeUndefined()
    const issued = [await issue(), await issue(), await issue(), await issue()]
    const listed = JSON.stringify(await tokens.grants())
    const evicted = present(issued.find(({ grant }) => !listed.includes(grant)))
    const [revoked, ...live] = issued.filter((each) => each !== evicted)
    await tokens.revoke({ grant: present(revoked).grant }, 'test')
    const again = await restart()
    for (const { accessToken, refreshToken } of [reused, next, evicted, present(revoked)]) {
      expect(await again.tokens.identify(accessToken, CLIENT)).toMatchObject({ kind: 'refused' })
      expect(await again.tokens.refresh(refreshToken)).toBeUndefined()
    }
    for (const { grant, accessToken } of live)
      expect(await again.tokens.identify(accessToken, CLIENT)).toEqual({ kind: 'valid', grant })
    expect(await again.tokens.grants()).toHaveLength(live.length)
  })
})

/** The tokens that a family has issued, by the order in which they first appeared, so that two families can be compared. */
function numbering() {
  const tokens: string[] = []
  const numberOf = (token: string): number => {
    if (!tokens.includes(token)) tokens.push(token)
    return tokens.indexOf(token)
  }
  return {
    tokens,
    pair: (issued: IssuedTokens | undefined) =>
      issued === undefined ? [] : [numberOf(issued.accessToken), numberOf(issued.refreshToken)],
  }
}

/** One operation at a family. Returns what a client or an operator notices. */
async function act(
  { tokens, issue, advance }: Opened,
  { tokens: known, pair }: ReturnType<typeof numbering>,
  op: string,
  pick: number,
): Promise<unknown> {
  const token = known[pick % known.length]
  if (op === 'issue' || token === undefined) return pair(await issue())
  if (op === 'identify') {
    const found = await tokens.identify(token, CLIENT)
    return found.kind === 'refused' ? found.cause : found.kind
  }
  if (op === 'revoke') return tokens.revoke({ token }, 'test')
  if (op === 'advance') return advance(present(STEPS[pick % STEPS.length]))
  const issued = await tokens.refresh(token)
  return issued === 'unavailable' ? issued : pair(issued)
}

/** Steps of time (ms), to the ends of the grace and of the lifetimes, and a millisecond beside. */
const GRACE = 10_000
const STEPS = [1, GRACE - 1, GRACE, HOUR / 2, HOUR - GRACE, HOUR - 1, HOUR]

/** Why a token has ended, or that it never was. */
const CAUSES: readonly unknown[] = ['expired', 'revoked', 'unknown']

const OPERATIONS = [
  'issue',
  ...Array(3).fill('refresh'),
  'identify',
  'identify',
  'advance',
  'advance',
  'revoke',
]

const POLICIES: readonly [string, Partial<TokenPolicy>][] = [
  ['without rotation', {}],
  ['with rotation', { rotateRefresh: true, refreshGrace: GRACE }],
  [
    'with rotation and a bound of logins',
    { rotateRefresh: true, refreshGrace: GRACE, grantLifetime: 3 * HOUR },
  ],
  ['with rotation and no grace', { rotateRefresh: true, refreshGrace: 0 }],
]

it.each([
  ...POLICIES.map((each) => [...each, OPERATIONS] as const),
  ...POLICIES.map(
    ([how, policy]) => [`${how}, through restarts`, policy, [...OPERATIONS, 'restart']] as const,
  ),
])(
  'C5 C6 C7 C8 H71 H102 H311 all families answer the same operations alike, %s',
  async (_, policy, those) => {
    // A journal does not keep why a token has ended.
    const comparable = (answer: unknown): unknown =>
      those.includes('restart') && CAUSES.includes(answer) ? 'refused' : answer
    const alike = fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom(...those), fc.nat()), { minLength: 30, maxLength: 50, size: 'max' }),
      async (operations) => {
        const lifetimes = { accessLifetime: HOUR, refreshLifetime: 2 * HOUR, ...policy }
        let families: readonly Opened[] = await Promise.all(
          [openLocal, openJournaled, openShared].map((open) => open(lifetimes)),
        )
        const numbers = families.map(numbering)
        for (const [op, pick] of operations) {
          if (op === 'restart') {
            // A journal keeps no response for a retry: until the grace is over, a restart brings another one.
            for (const { advance } of families) await advance(GRACE)
            families = await Promise.all(families.map(({ restart }) => restart()))
            continue
          }
          const [memory, ...others] = await Promise.all(
            families.map((each, at) => act(each, present(numbers[at]), op, pick)),
          )
          for (const each of others) expect(comparable(each)).toEqual(comparable(memory))
        }
        const lists = families.map(async ({ tokens }) => {
          const grants = await tokens.grants()
          if (grants === 'unavailable') throw new Error(grants)
          return grants.map(({ accessTokens, refreshTokens }) => [accessTokens, refreshTokens].join()).sort()
        })
        const [memory, ...others] = await Promise.all(lists)
        for (const each of others) expect(each).toEqual(memory)
      },
    )
    // To shrink a failure takes minutes.
    await fc.assert(alike, { numRuns: 10, endOnFailure: true })
  },
)
