import { namesInText } from '../http/scope.ts'
import type { Ending, RevokedOwner } from '../tokens/state.ts'
import { createOwedRevocations } from './owed.ts'
import { tokenScript } from './scripts.ts'
import { listOf, type SharedStore } from './shared-store.ts'

/** What voids tokens of the shared store, or may have done so. */
export type FleetEvent =
  /** Every token of an earlier epoch is void, except of names whose password has not changed: see `DeviceState.since`. */
  | { readonly kind: 'begun'; readonly epoch: string; readonly since?: string }
  /** A sidecar with the same password has begun anew at an emptied server: what this sidecar knows stays valid. */
  | { readonly kind: 'founded'; readonly epoch: string }
  /** The server has lost all its data; with `grants`, only the tokens of these. */
  | { readonly kind: 'lost'; readonly grants?: readonly string[] }
  /** The password of this name has changed, but the server does not respond: whether it has voided the tokens of the name is unknown. */
  | { readonly kind: 'unsettled'; readonly name: string }
  /** This sidecar has ended the name: every token of it that the sidecar knows is void. */
  | { readonly kind: 'removed'; readonly name: string }
  | { readonly kind: 'revoked' | 'evicted'; readonly grants: readonly string[] }
  /** Grants that the server has lost were revoked by their client or name: it could not list them. */
  | { readonly kind: 'theirs'; readonly which: RevokedOwner }

export type Epoch = ReturnType<typeof createEpoch>

/**
 * The epoch of the device, as far as this sidecar has heard, and the revocations that the server has not taken from it.
 *
 * @param react removes what an event voids, but nothing of the `kept` names; the present epoch is already the new one
 */
export function createEpoch(react: (event: FleetEvent, kept: ReadonlySet<string>) => void) {
  let present = ''
  const owed = createOwedRevocations()
  return {
    owed,
    get present(): string {
      return present
    },
    /** Whether a server that names this epoch has lost the present one, perhaps with its primary. Empty: it has no epoch. */
    isBehind: (epoch: string): boolean => epoch === '' || !(Number(epoch) >= Number(present)),
    /** An epoch that is not later than the present one changes nothing. */
    apply(event: FleetEvent): void {
      let kept = NONE
      if ('epoch' in event) {
        if (!(Number(event.epoch) > Number(present))) return
        const since = 'since' in event ? [...namesInText(event.since)] : []
        kept = new Set(since.filter(([, from]) => Number(from) <= Number(present)).map(([name]) => name))
        present = event.epoch
      }
      react(event, kept)
    },
    /** Revokes at this sidecar what it has ended for good, and owes that to the server. */
    end(which: Ending, reason: string): void {
      if ('name' in which) {
        owed.names.set(which.name, { epoch: present, reason })
        react({ kind: 'removed', name: which.name }, NONE)
      } else {
        for (const id of which.grants) owed.grants.set(id, reason)
        react({ kind: 'revoked', grants: which.grants }, NONE)
      }
    },
  }
}

const NONE: ReadonlySet<string> = new Set()

export interface DeviceState {
  /** The id of the data on the server. Another one means that the server was emptied. */
  readonly dataset: string
  readonly epoch: string
  /**
   * The last epoch that did not void all tokens of the one before: a sidecar began the dataset with it, on an empty server, or the
   * passwords of some names did not change. Empty if there was none.
   */
  readonly founded: string
  /** The first epoch of the password of each name that has tokens of several epochs: see `textOfNames`. */
  readonly since: string
  readonly salt: string
  /** The fingerprints of the passwords: see `textOfNames`. */
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

/**
 * Enters an epoch: every token of an earlier one is void, except those of the names in `since`. `kind` of the message: `epoch` or
 * `founded`.
 */
const ENTER_EPOCH = `
local function enter(number, kind, since)
  epoch = string.format('%.0f', number)
  index = redis.call('HGET', KEYS[1], 'dataset') or ''
  redis.call('HSET', KEYS[1], 'epoch', epoch, 'since', since, 'index', index)
  if since == '' then
    redis.call('UNLINK', p .. 'grants')
  else
    for _, grant in ipairs(redis.call('ZRANGE', p .. 'grants', 0, -1)) do
      if not first(since, grant) then redis.call('ZREM', p .. 'grants', grant) end
    end
  end
  redis.call('ZADD', p .. 'grants', '+inf', index)
  issued()
  if since == '' then announce(kind, epoch) else announce(kind, epoch, 'since', since) end
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
local count = grants()
enter(after(tonumber(ARGV[2])), 'epoch', '')
return {count, epoch}
`,
)

/**
 * Publishes the fingerprint of the password, and enters an epoch. Does nothing if another epoch than the expected one holds (an empty
 * text: none), because then another sidecar was first.
 *
 * `ARGV`: prefix, expected epoch, latest epoch that the sidecar knows, salt, fingerprint, id of a new dataset, whether to restore the
 * latest epoch (1) instead of beginning a later one (0), names whose tokens stay (`since`). An epoch is marked as founded if tokens stay in
 * it, or if it is the first of an emptied server and not restored. Returns `{number of grants revoked, epoch, dataset}` or `{}`.
 */
export const PUBLISH = tokenScript(
  'state',
  `${ENTER_EPOCH}
${PRESENT}
if present ~= ARGV[2] then return {} end
expire()
local count = grants()
if present == '' then redis.call('HSET', KEYS[1], 'dataset', ARGV[6]) end
redis.call('HSET', KEYS[1], 'salt', ARGV[4], 'fingerprint', ARGV[5])
local known, restores = tonumber(ARGV[3]), ARGV[7] == '1'
local isFounded = ARGV[8] ~= '' or present == '' and not restores
enter(restores and known or after(known), isFounded and 'founded' or 'epoch', ARGV[8])
if isFounded then redis.call('HSET', KEYS[1], 'founded', epoch) end
if ARGV[8] ~= '' then count = count - grants() end
return {count, epoch, redis.call('HGET', KEYS[1], 'dataset')}
`,
)

/**
 * Reads the state of the device. `ARGV`: prefix, id of the last event that was read.
 * Returns `{dataset, epoch, salt, fingerprint, id of the last event, whether that event is still kept, founded epoch, since}`, or `{}` if
 * there is no state.
 */
const READ_STATE = tokenScript(
  'state',
  `
${PRESENT}
if present == '' then return {} end
local last = redis.call('XREVRANGE', p .. 'events', '+', '-', 'COUNT', 1)
local id = last[1] and last[1][1] or '0-0'
local kept = ARGV[2] ~= '' and #redis.call('XRANGE', p .. 'events', ARGV[2], ARGV[2]) or 0
local more = redis.call('HMGET', KEYS[1], 'founded', 'since')
return {state[1], epoch, state[2], state[3], id, kept, more[1] or '', more[2] or ''}
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
  const [dataset = '', epoch = '', salt = '', fingerprint = '', id = '', kept, founded = '', since = ''] =
    reply.map(String)
  return reply.length === 0
    ? undefined
    : { dataset, epoch, founded, since, salt, fingerprint, last: id, kept: kept === '1' }
}
