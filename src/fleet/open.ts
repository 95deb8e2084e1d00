import { randomBytes } from 'node:crypto'
import { checkedByDevice, passwordSources } from '../config/password-fields.ts'
import type { Config } from '../config/schema.ts'
import { describeStore, type StoreAddress } from '../config/store-fields.ts'
import { openPasswords } from '../password/sources.ts'
import type { HashMemory } from '../password/verifier.ts'
import type { Precedence } from '../password/weighted-turns.ts'
import { TROUBLES } from '../record/troubles.ts'
import type { Clock } from '../system/clock.ts'
import { everySecond } from '../system/every-second.ts'
import type { IssuedGrant } from '../tokens/handout.ts'
import { createIssuing } from '../tokens/issuing.ts'
import type { End, LiveRequests, Revocation } from '../tokens/revocation.ts'
import { type Outlets, reportAbsent, sourceEvents, tokenEvents } from '../tokens/state-events.ts'
import { createTokenStore } from '../tokens/token-store.ts'
import { createPasswordAgreement } from './agreement.ts'
import { STORE_BOUNDS, type StoreSettings } from './connection.ts'
import { createTokenCopies, type TokenCopies } from './copies.ts'
import { followRevocations } from './feed.ts'
import { listIssued } from './grants.ts'
import { openSharedStore } from './open-store.ts'
import { watchStreams } from './open-streams.ts'
import { createFleetPlaces, type FleetPlaces } from './places.ts'
import { regularQuestion } from './regular-question.ts'
import { createSharedBackend } from './shared-backend.ts'
import { STORE_OPERATIONS, type StoreUnavailable, unlessUnavailable } from './shared-store.ts'
import { lookAfterTokens } from './upkeep.ts'
import { createSharedTables } from './windows.ts'

/** How often the store is asked for the issued grants of all sidecars (ms). */
const LIST_EVERY = 10_000

const GONE = TROUBLES.PosternSharedStoreDown
const LOST = 'shared store: it was emptied, or restored from a backup, so every client has to log in again'
const LOST_TOKENS =
  'shared store: it has lost tokens of live grants, whose clients have to log in again: another program has evicted or deleted their keys; set maxmemory-policy to noeviction'
const CLOCK_SET =
  'shared store: its clock was set, and tokens and windows follow it: ahead ends them early; back lengthens them'
const DEAF = 'this sidecar hears of no revocations from the shared store'
const DIFFERS =
  'the password of this sidecar is not the one of the shared store, so it logs nobody in; give all sidecars with this store.prefix the same line'

export interface FleetDependencies extends Outlets {
  readonly clock: Clock
  readonly live: LiveRequests
  /** Whether the configuration has this name; the empty name stands for `password`. */
  readonly hasName: (name: string) => boolean
  readonly hashMemory: HashMemory
  /** Which clients go first while passwords wait. */
  readonly precedence: Precedence
  /** Replaces `STORE_BOUNDS` of the shared store (ms). */
  readonly storeBounds?: { readonly timeout?: number } | undefined
  readonly onBug: (error: unknown) => void
  /** An operator has revoked these grants at a sidecar of the fleet. */
  readonly onOperatorRevoked: (which: Revocation) => void
  /** Called when the password has changed or is gone, and when its source can be read again. */
  readonly onPasswordRead: () => void
}

/**
 * Opens the shared store that `tokens.store` names, the password source, and the tokens and windows in the store. Does not wait for a
 * store that does not answer: the sidecar starts without the store, and issues tokens as soon as the store answers. Rejects with
 * `SetupError` if a file cannot be used. `windows`: of `limits.store: shared`; undefined if each sidecar counts alone. `places`: divides
 * the places at the device.
 */
export async function openFleet(config: Config, address: StoreAddress, deps: FleetDependencies) {
  const { timeout } = { ...STORE_BOUNDS, ...deps.storeBounds }
  const { store, condition } = await openStore({ ...config.store, address, timeout }, deps)
  const places = createFleetPlaces({ store, ...deps })
  const state = await openState(config, { store, condition, places, timeout }, deps).catch(
    async (error: unknown) => {
      await store.close()
      throw error
    },
  )
  const windows = config.limits.store === 'local' ? undefined : createSharedTables(config, store, deps)
  return { state, windows, places }
}

/** Opens the shared store. `condition` is for operators: whether the store works, and why not. */
async function openStore(settings: StoreSettings, { clock, log, metrics }: FleetDependencies) {
  const address = describeStore(settings.address)
  let reason: string | null = null
  const { up, answered } = metrics.sharedStore()
  up(false)
  metrics.storeOpened('shared', STORE_OPERATIONS)
  function works(text: string): void {
    up(true)
    reason = null
    log.info({ store: address }, text)
  }
  function fails({ failure, message }: StoreUnavailable, text: string): void {
    up(false)
    reason = message
    log.error({ store: address, failure, reason, remedy: GONE.remedy }, text)
  }
  const store = await openSharedStore(
    settings,
    {
      failed: ({ operation }) => metrics.storeFailed('shared', operation),
      answered,
      up: () => works('the shared store responds'),
      refusing: (error) => fails(error, 'the shared store refuses commands: logins fail'),
      accepting: () => works('the shared store accepts all commands again'),
      down: (error) => fails(error, GONE.line),
    },
    clock,
  )
  const condition = () => ({
    up: store.up && store.trouble === undefined,
    address,
    reason,
  })
  return { store, condition }
}

async function openState(
  config: Config,
  {
    store,
    condition,
    places,
    timeout,
  }: Awaited<ReturnType<typeof openStore>> & { readonly places: FleetPlaces; readonly timeout: number },
  deps: FleetDependencies,
) {
  const { clock, log, metrics, live, hasName, onOperatorRevoked, onBug } = deps
  const events = tokenEvents(deps)
  if (checkedByDevice(config)) throw new TypeError('password.device has no shared store')
  const shared = { store, clock, policy: config.tokens }
  const copies = createTokenCopies({ ...shared, live, hasName, timeout })
  let differs = false
  const agreement = createPasswordAgreement({
    store,
    epoch: copies.epoch,
    generation: () => password.generation,
    fingerprint: (salt) => password.fingerprint(salt),
    onRevoked: events.revoked,
    onDiffers(now) {
      differs = now
      if (now) log.error(DIFFERS)
      else log.info('the password of this sidecar is again the one of the shared store')
    },
    onBug,
  })
  const { isSettled } = agreement
  const backend = createSharedBackend({ ...shared, copies, random: randomBytes, listener: events, isSettled })
  const tokens = createTokenStore({ backend, policy: config.tokens, listener: events, live })
  const { hashMemory: memory, precedence } = deps
  const sources = { clock, events: sourceEvents(deps, agreement.changed), memory, precedence }
  const password = await openPasswords(passwordSources(config), sources)
  const sweepStreams = watchStreams({ store, clock, live, copies, onBug })

  const sweepTokens = lookAfterTokens({
    store,
    clock,
    policy: () => backend.policy,
    onLost(count) {
      metrics.storeFailed('shared', 'lost')
      log.error({ count }, LOST_TOKENS)
    },
    onClockSet: (by) => log.warn({ seconds: Math.round(by / 1000) }, CLOCK_SET),
    onBug,
  })

  reportAbsent(deps, password.state())
  function onLost(): void {
    metrics.storeFailed('shared', 'lost')
    log.error(LOST)
  }
  const onPlaces = places.news
  const feed = followRevocations({
    clock,
    ...{ store, copies, onLost, onPlaces, onOperatorRevoked, onBug },
    settle: agreement.settle,
  })
  await feed.started

  let issued: readonly IssuedGrant[] = []
  const askForIssued = regularQuestion({ clock, every: LIST_EVERY, onBug })

  let deaf = false
  const seconds = everySecond(clock, () => {
    tokens.sweep()
    sweepStreams()
    places.look()
    sweepTokens()
    if (store.up)
      askForIssued(async () => {
        issued = await listIssued(store, copies)
      })
    if (deaf === !copies.hears) return
    deaf = !copies.hears
    if (deaf) log.error(`${DEAF}: see tokens.offline_grace`)
    else log.info('the shared store tells of revocations again')
  })
  const end: End = async (which, reason) => {
    copies.epoch.end(which, reason)
    await agreement.settle().catch(unlessUnavailable(onBug))
    return copies.epoch.owed.hasPaid(which)
  }
  return {
    tokens,
    password: {
      state: password.state,
      replace: (next: Config, limit: number) => password.replace(passwordSources(next), limit),
    },
    end,
    issued: () => issued.filter(({ expiresAt }) => expiresAt > clock.wall()),
    ...createIssuing({ ...deps, password, agreement, tokens }),
    store: condition,
    troubles: () => [
      ...(store.up ? troublesOf(copies) : ['the shared store does not respond']),
      ...(store.trouble === undefined ? [] : [`the shared store refuses commands: ${store.trouble}`]),
      ...(differs ? ['the password is not the one of the shared store'] : []),
    ],
    async close(): Promise<void> {
      seconds.close()
      feed.close()
      password[Symbol.dispose]()
      await places.close()
      await store.close()
    },
  }
}

function troublesOf({ hears, inStep }: Pick<TokenCopies, 'hears' | 'inStep'>): readonly string[] {
  if (!hears) return [DEAF]
  return inStep ? [] : ['this sidecar reads the state of the shared store']
}
