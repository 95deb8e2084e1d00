import { randomBytes } from 'node:crypto'
import { expect } from 'vitest'
import { createPasswordAgreement } from '../../src/fleet/agreement.ts'
import { createTokenCopies } from '../../src/fleet/copies.ts'
import { createSharedBackend } from '../../src/fleet/shared-backend.ts'
import type { SharedStore } from '../../src/fleet/shared-store.ts'
import type { Clock } from '../../src/system/clock.ts'
import type { TokenPolicy } from '../../src/tokens/grant-rules.ts'
import type { IssuedTokens } from '../../src/tokens/mint.ts'
import type { TokenEvents } from '../../src/tokens/state-events.ts'
import { createTokenStore } from '../../src/tokens/token-store.ts'
import { liveRequests } from './live-requests.ts'

interface Parts {
  readonly store: SharedStore
  /** What the backend asks, if that is not `store`. */
  readonly asked?: SharedStore
  readonly clock: Clock
  readonly policy: TokenPolicy
  readonly listener: TokenEvents
}

/** The tokens of a sidecar at a shared store, which it agrees with and hears. */
export async function openSharedTokens({ store, asked = store, clock, policy, listener }: Parts) {
  const live = liveRequests()
  const copies = createTokenCopies({ store, clock, policy, timeout: 5_000, live, hasName: () => true })
  const agreement = createPasswordAgreement({
    store,
    epoch: copies.epoch,
    generation: () => 0,
    fingerprint: async () => 'fingerprint',
    onRevoked() {},
    onDiffers() {},
    onBug: (error) => expect.unreachable(String(error)),
  })
  const backend = createSharedBackend({
    ...{ store: asked, copies, policy, clock, listener, isSettled: agreement.isSettled },
    random: randomBytes,
  })
  const tokens = createTokenStore({ backend, policy, live, listener })
  const { epoch } = await agreement.settle()
  copies.heard()
  return {
    backend,
    tokens,
    /** This sidecar hears of revocations. */
    heard: copies.heard,
    async issue(client = '192.0.2.1'): Promise<IssuedTokens> {
      const issued = await tokens.issue(client, 'password', '', epoch)
      if (typeof issued === 'string') throw new Error(issued)
      return issued
    },
  }
}
