import { hash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../system/clock.ts'
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
 * says so.
 */
export interface PlacesEvent {
  readonly kind: 'broke' | 'had' | 'struck' | 'doubted' | 'lifted'
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
  /** The store does not answer: what is known goes on. */
  alone(): void
}

/** A sidecar that says nothing for so long (ms) has left: the others share its places. Long enough for a restart. */
const LIFE = 15_000
/** Signs of one outage are at most so far apart (ms). */
const SAME = 5_000
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
 * what it was given until it has said itself that it has less. Each has at least one place. Those without requests have one; the others share
 * the rest in equal parts.
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
local read = redis.call('HMGET', d, 'version', 'kind', 'sum', 'till', 'at')
local version, kind, sum = tonumber(read[1] or 0), read[2] or 'none', tonumber(read[3] or 0)
local till, at, changed = tonumber(read[4] or 0), tonumber(read[5] or 0), false

local function set(next, number, time)
  kind, sum, till, changed = next, number, time, true
  version = math.max(now, version + 1)
end

-- A server that was emptied learns it from the sidecars.
if tonumber(ARGV[8]) > version then
  version, kind, sum, changed = tonumber(ARGV[8]), ARGV[9], tonumber(ARGV[10]), true
  till, at = now + ARGV[11], math.min(now, version)
end
local waits = kind == 'broke' or kind == 'struck'
if waits and now >= till then set('tried', sum, 0) end

-- A part that is told twice counts once.
local function adds()
  return redis.call('SET', d .. ':' .. string.format('%.0f', at) .. ':' .. id, 1, 'NX', 'PX', ${WEEK})
end

local event, limit, happened = ARGV[12], tonumber(ARGV[13]), now - ARGV[14]
if event == 'broke' or event == 'had' then
  if math.abs(happened - at) < ${SAME} then
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
if most then
  redis.call('ZADD', d .. ':all', now + ${LIFE}, id)
  local all = redis.call('ZRANGE', d .. ':all', 0, -1)
  table.sort(all)
  local held, others, busy, before, full = mine, 0, 0, 0, carries == '1'
  for _, each in ipairs(all) do
    local text = redis.call('GET', d .. ':' .. each) or '0 0 0 0'
    local got, taken, works, carried = string.match(text, '^(%d+) (%d+) (%d) (%d)$')
    if each == id then
      works = active
      if not mine then held = tonumber(got) end
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
  share = math.min(fair, math.max(held, most - others))
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
    const { sidecar, share, inside, isActive, carries, known } = member.standing()
    const wall = [known?.version ?? 0, known?.kind ?? 'none', known?.sum ?? 0, Math.round(known?.left ?? 0)]
    const told = event && [event.kind, event.limit, Math.round(clock.monotonic() - event.at)]
    const run = event === undefined ? store.run : store.runDurably
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
    if (event !== undefined && member.events.includes(event))
      member.events.splice(member.events.indexOf(event), 1)
    return readPlaces(listOf(reply))
  }

  async function askNow(each: Asking): Promise<void> {
    do {
      each.again = false
      each.askedAt = clock.monotonic()
      const places = await askOnce(each)
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
      each.member.alone()
    })
    each.isAsking = false
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
      const each: Asking = { member, isWalled: false, isAsking: false, again: false, askedAt: 0 }
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
        const isDue = each.isWalled || each.member.events.length > 0 || now - each.askedAt >= QUIET
        if (isDue && !each.isAsking) void ask(each)
      }
    },
    close: (): void => life.abort(),
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
