import type { Config } from '../config/schema.ts'
import { type SharedStore, STORE_OPERATIONS } from '../fleet/shared-store.ts'
import type { StateDependencies } from './state.ts'

/** Opens the shared store that `tokens.store` names; undefined if the tokens stay in this process. */
export async function openConfiguredStore(
  { tokens, store }: Config,
  { log, metrics }: Pick<StateDependencies, 'log' | 'metrics'>,
): Promise<SharedStore | undefined> {
  if (typeof tokens.store === 'string') return undefined
  // Loaded only here: a sidecar with a store of its own must not pay for the client at its start.
  const { openSharedStore } = await import('../fleet/open-store.ts')
  const { up, answered } = metrics.sharedStore()
  up(false)
  metrics.storeOpened('shared', STORE_OPERATIONS)
  return openSharedStore(
    { address: tokens.store, ...store },
    {
      failed: ({ operation }) => metrics.storeFailed('shared', operation),
      answered,
      up() {
        up(true)
        log.info('the shared store responds')
      },
      refusing({ failure, message }) {
        up(false)
        log.error({ failure, reason: message }, 'the shared store refuses commands: logins fail')
      },
      accepting() {
        up(true)
        log.info('the shared store accepts all commands again')
      },
      down({ failure, message }) {
        up(false)
        log.error({ failure, reason: message }, 'the shared store does not respond: see tokens.offline_grace')
      },
    },
  )
}
