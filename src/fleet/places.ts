import { hash } from 'node:crypto'
import type { Clock } from '../system/clock.ts'
import {
  afterEvent,
  afterWord,
  type DeviceWall,
  type FleetWall,
  type PlacesEvent,
  readWall,
  textOfWall,
} from './device-wall.ts'
import { runScript, runScriptDurably, tokenScript } from './scripts.ts'
import { listOf, type SharedStore, type StoreReply, unlessUnavailable } from './shared-store.ts'
import { type Beat, divide, GONE, LIFE, readBeat, textOfBeat } from './shares.ts'

/** The wall of the device, and what this sidecar may have of the places. */
export interface SharedPlaces extends FleetWall {
  /** The places of all sidecars together. */
  readonly most: number
  /** The places of this sidecar. */
  readonly share: number
  /** The end of this share (ms on the monotonic clock): after it the sidecar has one place, even if the process was suspended meanwhile. */
  readonly until: number
}

/** What a sidecar reports about itself. */
export interface Standing extends Pick<Beat, 'level' | 'isActive'> {
  /** Its own id, which survives a restart. */
  readonly sidecar: string
  /** Its requests that have a place now, and those that wait for one. */
  readonly inside: number
  readonly waiting: number
  readonly known: FleetWall | undefined
}

/** The places of one service, at this sidecar. */
export interface PlacesMember {
  /** The service and its device. */
  readonly name: string
  /** The most places that all sidecars may have together, whatever the device can take. */
  readonly max: number
  standing(): Standing
  /** The events that the store does not have yet, the oldest first. */
  readonly events: PlacesEvent[]
  adopt(places: SharedPlaces): void
  /** Called when the store has not answered for `HOLD`, or not since the start: at most one place is left. */
  alone(): void
}

/** A sidecar that hears nothing from the store for this time (ms) has one place: it cannot tell whether the others hear its beats. */
const HOLD = 20_000
/** After this time (ms), every sidecar that beats has heard of a change. */
const SETTLE = 2_000
/** The store forgets a service for which no sidecar has asked for this time (ms; 13 weeks). */
const KEPT = 13 * 168 * 3_600_000
/** How often a sidecar without a wall and without requests beats (ms). News come at once, by the stream. */
const QUIET = 10_000
/** The most questions in a row of a sidecar that has lost a race. After them it waits for its next beat. */
const ROUNDS = 10

/**
 * Stores the beat of a sidecar, and the wall. Compare and set: each is stored only if the store still has the value that the sidecar has
 * read last, so a message that was under way for long changes nothing. Returns the time and all fields of the service.
 *
 * `ARGV`: prefix, name, sidecar, its beat as read last, its next beat, the wall as read last, the next wall (empty: the same), and `news`
 * if the others have to divide the places anew.
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
if swap(ARGV[3], ARGV[4], string.format('%.0f %s', now, ARGV[5])) and ARGV[8] == 'news' then announce('places', ARGV[2]) end
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
  /** The places of this sidecar; undefined before the first answer of the store. */
  share: number | undefined
  /** True if it has what is its own, and no number has broken the device. */
  isSettled: boolean
  /** The name of the division that this sidecar keeps to, and since when (ms). */
  view: string
  viewSince: number
  /** Its own beat and the wall, as read last. */
  beat: string
  wall: string
  /** Whether the others know it as one with requests; undefined if they do not know it. */
  passesForActive: boolean | undefined
  isAsking: boolean
  /** True if there is a reason to ask again. */
  again: boolean
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
 * Divides the places at the device among the sidecars of a fleet: the most that the configuration allows, or fewer if that broke the device.
 * No request waits for the store: a sidecar beats once a second while it has requests, a wall is known, or its share is due to grow;
 * otherwise every ten seconds, and when the stream of the store announces news.
 *
 * A share falls at once. It grows only after every sidecar that beats has confirmed the same division, so the sum of the shares never
 * exceeds the wall: each sidecar has at most its share of the last division in which a share has grown. A sidecar that hears nothing for
 * 20 s limits itself to one place, and after 30 s the others count one for it. Without a wall, a sidecar that starts has one place at once.
 */
export function createFleetPlaces({ store, clock, onBug }: Dependencies) {
  const members: Membership[] = []
  const life = new AbortController()

  /** Sends a beat, and perhaps a wall. Returns what the store has after that, and whether it took the beat. */
  async function exchange(each: Membership, proposal?: Proposal, hasLeft = false) {
    const { member, share, view, beat, wall } = each
    const { sidecar, inside, level, isActive } = member.standing()
    const keepsTo = share !== undefined && inside <= share ? view : ''
    const next = textOfBeat({ level, isActive, hasLeft, view: keepsTo, share: share ?? 0 })
    const name = hash('sha256', member.name, 'base64url')
    const news = isActive === each.passesForActive ? '' : 'news'
    const ask = proposal === undefined ? runScript : runScriptDurably
    const args = [name, sidecar, beat, next, wall, proposal?.wall ?? '', news]
    const [time, listed] = await ask(store, PLACES, ...args)
    const fields = fieldsIn(listed)
    each.beat = fields.get(sidecar) ?? ''
    each.wall = fields.get('wall') ?? ''
    const isTaken = each.beat === `${time} ${next}`
    if (isTaken) each.passesForActive = isActive
    return { kept: keptIn(Number(time), fields), isTaken }
  }

  async function askNow(each: Membership): Promise<void> {
    const { member } = each
    let proposal: Proposal | undefined
    for (let round = 0; round < ROUNDS; round++) {
      each.again = false
      const now = clock.monotonic()
      const { kept, isTaken } = await exchange(each, proposal)
      if (proposal?.event !== undefined && each.wall === proposal.wall) drop(member, proposal.event)
      proposal = undefined
      if (!isTaken) {
        // The store's beat is now the one read last. After a restart, it is that of the earlier process.
        each.share ??= shareBefore(each, kept)
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
    const told = known === undefined ? wall : afterWord(wall, known, now)
    if (told !== wall) return { wall: textOfWall(told) }
    const others = [...beats]
      .filter(([id, { at }]) => id !== sidecar && now - at < LIFE)
      .map(([, beat]) => beat)
    for (const event of [...member.events]) {
      const ago = Math.round(clock.monotonic() - event.at)
      // The next beat of each other sidecar says how many requests it had at the device when that broke.
      if (event.kind === 'broke' && ago < SETTLE && others.some(({ at }) => at < now - ago)) continue
      const sum = others.reduce((all, { level }) => all + level, 0)
      const next = afterEvent(wall, event, { now, ago, others: sum })
      if (next !== wall) return { wall: textOfWall(next), event }
      drop(member, event)
    }
    return undefined
  }

  function takeShare(each: Membership, { now, age, wall, beats }: Kept): void {
    const { member } = each
    const isWalled = wall.sum > 0
    const most = isWalled ? Math.min(wall.sum, member.max) : member.max
    const { view, shareOf, isConfirmed } = divide(most, beats, now)
    const fair = shareOf(member.standing().sidecar)
    const before = each.share ?? (isWalled ? 0 : 1)
    if (view !== each.view) {
      each.view = view
      each.viewSince = clock.monotonic()
      each.again = true
    }
    // A server that was emptied does not know yet the places of sidecars whose beats it has not heard.
    const isKnown = age >= LIFE || !isWalled
    const mayGrow = isConfirmed && isKnown && clock.monotonic() - each.viewSince >= SETTLE
    const share = mayGrow ? fair : Math.min(before, fair)
    // The next beat says it.
    if (share !== each.share) each.again = true
    each.share = share
    each.isSettled = !isWalled && share === fair
    const { version, sum } = wall
    member.adopt({ version, sum, most, share, until: each.heardAt + HOLD })
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
    each.share = Math.min(each.share ?? 1, 1)
    each.isSettled = false
    each.member.alone()
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
        ...{ share: undefined, isSettled: false, view: '', viewSince: never, beat: '', wall: '' },
        ...{ passesForActive: undefined, isAsking: false, again: false, heardAt: never },
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
        const { inside, waiting } = each.member.standing()
        const isBusy = !each.isSettled || events.length + inside + waiting > 0
        if ((isBusy || now - each.heardAt >= QUIET) && !each.isAsking) void ask(each)
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
