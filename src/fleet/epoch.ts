import { namesInText } from '../http/scope.ts'
import type { Ending } from '../tokens/revocation.ts'
import { createOwedRevocations } from './owed.ts'
import { runScript, tokenScript } from './scripts.ts'
import type { SharedStore } from './shared-store.ts'

/** What voids tokens of the shared store, or may have done so. */
export type FleetEvent =
  /** Every token of an earlier epoch is void, except of names whose password has not changed: see `DeviceState.since`. */
  | { readonly kind: 'begun'; readonly epoch: string; readonly since?: string }
  /** The password of this name has changed, but the server does not respond, so it may not have voided the tokens of the name. */
  | { readonly kind: 'unsettled'; readonly name: string }
  /** This sidecar has ended the name: every copy of a token of the name is void. */
  | { readonly kind: 'removed'; readonly name: string }
  | { readonly kind: 'revoked' | 'evicted'; readonly grants: readonly string[] }

export type Epoch = ReturnType<typeof createEpoch>

/**
 * The latest epoch of the device that this sidecar knows, and the revocations that it owes to the server.
 *
 * @param react removes the copies that an event voids. `before`: the epoch before the event; `present` is the new one already
 */
export function createEpoch(react: (event: FleetEvent, before: string) => void) {
  let present = ''
  /** The first epoch of the password of each name that has tokens of several epochs: `DeviceState.since`. */
  let since: ReadonlyMap<string, string> = new Map()
  const owed = createOwedRevocations()
  return {
    owed,
    /** The epoch that this sidecar has begun because the server had lost its data; empty if there was none. The agreement sets it. */
    lost: '',
    get present(): string {
      return present
    },
    /** Whether a server that names this epoch (empty: none) has lost the present one, because it was emptied or restored. */
    isBehind: (epoch: string): boolean => epoch === '' || !(Number(epoch) >= Number(present)),
    /** Whether a token of this name that was valid in the epoch `of` is valid in the present one: its password has not changed since. */
    keeps: (name: string, of: string): boolean =>
      of !== '' && (Number(of) >= Number(present) || Number(since.get(name)) <= Number(of)),
    /** An epoch that is not later than the present one changes nothing. */
    apply(event: FleetEvent): void {
      const before = present
      if ('epoch' in event) {
        if (!(Number(event.epoch) > Number(before))) return
        since = namesInText(event.since ?? '')
        present = event.epoch
      }
      react(event, before)
    },
    /** Revokes at this sidecar at once, and notes that the revocation is owed to the server. */
    end(which: Ending, reason: string): void {
      if ('name' in which) {
        owed.names.set(which.name, { epoch: present, reason })
        react({ kind: 'removed', name: which.name }, present)
      } else {
        for (const id of which.grants) owed.grants.set(id, reason)
        react({ kind: 'revoked', grants: which.grants }, present)
      }
    },
  }
}

export interface DeviceState {
  readonly epoch: string
  /** The first epoch of the password of each name that has tokens of several epochs: see `textOfNames`. */
  readonly since: string
  readonly salt: string
  /** The fingerprints of the passwords: see `textOfNames`. */
  readonly fingerprint: string
  /** The id of the last event. */
  readonly last: string
  /** The id of the latest event at or before the one that this sidecar has read last; empty without such an event. */
  readonly read: string
}

/** Whether the server still has the event that this sidecar has read last (`own`). */
export function isKept({ last, read }: DeviceState, own: string): boolean {
  return read === own || last === own
}

/**
 * Whether the server knows less than it has told this sidecar: it was restored from a backup, or has lost its last writes. If only the
 * oldest events are missing, it has not: the stream has a maximum length.
 */
export function hasGoneBack({ last, read }: DeviceState, own: string): boolean {
  return own !== '' && (isBefore(last, own) || (read !== '' && read !== own))
}

/** Compares ids of events: time and number. */
function isBefore(id: string, other: string): boolean {
  const [[time = 0, number = 0], [otherTime = 0, otherNumber = 0]] = [id, other].map((each) =>
    each.split('-').map(Number),
  ) as [number[], number[]]
  return time < otherTime || (time === otherTime && number < otherNumber)
}

/** Sets `state` to salt and fingerprint, and `present` to the epoch: empty if any of these is missing. */
const PRESENT = `
local state = redis.call('HMGET', KEYS[1], 'salt', 'fingerprint')
local present = state[1] and state[2] and tonumber(epoch or '') and epoch or ''
`

/**
 * Enters an epoch: every token of an earlier one is void, except those of the names in `since`. The list of grants also contains the epoch,
 * which has no name and so goes.
 */
const ENTER_EPOCH = `
local function enter(number, since)
  epoch = string.format('%.0f', number)
  redis.call('HSET', KEYS[1], 'epoch', epoch, 'since', since)
  if since == '' then
    redis.call('UNLINK', p .. 'grants')
  else
    for _, grant in ipairs(redis.call('ZRANGE', p .. 'grants', 0, -1)) do
      if not first(since, grant) then redis.call('ZREM', p .. 'grants', grant) end
    end
  end
  redis.call('ZADD', p .. 'grants', '+inf', epoch)
  issued()
  announce('epoch', epoch, 'since', since)
end

local function after(known)
  return math.max(now, (tonumber(epoch) or 0) + 1, known + 1)
end
`

/**
 * Revokes all grants for an operator. `ARGV`: prefix, latest epoch that the sidecar knows. Returns `{number of grants, epoch}`, without an
 * epoch if there is no state.
 */
export const REVOKE_ALL = tokenScript(
  'revoke',
  `${ENTER_EPOCH}
if not epoch then return {0} end
expire()
local count = grants()
enter(after(tonumber(ARGV[2])), '')
announce('revoked all', '')
return {count, epoch}
`,
)

/**
 * Publishes the fingerprint of the password, and enters an epoch. Does nothing if the present epoch is not the expected one (an empty
 * text: none): another sidecar was first.
 *
 * `ARGV`: prefix, expected epoch, latest epoch that the sidecar knows, salt, fingerprint, names whose tokens stay (`since`).
 * Returns `{number of grants revoked, epoch}` or `{}`.
 */
export const PUBLISH = tokenScript(
  'state',
  `${ENTER_EPOCH}
${PRESENT}
if present ~= ARGV[2] then return {} end
expire()
local count = grants()
redis.call('HSET', KEYS[1], 'salt', ARGV[4], 'fingerprint', ARGV[5])
enter(after(tonumber(ARGV[3])), ARGV[6])
if ARGV[6] ~= '' then count = count - grants() end
return {count, epoch}
`,
)

/**
 * Reads the state of the device. `ARGV`: prefix, id of the event that the sidecar has read last.
 * Returns `{epoch, salt, fingerprint, last, read, since}` as in `DeviceState`, or `{}` if there is no state.
 */
const READ_STATE = tokenScript(
  'state',
  `
${PRESENT}
if present == '' then return {} end
local last = redis.call('XREVRANGE', p .. 'events', '+', '-', 'COUNT', 1)[1] or {'0-0'}
local read = redis.call('XREVRANGE', p .. 'events', ARGV[2], '-', 'COUNT', 1)[1] or {''}
return {epoch, state[1], state[2], last[1], read[1], redis.call('HGET', KEYS[1], 'since') or ''}
`,
)

/** The id before the first event. */
export const NO_EVENT = '0-0'

/**
 * Reads the state that all sidecars of the device share; undefined if there is none. Rejects with `StoreUnavailable`.
 *
 * @param last the id of the last event that this sidecar has read
 */
export async function readState(
  store: Pick<SharedStore, 'prefix' | 'run'>,
  last: string,
): Promise<DeviceState | undefined> {
  const reply = await runScript(store, READ_STATE, last === '' ? NO_EVENT : last)
  const [epoch = '', salt = '', fingerprint = '', id = '', read = '', since = ''] = reply.map(String)
  return epoch === '' ? undefined : { epoch, since, salt, fingerprint, last: id, read }
}
