import { randomBytes } from 'node:crypto'
import { parseStoreUrl } from '../../src/config/store-fields.ts'
import { createPasswordAgreement } from '../../src/fleet/agreement.ts'
import { createTokenCopies, type TokenCopies } from '../../src/fleet/copies.ts'
import { followRevocations } from '../../src/fleet/feed.ts'
import { openSharedStore } from '../../src/fleet/open-store.ts'
import { createSharedBackend } from '../../src/fleet/shared-backend.ts'
import type { SharedStore } from '../../src/fleet/shared-store.ts'
import { createSharedWindows } from '../../src/fleet/windows.ts'
import { systemClock } from '../../src/system/clock.ts'
import type { TokenPolicy } from '../../src/tokens/grant-rules.ts'
import type { IssuedTokens } from '../../src/tokens/mint.ts'
import { createTokenStore } from '../../src/tokens/token-store.ts'
import { liveRequests } from '../../test/tokens/live-requests.ts'
import { NO_LIMIT } from '../peers/postern.ts'
import type { Server } from './server.ts'

/** What a sidecar of the crowd asks of the server. Each operation throws if the server does not do it. */
export interface Member {
  logIn(): Promise<IssuedTokens>
  refresh(refreshToken: string): Promise<void>
  /** Asks for an access token as another sidecar of the device does, which has not issued it. */
  lookUp(accessToken: string): Promise<void>
  revoke(refreshToken: string): Promise<void>
  /** Counts a request of one of the clients. */
  count(client: number): Promise<void>
  /** Follows the revocations from now on. Resolves when it hears them. */
  follow(): Promise<void>
  close(): Promise<void>
}

/** The defaults of the configuration, with a small table. */
const POLICY: TokenPolicy = {
  capacity: 1_000,
  issued: 100,
  accessLifetime: 3_600_000,
  refreshLifetime: 7 * 24 * 3_600_000,
  rotateRefresh: false,
  refreshGrace: 10_000,
  offlineGrace: 3_600_000,
}

/** Longer than any wait in a crowd (ms). */
const TIMEOUT = 30_000

/** Opens the store as a sidecar does. */
export function openStore({ port }: Server, prefix: string): Promise<SharedStore> {
  const parsed = parseStoreUrl(`valkey://127.0.0.1:${port}`)
  if ('problem' in parsed) throw new Error(parsed.problem)
  // An operation that fails rejects, so it need not be reported as well.
  const silent = { failed() {}, up() {}, down() {}, refusing() {}, accepting() {}, answered() {} }
  return openSharedStore({ address: parsed.value, prefix, timeout: TIMEOUT, replicas: 0, tls: {} }, silent)
}

/** The parts of a sidecar that use its store, without HTTP. */
export function createMember(store: SharedStore): Member {
  const copiesOf = (): TokenCopies =>
    createTokenCopies({
      store,
      clock: systemClock,
      policy: POLICY,
      live: liveRequests(),
      hasName: () => true,
      timeout: TIMEOUT,
    })
  const [copies, others] = [copiesOf(), copiesOf()]
  const shared = { policy: POLICY, listener: { issued() {}, evicted() {}, revoked() {} } }
  const onBug = (error: unknown): never => {
    throw error
  }
  const agreement = createPasswordAgreement({
    store,
    epoch: copies.epoch,
    generation: () => 0,
    fingerprint: async () => 'f'.repeat(43),
    onRevoked() {},
    onDiffers() {},
    onBug,
  })
  const { isSettled } = agreement
  const parts = { ...shared, store, copies, clock: systemClock, random: randomBytes, isSettled }
  const tokens = createTokenStore({ ...shared, backend: createSharedBackend(parts), live: liveRequests() })
  const windows = createSharedWindows(
    { requests: NO_LIMIT, window: 60_000 },
    {
      store,
      endpoint: 'api',
      clock: systemClock,
      maxKeys: 1_000,
      onFallback: () => onBug(new Error('a request was not counted at the server')),
      onAnswer() {},
      onLost() {},
    },
  )
  let feed: ReturnType<typeof followRevocations> | undefined
  return {
    async logIn() {
      const known = await agreement.present()
      const { epoch } = known.kind === 'agreed' ? known : await agreement.settle()
      return existing(await tokens.issue('192.0.2.1', 'password', '', epoch))
    },
    async refresh(refreshToken) {
      existing(await tokens.refresh(refreshToken))
    },
    async lookUp(accessToken) {
      const { kind } = await others.identify(accessToken, '192.0.2.1')
      if (kind !== 'valid') throw new Error(`the token is ${kind}`)
    },
    async revoke(refreshToken) {
      const grants = await tokens.revoke({ token: refreshToken }, 'bench')
      if (grants !== 1) throw new Error(`${grants} grants were revoked`)
    },
    async count(client) {
      await windows.count(`192.0.2.${client}`)
    },
    async follow() {
      const deaf = { onLost() {}, onPlaces() {}, onOperatorRevoked() {} }
      feed = followRevocations({
        clock: systemClock,
        store,
        copies,
        settle: agreement.settle,
        ...deaf,
        onBug,
      })
      await feed.started
    },
    async close() {
      feed?.close()
      await store.close()
    },
  }
}

function existing(issued: IssuedTokens | 'stale' | 'unavailable' | undefined): IssuedTokens {
  if (typeof issued !== 'object') throw new Error(`no tokens: ${issued ?? 'refused'}`)
  return issued
}
