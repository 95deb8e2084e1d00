import { hash } from 'node:crypto'
import type { Clock } from '../system/clock.ts'
import {
  afterEvent,
  afterTime,
  type DeviceWall,
  type FleetWall,
  mostUnder,
  type PlacesEvent,
  readWall,
  retold,
  textOfWall,
  works,
} from './device-wall.ts'
import { tokenScript } from './scripts.ts'
import { listOf, type SharedStore, type StoreReply, StoreUnavailable } from './shared-store.ts'
import { type Beat, divide, GONE, LIFE, readBeat, textOfBeat } from './shares.ts'

/** What a sidecar hears of the places. */
export interface SharedPlaces extends FleetWall {
  /** The places of this sidecar; 0: the others have not made room yet. Undefined if there is no wall. */
  readonly share: number | undefined
  /** Until when it has these places; one is left after that, also if the process stood still meanwhile (ms on the monotonic clock). */
  readonly until: number
}

/** What a sidecar says of itself. */
export interface Standing extends Pick<Beat, 'level' | 'isActive' | 'carries'> {
  /** Its own id, which survives a restart. */
  readonly sidecar: string
  /** The most requests that it sends to the device at once. */
  readonly places: number
  readonly inside: number
  readonly known: FleetWall | undefined
}

/** The places of one service, at this sidecar. */
export interface PlacesMember {
  /** The service and its device. */
  readonly name: string
  standing(): Standing
  /** What the store was not told yet, the oldest first. */
  readonly events: PlacesEvent[]
  adopt(places: SharedPlaces): void
  /** The store has not answered for long, or not since the start. Returns whether one place is left, because places are shared. */
  alone(): boolean
}

/** A sidecar that hears nothing from the store for so long (ms) has one place: it cannot tell whether the others hear it. */
const HOLD = 20_000
/** What has held for so long (ms) is known to all that beat. */
const SETTLE = 2_000
/** What no sidecar asks for is forgotten after this time (ms). */
const KEPT = 13 * 168 * 3_600_000
/** How often the store is asked while nothing is known and there are no requests (ms): its stream tells of news at once. */
const QUIET = 10_000
/** How often a sidecar that has lost a race asks again before it waits for its next turn. */
const ROUNDS = 10

/**
 * Keeps what a sidecar says, and the wall. Each replaces what the sidecar has read last, or nothing: so a message that was long under way
 * changes nothing. Returns the time and all that is kept of the service.
 *
 * `ARGV`: prefix, name, sidecar, its beat as it has read it, its next beat, the wall as it has read it, the next wall (empty: the same).
 */
export const PLACES = tokenScript(
  'places',
  `
local d = p .. 'p:' .. ARGV[2]

local function swap(field, before, after)
  local same = (redis.call('HGET', d, field) or '') == before
  if same then redis.call('HSET', d, field, after) end
  return same
end

local kept = redis.call('HGETALL', d)
for i = 1, #kept, 2 do
  local at = tonumber(string.match(kept[i + 1], '^(%d+) '))
  if at and at < now - ${GONE} then redis.call('HDEL', d, kept[i]) end
end
swap('since', '', string.format('%.0f', now))
if ARGV[7] ~= '' and swap('wall', ARGV[6], ARGV[7]) then announce('places', ARGV[2]) end
swap(ARGV[3], ARGV[4], string.format('%.0f %s', now, ARGV[5]))
redis.call('PEXPIRE', d, ${KEPT})
return {string.format('%.0f', now), redis.call('HGETALL', d)}
`,
)

interface Dependencies {
  readonly store: SharedStore
  readonly clock: Clock
  readonly onBug: (error: unknown) => void
}

interface Asking {
  readonly member: PlacesMember
  /** The places of this sidecar; undefined without a wall. */
  share: number | undefined
  /** The division that it keeps to, and since when (ms). */
  view: string
  viewSince: number
  /** Its own beat and the wall, as it has read them last. */
  beat: string
  wall: string
  /** It had places before it heard of a wall. */
  hasStarted: boolean
  isAsking: boolean
  /** There is news to ask about. */
  again: boolean
  askedAt: number
  /** When it sent the last beat that was kept. */
  heardAt: number
}

/** What the store keeps of one service. */
interface Kept {
  readonly now: number
  /** How long (ms) it has kept that: a server that was emptied does not know all sidecars yet. */
  readonly age: number
  readonly wall: DeviceWall
  readonly beats: ReadonlyMap<string, Beat>
}

interface Proposal {
  readonly wall: string
  readonly event?: PlacesEvent
}

export type FleetPlaces = ReturnType<typeof createFleetPlaces>

/**
 * Shares what breaks the device among the sidecars of a fleet: the places of all together stay below it. Nothing is asked of the store on the
 * way of a request: a sidecar beats once a second while there is a wall or it has requests, else when the stream of the store tells of news.
 *
 * A share falls at once. It grows only after every sidecar that beats has said that it keeps to the same division, so the sum of all is never
 * above the wall: each has at most its share of the last division in which any has grown. A sidecar that is silent for 20 s has one place by its own
 * clock, and the others count one for it after 30 s.
 */
export function createFleetPlaces({ store, clock, onBug }: Dependencies) {
  const members: Asking[] = []
  const life = new AbortController()

  /** Beats, and proposes a wall. Returns what the store keeps then, and whether it took the beat. */
  async function exchange(each: Asking, proposal?: Proposal, hasLeft = false) {
    const { member, share, view, beat, wall } = each
    const { sidecar, places, inside, ...said } = member.standing()
    const keepsTo = share !== undefined && inside <= share ? view : ''
    const next = textOfBeat({ ...said, hasLeft, view: keepsTo, share: share ?? places })
    const name = hash('sha256', member.name, 'base64url')
    const args = [store.prefix, name, sidecar, beat, next, wall, proposal?.wall ?? '']
    const run = proposal === undefined ? store.run : store.runDurably
    const [time, listed] = listOf(await run(PLACES, [`${store.prefix}state`], args))
    const fields = fieldsIn(listed)
    each.beat = fields.get(sidecar) ?? ''
    each.wall = fields.get('wall') ?? ''
    return { kept: keptIn(Number(time), fields), isTaken: each.beat === `${time} ${next}` }
  }

  async function askNow(each: Asking): Promise<void> {
    const { member } = each
    let proposal: Proposal | undefined
    for (let round = 0; round < ROUNDS; round++) {
      each.again = false
      const now = clock.monotonic()
      each.askedAt = now
      const { kept, isTaken } = await exchange(each, proposal)
      if (proposal?.event !== undefined && each.wall === proposal.wall) drop(member, proposal.event)
      proposal = undefined
      if (!isTaken) {
        // It has read what it has said last.
        if (!each.hasStarted) each.share = shareBefore(each, kept)
        continue
      }
      each.heardAt = now
      proposal = propose(each, kept)
      if (proposal !== undefined) continue
      takeShare(each, kept)
      if (!each.again) return
    }
  }

  /** The next wall, if this sidecar knows of a change. Forgets events that change nothing. */
  function propose({ member }: Asking, { now, wall, beats }: Kept): Proposal | undefined {
    const { sidecar, known } = member.standing()
    if (known !== undefined && known.version > wall.version) return { wall: textOfWall(retold(known, now)) }
    const others = [...beats]
      .filter(([id, { at }]) => id !== sidecar && now - at < LIFE)
      .map(([, beat]) => beat)
    for (const event of [...member.events]) {
      const ago = Math.round(clock.monotonic() - event.at)
      // What they had there when the device broke, they say in their next beat.
      if (event.kind === 'broke' && ago < SETTLE && others.some(({ at }) => at < now - ago)) continue
      const sum = others.reduce((all, { level }) => all + level, 0)
      const next = afterEvent(wall, event, { now, ago, others: sum, known: known?.version ?? 0 })
      if (next !== wall) return { wall: textOfWall(next), event }
      drop(member, event)
    }
    const next = afterTime(wall, now)
    if (next !== wall) return { wall: textOfWall(next) }
    if (wall.kind !== 'tried') return undefined
    const { isConfirmed, isCarried } = divide(wall.sum + 1, beats, now)
    return isConfirmed && isCarried ? { wall: textOfWall(works(wall, now)) } : undefined
  }

  function takeShare(each: Asking, { now, age, wall, beats }: Kept): void {
    const { member } = each
    const { sidecar, places } = member.standing()
    const most = mostUnder(wall)
    const heard = { ...wall, left: Math.max(0, wall.till - now), until: each.heardAt + HOLD }
    if (most === undefined) {
      each.share = undefined
      each.view = ''
      each.hasStarted = true
      member.adopt({ ...heard, share: undefined })
      return
    }
    const { view, shareOf, isConfirmed } = divide(most, beats, now)
    const fair = shareOf(sidecar)
    const before = each.share ?? (each.hasStarted ? places : 0)
    if (view !== each.view) {
      each.view = view
      each.viewSince = clock.monotonic()
      each.again = true
    }
    const mayGrow = isConfirmed && clock.monotonic() - each.viewSince >= SETTLE
    // A server that was emptied does not know yet what those have that it has not heard.
    const full = age < LIFE ? Math.min(fair, Math.max(before, 1)) : fair
    each.share = mayGrow ? full : Math.min(before, fair)
    each.hasStarted = true
    member.adopt({ ...heard, share: each.share })
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

  function letGo(each: Asking): void {
    if (clock.monotonic() - each.heardAt < HOLD) return
    each.hasStarted = true
    if (each.member.alone()) each.share = 1
  }

  return {
    /** Resolves when the store has answered, or has not. */
    async join(member: PlacesMember): Promise<void> {
      const never = Number.NEGATIVE_INFINITY
      const each: Asking = {
        member,
        share: undefined,
        ...{ view: '', viewSince: never, beat: '', wall: '', hasStarted: false },
        ...{ isAsking: false, again: false, askedAt: never, heardAt: never },
      }
      members.push(each)
      await ask(each)
    },
    /** The service has another device from now on, or other bounds. Resolves when the store has answered, or has not. */
    async leave(member: PlacesMember): Promise<void> {
      const at = members.findIndex((each) => each.member === member)
      const [each] = at < 0 ? [] : members.splice(at, 1)
      if (each !== undefined && store.up) await exchange(each, undefined, true).catch(() => {})
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
        const { events } = each.member
        const isBusy = each.share !== undefined || events.length > 0 || each.member.standing().inside > 0
        if ((isBusy || now - each.askedAt >= QUIET) && !each.isAsking) void ask(each)
      }
    },
    /** Tells the store that the places of this sidecar are free, unless it starts again soon. Resolves when the store has answered, or has not. */
    async close(): Promise<void> {
      life.abort()
      if (!store.up) return
      await Promise.allSettled(members.map((each) => exchange(each, undefined, true)))
    },
  }
}

/** The places that this sidecar had before its restart, as long as the others leave them to it. */
function shareBefore({ beat }: Asking, { now }: Kept): number | undefined {
  const before = readBeat(beat)
  return before !== undefined && now - before.at < LIFE ? before.share : undefined
}

function drop({ events }: PlacesMember, event: PlacesEvent): void {
  const at = events.indexOf(event)
  if (at >= 0) events.splice(at, 1)
}

function fieldsIn(reply: StoreReply | undefined): ReadonlyMap<string, string> {
  const texts = listOf(reply).map(String)
  return new Map(texts.flatMap((name, at) => (at % 2 === 0 ? [[name, texts[at + 1] ?? ''] as const] : [])))
}

function keptIn(now: number, fields: ReadonlyMap<string, string>): Kept {
  const beats = [...fields].flatMap(([id, text]) => {
    const beat = readBeat(text)
    return beat === undefined ? [] : [[id, beat] as const]
  })
  const age = now - Number(fields.get('since'))
  return { now, age, wall: readWall(fields.get('wall') ?? ''), beats: new Map(beats) }
}
