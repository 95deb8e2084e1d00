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
  textOfWall,
  wallOfKnown,
  works,
} from './device-wall.ts'
import { runScript, runScriptDurably, tokenScript } from './scripts.ts'
import { listOf, type SharedStore, type StoreReply, unlessUnavailable } from './shared-store.ts'
import { type Beat, divide, GONE, LIFE, readBeat, textOfBeat } from './shares.ts'

/** The wall of the device, and what this sidecar may have of its places. */
export interface SharedPlaces extends FleetWall {
  /** The places of this sidecar; 0: the others have not made room yet. Undefined if there is no wall. */
  readonly share: number | undefined
  /** The end of this share (ms on the monotonic clock): after it the sidecar has one place, even if the process was suspended meanwhile. */
  readonly until: number
}

/** What a sidecar reports about itself. */
export interface Standing extends Pick<Beat, 'level' | 'isActive' | 'carries'> {
  /** Its own id, which survives a restart. */
  readonly sidecar: string
  /** The most requests that it sends to the device at once. */
  readonly places: number
  /** Its requests that have a place now. */
  readonly inside: number
  readonly known: FleetWall | undefined
}

/** The places of one service, at this sidecar. */
export interface PlacesMember {
  /** The service and its device. */
  readonly name: string
  standing(): Standing
  /** The events that the store does not have yet, the oldest first. */
  readonly events: PlacesEvent[]
  adopt(places: SharedPlaces): void
  /** Called when the store has not answered for `HOLD`, or not since the start. Returns whether the places are shared: then one is left. */
  alone(): boolean
}

/** A sidecar that hears nothing from the store for this time (ms) has one place: it cannot tell whether the others hear its beats. */
const HOLD = 20_000
/** After this time (ms), every sidecar that beats has heard of a change. */
const SETTLE = 2_000
/** The store forgets a service for which no sidecar has asked for this time (ms; 13 weeks). */
const KEPT = 13 * 168 * 3_600_000
/** How often a sidecar without a wall and without requests asks the store (ms). News come at once, by the stream. */
const QUIET = 10_000
/** The most questions in a row of a sidecar that has lost a race. After them it waits for its next beat. */
const ROUNDS = 10

/**
 * Stores the beat of a sidecar, and the wall. Compare and set: each is stored only if the store still has the value that the sidecar has
 * read last, so a message that was under way for long changes nothing. Returns the time and all fields of the service.
 *
 * `ARGV`: prefix, name, sidecar, its beat as read last, its next beat, the wall as read last, the next wall (empty: the same).
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

/** A service of this sidecar, and what the store has said about its places. */
interface Membership {
  readonly member: PlacesMember
  /** The places of this sidecar; undefined without a wall. */
  share: number | undefined
  /** The name of the division that this sidecar keeps to, and since when (ms). */
  view: string
  viewSince: number
  /** Its own beat and the wall, as read last. */
  beat: string
  wall: string
  /** True once this sidecar has had places: its first share of a wall then starts from them, otherwise from 0. */
  hasStarted: boolean
  isAsking: boolean
  /** True if there is a reason to ask again. */
  again: boolean
  askedAt: number
  /** When this sidecar sent the last beat that the store took. */
  heardAt: number
}

/** What the store has of one service. */
interface Kept {
  readonly now: number
  /** The age of these data (ms): a server that was emptied does not know all sidecars yet. */
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
 * Shares the wall of the device among the sidecars of a fleet: their places together stay below it. No request waits for the store: a
 * sidecar beats once a second while it has requests or a wall is known, otherwise when the stream of the store announces news.
 *
 * A share falls at once. It grows only after every sidecar that beats has confirmed the same division, so the sum of the shares never
 * exceeds the wall: each sidecar has at most its share of the last division in which a share has grown. A sidecar that hears nothing for
 * 20 s limits itself to one place, and after 30 s the others count one for it.
 */
export function createFleetPlaces({ store, clock, onBug }: Dependencies) {
  const members: Membership[] = []
  const life = new AbortController()

  /** Sends a beat, and perhaps a wall. Returns what the store has after that, and whether it took the beat. */
  async function exchange(each: Membership, proposal?: Proposal, hasLeft = false) {
    const { member, share, view, beat, wall } = each
    const { sidecar, places, inside, ...said } = member.standing()
    const keepsTo = share !== undefined && inside <= share ? view : ''
    const next = textOfBeat({ ...said, hasLeft, view: keepsTo, share: share ?? places })
    const name = hash('sha256', member.name, 'base64url')
    const ask = proposal === undefined ? runScript : runScriptDurably
    const args = [name, sidecar, beat, next, wall, proposal?.wall ?? '']
    const [time, listed] = await ask(store, PLACES, ...args)
    const fields = fieldsIn(listed)
    each.beat = fields.get(sidecar) ?? ''
    each.wall = fields.get('wall') ?? ''
    return { kept: keptIn(Number(time), fields), isTaken: each.beat === `${time} ${next}` }
  }

  async function askNow(each: Membership): Promise<void> {
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
        // The store's beat is now the one read last. After a restart, it is that of the earlier process.
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

  /** The next wall, if this sidecar knows of a change. Drops the events that change nothing. */
  function propose({ member }: Membership, { now, wall, beats }: Kept): Proposal | undefined {
    const { sidecar, known } = member.standing()
    if (known !== undefined && known.version > wall.version)
      return { wall: textOfWall(wallOfKnown(known, now)) }
    const others = [...beats]
      .filter(([id, { at }]) => id !== sidecar && now - at < LIFE)
      .map(([, beat]) => beat)
    for (const event of [...member.events]) {
      const ago = Math.round(clock.monotonic() - event.at)
      // The next beat of each other sidecar says how many requests it had at the device when that broke.
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

  function takeShare(each: Membership, { now, age, wall, beats }: Kept): void {
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
    // A server that was emptied does not know yet the places of sidecars whose beats it has not heard.
    const full = age < LIFE ? Math.min(fair, Math.max(before, 1)) : fair
    each.share = mayGrow ? full : Math.min(before, fair)
    each.hasStarted = true
    member.adopt({ ...heard, share: each.share })
  }

  async function ask(each: Membership): Promise<void> {
    each.again = true
    if (each.isAsking || life.signal.aborted) return
    each.isAsking = true
    await askNow(each).catch((error: unknown) => {
      unlessUnavailable(onBug)(error)
      fallBack(each)
    })
    each.isAsking = false
  }

  /** Limits this sidecar to one place if the store has not answered for `HOLD`. */
  function fallBack(each: Membership): void {
    if (clock.monotonic() - each.heardAt < HOLD) return
    each.hasStarted = true
    if (each.member.alone()) each.share = 1
  }

  /** Tells the store, if it can be reached, that the places of these members are free. Never rejects. */
  async function giveBack(leaving: readonly Membership[]): Promise<void> {
    if (store.up) await Promise.allSettled(leaving.map((each) => exchange(each, undefined, true)))
  }

  return {
    /** Adds a service. Resolves when the store has answered, or has failed to. */
    async join(member: PlacesMember): Promise<void> {
      const never = Number.NEGATIVE_INFINITY
      const each: Membership = {
        member,
        share: undefined,
        ...{ view: '', viewSince: never, beat: '', wall: '', hasStarted: false },
        ...{ isAsking: false, again: false, askedAt: never, heardAt: never },
      }
      members.push(each)
      await ask(each)
    },
    /** Removes a member whose service has another device from now on, or other bounds, and gives its places back. Never rejects. */
    async leave(member: PlacesMember): Promise<void> {
      const at = members.findIndex((each) => each.member === member)
      await giveBack(at < 0 ? [] : members.splice(at, 1))
    },
    /** Asks at once, because of an event here or at another sidecar. Resolves when the store has answered, or has failed to. */
    async news(): Promise<void> {
      await Promise.all(members.map(ask))
    },
    /** Sends the beats that are due. Call it about once a second. */
    look(): void {
      const now = clock.monotonic()
      for (const each of members) {
        fallBack(each)
        const { events } = each.member
        const isBusy = each.share !== undefined || events.length > 0 || each.member.standing().inside > 0
        if ((isBusy || now - each.askedAt >= QUIET) && !each.isAsking) void ask(each)
      }
    },
    /** Tells the store that this sidecar stops: its places are free if it does not start again soon. Never rejects. */
    async close(): Promise<void> {
      life.abort()
      await giveBack(members)
    },
  }
}

/** The places that this sidecar had before its restart; undefined if the others no longer keep them for it. */
function shareBefore({ beat }: Membership, { now }: Kept): number | undefined {
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
