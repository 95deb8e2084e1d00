/** Reports of several sidecars that are at most this far apart (ms) are of the same outage of the device. */
export const SAME_OUTAGE = 5_000

const KINDS = ['none', 'broke', 'tried', 'struck', 'barred', 'doubted', 'works', 'lifted'] as const

/**
 * What the fleet knows about `sum`, the number of requests that all sidecars together have at the device.
 *
 * - `none`: nothing is known.
 * - `broke`: `sum + 1` requests broke the device, so `sum` is the limit. `sum + 1` is tried again later.
 * - `tried`: `sum + 1` is being tried.
 * - `struck`: the device had no room for `sum + 1`. The next try comes later.
 * - `barred`: `sum + 1` broke the device again. It is not tried any more.
 * - `doubted`: the device was away with no more than `sum` requests, so its outage had another cause. There is no limit.
 * - `works`: `sum + 1` works. There is no limit.
 * - `lifted`: the operator has lifted the limit.
 */
type FleetWallKind = (typeof KINDS)[number]

/** The wall of the device as one sidecar knows it. */
export interface FleetWall {
  /** A wall with a higher version replaces this one. */
  readonly version: number
  readonly kind: FleetWallKind
  readonly sum: number
  /** The time until `sum + 1` is tried (ms). */
  readonly left: number
}

/** The wall of the device in the store. Times are the server's (ms). */
export interface DeviceWall extends Omit<FleetWall, 'left'> {
  /** When `sum + 1` is tried. */
  readonly till: number
  /** When the device broke last. */
  readonly at: number
}

/**
 * What a sidecar has seen at the device. `broke`: `limit + 1` of its requests broke the device. `struck`: the try with one more did not
 * work. `doubted`: the device was away with no more than `limit`. `lifted`: the operator has lifted the wall.
 */
export interface PlacesEvent {
  readonly kind: 'broke' | 'struck' | 'doubted' | 'lifted'
  readonly limit: number
  /** When it happened (ms on the monotonic clock). */
  readonly at: number
}

const WEEK = 168 * 3_600_000

const NO_WALL: DeviceWall = { version: 0, kind: 'none', sum: 0, till: 0, at: 0 }

/** The wall in the text of the store; none if the text makes no sense. */
export function readWall(text: string): DeviceWall {
  const [, word, ...numbers] = /^([a-z]+) (\d+) (\d+) (\d+) (\d+)$/.exec(text) ?? []
  const kind = KINDS.find((each) => each === word)
  const [version = 0, sum = 0, till = 0, at = 0] = numbers.map(Number)
  return kind === undefined ? NO_WALL : { version, kind, sum, till, at }
}

export function textOfWall({ kind, ...wall }: DeviceWall): string {
  return [kind, ...[wall.version, wall.sum, wall.till, wall.at].map((number) => number.toFixed(0))].join(' ')
}

/** The most requests that all sidecars together may have at the device; undefined without a limit. */
export function mostUnder({ kind, sum }: Pick<FleetWall, 'kind' | 'sum'>): number | undefined {
  if (kind === 'tried') return sum + 1
  return kind === 'broke' || kind === 'struck' || kind === 'barred' ? sum : undefined
}

/** The wall as a sidecar knows it, for a server that was emptied. */
export function wallOfKnown({ version, kind, sum, left }: FleetWall, now: number): DeviceWall {
  return { version, kind, sum, till: now + left, at: Math.min(now, version) }
}

/** The wall at this time: `tried` once the next try is due. */
export function afterTime(wall: DeviceWall, now: number): DeviceWall {
  return waits(wall) && now >= wall.till ? changed(wall, now, { kind: 'tried' }) : wall
}

/** The wall once the sidecars have carried `sum + 1`. */
export function works(wall: DeviceWall, now: number): DeviceWall {
  return changed(wall, now, { kind: 'works' })
}

/**
 * The wall after an event.
 *
 * @param ago the age of the event (ms)
 * @param others the requests that the other sidecars had at the device when it happened
 * @param known the version of the wall that the sidecar knows
 */
export function afterEvent(
  wall: DeviceWall,
  { kind, limit }: PlacesEvent,
  {
    now,
    ago,
    others,
    known,
  }: { readonly now: number; readonly ago: number; readonly others: number; readonly known: number },
): DeviceWall {
  const at = now - ago
  if (kind === 'lifted') return changed(wall, now, { kind, sum: 0, at: now })
  if (kind === 'doubted') return waits(wall) && known === wall.version ? changed(wall, now, { kind }) : wall
  if (kind === 'struck')
    return wall.kind === 'tried' ? changed(wall, now, { kind, till: now + WEEK, at }) : wall
  // Another sidecar has reported the same outage.
  if (Math.abs(at - wall.at) < SAME_OUTAGE)
    return wall.kind === 'struck' ? changed(wall, now, { kind: 'barred' }) : wall
  if (at < wall.at) return wall
  return wall.kind === 'tried'
    ? changed(wall, now, { kind: 'barred', at })
    : changed(wall, now, { kind, sum: limit + others, till: now + WEEK, at })
}

function waits({ kind }: DeviceWall): boolean {
  return kind === 'broke' || kind === 'struck'
}

function changed(wall: DeviceWall, now: number, change: Partial<DeviceWall>): DeviceWall {
  return { ...wall, ...change, version: Math.max(now, wall.version + 1) }
}
