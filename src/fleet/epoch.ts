import { tokenScript } from './scripts.ts'
import { listOf, type SharedStore } from './shared-store.ts'

/** What voids tokens of the shared store, or may have done so. */
export type FleetEvent =
  /** Every token of an earlier epoch is void. */
  | { readonly kind: 'begun'; readonly epoch: string }
  /** A sidecar with the same password has begun anew at an emptied server: what this sidecar knows stays valid. */
  | { readonly kind: 'founded'; readonly epoch: string }
  /** The server has lost its data. */
  | { readonly kind: 'lost' }
  /** The password has changed, and the server cannot be asked for the new epoch: it may know the tokens as tokens of that one. */
  | { readonly kind: 'unsettled' }
  | { readonly kind: 'revoked' | 'evicted'; readonly grants: readonly string[] }

/** The epoch of the device, as far as this sidecar has heard. */
export interface Epoch {
  readonly present: string
  /** Whether a server that names this epoch has lost the present one, perhaps with its primary. Empty: it has no epoch. */
  isBehind(epoch: string): boolean
  /** An epoch that is not later than the present one changes nothing. */
  apply(event: FleetEvent): void
}

/** @param react removes what an event voids; the present epoch is already the new one */
export function createEpoch(react: (event: FleetEvent) => void): Epoch {
  let present = ''
  return {
    get present() {
      return present
    },
    isBehind: (epoch) => epoch === '' || !(Number(epoch) >= Number(present)),
    apply(event) {
      if ('epoch' in event) {
        if (!(Number(event.epoch) > Number(present))) return
        present = event.epoch
      }
      react(event)
    },
  }
}

export interface DeviceState {
  /** The id of the data on the server. Another one means that the server was emptied. */
  readonly dataset: string
  readonly epoch: string
  /** The epoch with which a sidecar began the dataset, on an empty server; empty if another sidecar restored its epoch. */
  readonly founded: string
  readonly salt: string
  readonly fingerprint: string
  readonly last: string
  /** Whether the server still has the event from which this sidecar reads on. */
  readonly kept: boolean
}

/** Sets `state` to dataset, salt and fingerprint, and `present` to the epoch: empty if any of these is missing. */
const PRESENT = `
local state = redis.call('HMGET', KEYS[1], 'dataset', 'salt', 'fingerprint')
local present = state[1] and state[2] and state[3] and tonumber(epoch or '') and epoch or ''
`

/** Enters an epoch: every token of an earlier one is void. `kind` of the message: `epoch` or `founded`. */
const ENTER_EPOCH = `
local function enter(number, kind)
  epoch = string.format('%.0f', number)
  redis.call('HSET', KEYS[1], 'epoch', epoch)
  redis.call('UNLINK', p .. 'grants')
  announce(kind, epoch)
end

local function after(known)
  return math.max(now, (tonumber(epoch) or 0) + 1, known + 1)
end
`

/**
 * Revokes all grants. `ARGV`: prefix, latest epoch that the sidecar knows. Returns `{number of grants, epoch}`, without an epoch if there
 * is no state.
 */
export const REVOKE_ALL = tokenScript(
  'revoke',
  `${ENTER_EPOCH}
if not epoch then return {0} end
expire()
local count = redis.call('ZCARD', p .. 'grants')
enter(after(tonumber(ARGV[2])), 'epoch')
return {count, epoch}
`,
)

/**
 * Publishes the fingerprint of the password, and enters an epoch. Does nothing if another epoch than the expected one holds (an empty
 * text: none), because then another sidecar was first.
 *
 * `ARGV`: prefix, expected epoch, latest epoch that the sidecar knows, salt, fingerprint, id of a new dataset, whether to restore the
 * latest epoch (1) instead of beginning a later one (0). The first epoch of an emptied server is marked as founded, unless a sidecar
 * restores the one that it knows. Returns `{number of grants revoked, epoch, dataset}` or `{}`.
 */
export const PUBLISH = tokenScript(
  'state',
  `${ENTER_EPOCH}
${PRESENT}
if present ~= ARGV[2] then return {} end
expire()
local count = redis.call('ZCARD', p .. 'grants')
if present == '' then redis.call('HSET', KEYS[1], 'dataset', ARGV[6]) end
redis.call('HSET', KEYS[1], 'salt', ARGV[4], 'fingerprint', ARGV[5])
local known, restores, isNew = tonumber(ARGV[3]), ARGV[7] == '1', present == ''
enter(restores and known or after(known), isNew and not restores and 'founded' or 'epoch')
if isNew and not restores then redis.call('HSET', KEYS[1], 'founded', epoch) end
return {count, epoch, redis.call('HGET', KEYS[1], 'dataset')}
`,
)

/**
 * Reads the state of the device. `ARGV`: prefix, id of the last event that was read.
 * Returns `{dataset, epoch, salt, fingerprint, id of the last event, whether that event is still kept, founded epoch}`, or `{}` if there
 * is no state.
 */
const READ_STATE = tokenScript(
  'state',
  `
${PRESENT}
if present == '' then return {} end
local last = redis.call('XREVRANGE', p .. 'events', '+', '-', 'COUNT', 1)
local id = last[1] and last[1][1] or '0-0'
local kept = ARGV[2] ~= '' and #redis.call('XRANGE', p .. 'events', ARGV[2], ARGV[2]) or 0
return {state[1], epoch, state[2], state[3], id, kept, redis.call('HGET', KEYS[1], 'founded') or ''}
`,
)

/**
 * Reads the state that all sidecars of the device share; undefined if there is none. Rejects with `StoreUnavailable`.
 *
 * @param last the id of the last event that this sidecar has read
 */
export async function readState(
  { prefix, run }: Pick<SharedStore, 'prefix' | 'run'>,
  last: string,
): Promise<DeviceState | undefined> {
  const reply = listOf(await run(READ_STATE, [`${prefix}state`], [prefix, last]))
  const [dataset = '', epoch = '', salt = '', fingerprint = '', id = '', kept, founded = ''] =
    reply.map(String)
  return reply.length === 0
    ? undefined
    : { dataset, epoch, founded, salt, fingerprint, last: id, kept: kept === '1' }
}
