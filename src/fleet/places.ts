import { hash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../system/clock.ts'
import { SAME_OUTAGE } from './same-outage.ts'
import { tokenScript } from './scripts.ts'
import { listOf, type SharedStore, type StoreReply, StoreUnavailable } from './shared-store.ts'

/**
 * What the fleet knows of the sum of all requests at the device. `broke`: one more broke it. `tried`: one more is tried now. `struck`: it had
 * no room for that. `barred`: one more broke it again. `none`: nothing, or nothing any more. `doubted`: it was away with no more than the sum. `works`: one more works.
 * `lifted`: the operator says so.
 */
export type FleetWallKind = (typeof KINDS)[number]
const KINDS = ['none', 'broke', 'tried', 'struck', 'barred', 'doubted', 'works', 'lifted'] as const

/** What the fleet knows, as one sidecar has heard it. */
export interface FleetWall {
  /** A later one replaces it. */
  readonly version: number
  readonly kind: FleetWallKind
  readonly sum: number
  /** When one more is tried, from now (ms). */
  readonly left: number
}

/** The answer of the store. */
export interface SharedPlaces extends FleetWall {
  /** How long ago the device broke (ms). */
  readonly ago: number
  /** The places of this sidecar; 0: the others have not made room yet. Undefined if there is no wall. */
  readonly share: number | undefined
}

/** What a sidecar says of itself. */
export interface Standing {
  /** Its own id, which survives a restart. */
  readonly sidecar: string
  /** The most requests that it sends to the device at once; undefined if it has just started. */
  readonly share: number | undefined
  readonly inside: number
  /** It has had requests at the device lately. */
  readonly isActive: boolean
  /** As many as it may have are there now, and so many have worked. */
  readonly carries: boolean
  readonly known: FleetWall | undefined
}

/**
 * What has happened to the device at a sidecar. `broke`: one more than `limit` broke it. `had`: it had `limit` requests that worked when the
 * device went away. `struck`: the attempt with one more did not work. `doubted`: the device was away with no more. `lifted`: the operator
 * says so. `left`: the sidecar stops.
 */
export interface PlacesEvent {
  readonly kind: 'broke' | 'had' | 'struck' | 'doubted' | 'lifted' | 'left'
  readonly limit: number
  /** When it happened (ms on the monotonic clock). */
  readonly at: number
}

/** The places of one service, at this sidecar. */
export interface PlacesMember {
  /** The service and its device. */
  readonly name: string
  standing(): Standing
  /** What the store was not told yet, the oldest first. */
  readonly events: PlacesEvent[]
  adopt(places: SharedPlaces): void
  /** The store has not answered for long, or not since the start: one place is left where places are shared. */
  alone(): void
}

/**
 * A sidecar that hears nothing from the store for so long (ms) has one place: it cannot tell whether the others hear it. After `LIFE` (ms) they
 * share the places of a silent one, except that one. What it had in flight has ended by then. Long enough for a restart.
 */
const HOLD = 20_000
const LIFE = 30_000
/** A sidecar that was silent for so long (ms) is gone: its tokens work no longer than that without the store, by default. */
const GONE = 3_600_000
/** A server that was emptied knows no shares yet: one that starts waits so long (ms), until those who run have told theirs. */
const SETTLE = 2_000
const WEEK = 168 * 3_600_000
/** What no sidecar asks for is forgotten after this time (ms). */
const KEPT = 13 * WEEK
/** How often the store is asked while nothing is known (ms): its stream tells of news at once. */
const QUIET = 10_000
/** The pause before a sidecar that waits for its places asks again (ms). */
const AGAIN = 100

/**
 * Tells the store how a sidecar stands and what has happened, and returns its share of the places.
 *
 * A share grows only into places that no other sidecar holds, and falls at once: so the sum of all is never above the wall. A sidecar holds
 * what it was given until it has said itself that it has less, or is silent: then it holds one. Each has at least one place. Those without
 * requests have one; the others share the rest in equal parts. A server that was emptied lets no share grow before all have told theirs.
 *
 * The wall is what worked when the device broke: the places of the sidecar that passed its own bound, and what the others had then. Each adds
 * its own part, once.
 *
 * `ARGV`: prefix, name, sidecar, share (empty: it has just started), requests at the device, whether it is active, whether it carries its share,
 * version, kind, sum and time left of what it knows, event (or empty), its limit, how long ago it was (ms).
 * Returns `{version, kind, sum, time left, ms since the device broke, share or -1}`.
 */
const PLACES = tokenScript(
  'places',
  `
local d, id = p .. 'p:' .. ARGV[2], ARGV[3]
local mine, inside, active, carries = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], ARGV[7]
redis.call('ZREMRANGEBYSCORE', d .. ':all', '-inf', now)
local read = redis.call('HMGET', d, 'version', 'kind', 'sum', 'till', 'at', 'since')
local version, kind, sum = tonumber(read[1] or 0), read[2] or 'none', tonumber(read[3] or 0)
local till, at, changed = tonumber(read[4] or 0), tonumber(read[5] or 0), false
local since = tonumber(read[6] or 0)

local function set(next, number, time)
  kind, sum, till, changed = next, number, time, true
  version = math.max(now, version + 1)
end

-- A server that was emptied learns it from the sidecars.
if tonumber(ARGV[8]) > version then
  version, kind, sum, changed = tonumber(ARGV[8]), ARGV[9], tonumber(ARGV[10]), true
  till, at, since = now + ARGV[11], math.min(now, version), now
end
local waits = kind == 'broke' or kind == 'struck'
if waits and now >= till then set('tried', sum, 0) end

-- A part that is told twice counts once.
local function adds()
  return redis.call('SET', d .. ':' .. string.format('%.0f', at) .. ':' .. id, 1, 'NX', 'PX', ${WEEK})
end

local event, limit, happened = ARGV[12], tonumber(ARGV[13]), now - ARGV[14]
if event == 'broke' or event == 'had' then
  if math.abs(happened - at) < ${SAME_OUTAGE} then
    if kind == 'broke' and limit > 0 and adds() then set('broke', sum + limit, till) end
    if kind == 'struck' and event == 'broke' then set('barred', sum, 0) end
  elseif event == 'broke' and happened > at then
    at = happened
    if kind == 'tried' then set('barred', sum, 0) else set('broke', limit, now + ${WEEK}) end
    adds()
  end
elseif event == 'struck' and kind == 'tried' then
  set('struck', sum, now + ${WEEK})
  at = happened
elseif event == 'doubted' and waits and tonumber(ARGV[8]) == version then
  set('doubted', sum, 0)
elseif event == 'lifted' then
  set('lifted', 0, 0)
  at = now
end

local most = kind == 'tried' and sum + 1 or (kind == 'broke' or kind == 'struck' or kind == 'barred') and sum
local share = -1
if event == 'left' then
  redis.call('ZADD', d .. ':all', 'XX', now + ${LIFE}, id)
elseif most then
  local isNew = redis.call('ZADD', d .. ':all', now + ${GONE}, id) == 1
  local all = redis.call('ZRANGE', d .. ':all', 0, -1)
  table.sort(all)
  local has, others, busy, before, full = mine, 0, 0, 0, carries == '1'
  for _, each in ipairs(all) do
    local stored = redis.call('GET', d .. ':' .. each)
    if not stored and each == id then
      stored = isNew and '0 0 0 0' or '1 1 0 0'
      if mine and not isNew then has = math.min(mine, 1) end
    end
    local got, taken, works, carried = string.match(stored or '1 1 0 0', '^(%d+) (%d+) (%d) (%d)$')
    if each == id then
      works = active
      if not mine then has = tonumber(got) end
    else
      others = others + taken
      full = full and carried == '1'
    end
    if works == '1' then
      busy = busy + 1
      if each < id then before = before + 1 end
    end
  end
  local fair, rest = 1, most - (#all - busy)
  if active == '1' then fair = math.max(1, math.floor(rest / busy) + (before < rest % busy and 1 or 0)) end
  if busy == 0 then fair = math.max(1, math.floor(most / #all)) end
  local free, age = most - others, now - since
  if age < ${LIFE} then free = math.min(free, age < ${SETTLE} and 0 or 1) end
  share = math.min(fair, math.max(has, free))
  if #all > most then share = math.max(1, share) end
  local taken = math.max(share, inside, mine or 0)
  redis.call('SET', d .. ':' .. id, table.concat({share, taken, active, carries}, ' '), 'PX', ${LIFE})
  if kind == 'tried' and full and others + share > sum then
    set('works', sum, 0)
    share = -1
  end
end

if changed then
  redis.call('HSET', d, 'version', string.format('%.0f', version), 'kind', kind, 'sum', sum)
  redis.call('HSET', d, 'till', string.format('%.0f', till), 'at', string.format('%.0f', at))
  redis.call('HSET', d, 'since', string.format('%.0f', since))
  announce('places', ARGV[2])
end
redis.call('PEXPIRE', d, ${KEPT})
return {string.format('%.0f', version), kind, sum, math.max(0, till - now), now - at, share}
`,
)

interface Dependencies {
  readonly store: SharedStore
  readonly clock: Clock
  readonly onBug: (error: unknown) => void
}

interface Asking {
  readonly member: PlacesMember
  isWalled: boolean
  isAsking: boolean
  /** There is news to ask about. */
  again: boolean
  askedAt: number
  /** When it asked the last question that was answered. */
  heardAt: number
}

export type FleetPlaces = ReturnType<typeof createFleetPlaces>

/**
 * Shares what breaks the device among the sidecars of a fleet: the places of all together stay below it. Nothing is asked of the store on the
 * way of a request: a sidecar asks once a second while there is a wall, else when the stream of the store tells of one.
 */
export function createFleetPlaces({ store, clock, onBug }: Dependencies) {
  const members: Asking[] = []
  const life = new AbortController()

  async function askOnce({ member }: Asking): Promise<SharedPlaces> {
    const [event] = member.events
    const places = await tell(member, event)
    if (event !== undefined && member.events.includes(event))
      member.events.splice(member.events.indexOf(event), 1)
    return places
  }

  async function tell(member: PlacesMember, event: PlacesEvent | undefined): Promise<SharedPlaces> {
    const { sidecar, share, inside, isActive, carries, known } = member.standing()
    const wall = [known?.version ?? 0, known?.kind ?? 'none', known?.sum ?? 0, Math.round(known?.left ?? 0)]
    const told = event && [event.kind, event.limit, Math.round(clock.monotonic() - event.at)]
    const run = event === undefined || event.kind === 'left' ? store.run : store.runDurably
    const reply = await run(
      PLACES,
      [`${store.prefix}state`],
      [
        store.prefix,
        hash('sha256', member.name, 'base64url'),
        sidecar,
        share ?? '',
        inside,
        isActive ? 1 : 0,
        carries ? 1 : 0,
        ...wall,
        ...(told ?? ['', 0, 0]),
      ],
    )
    return readPlaces(listOf(reply))
  }

  async function askNow(each: Asking): Promise<void> {
    do {
      each.again = false
      const now = clock.monotonic()
      each.askedAt = now
      const places = await askOnce(each)
      each.heardAt = now
      each.isWalled = places.share !== undefined
      each.member.adopt(places)
      if (places.share === 0) later(each)
    } while (each.again || each.member.events.length > 0)
  }

  async function ask(each: Asking): Promise<void> {
    each.again = true
    if (each.isAsking || life.signal.aborted) return
    each.isAsking = true
    await askNow(each).catch((error: unknown) => {
      if (!(error instanceof StoreUnavailable)) onBug(error)
      letGo(each)
    })
    each.isAsking = false
  }

  function letGo({ member, heardAt }: Asking): void {
    if (clock.monotonic() - heardAt >= HOLD) member.alone()
  }

  function later(each: Asking): void {
    pause(AGAIN, undefined, { ref: false, signal: life.signal }).then(
      () => ask(each),
      () => {},
    )
  }

  return {
    /** Resolves when the store has answered, or has not. */
    async join(member: PlacesMember): Promise<void> {
      const never = Number.NEGATIVE_INFINITY
      const times = { askedAt: never, heardAt: never }
      const each: Asking = { member, isWalled: false, isAsking: false, again: false, ...times }
      members.push(each)
      await ask(each)
    },
    /** Something has happened, here or elsewhere. Resolves when the store has answered, or has not. */
    async news(): Promise<void> {
      await Promise.all(members.map(ask))
    },
    /** Call it about once a second. */
    look(): void {
      const now = clock.monotonic()
      for (const each of members) {
        letGo(each)
        const isDue = each.isWalled || each.member.events.length > 0 || now - each.askedAt >= QUIET
        if (isDue && !each.isAsking) void ask(each)
      }
    },
    /** Tells the store that the places of this sidecar are free, unless it starts again soon. Resolves when the store has answered, or has not. */
    async close(): Promise<void> {
      life.abort()
      if (!store.up) return
      const at = clock.monotonic()
      const walled = members.filter(({ isWalled }) => isWalled)
      await Promise.allSettled(walled.map(({ member }) => tell(member, { kind: 'left', limit: 0, at })))
    },
  }
}

/** A reply that makes no sense is that of a server without a wall. */
function readPlaces([version, kind, sum, left, ago, share]: readonly StoreReply[]): SharedPlaces {
  return {
    version: Number(version),
    kind: KINDS.find((each) => each === kind) ?? 'none',
    sum: Number(sum),
    left: Number(left),
    ago: Number(ago),
    share: Number(share) >= 0 ? Number(share) : undefined,
  }
}
