/** Signs of one outage of the device, at several sidecars, are at most so far apart (ms). */
export const SAME_OUTAGE = 5_000

const KINDS = ['none', 'broke', 'tried', 'struck', 'barred', 'doubted', 'works', 'lifted'] as const

/**
 * What the fleet knows of the sum of all requests at the device. `broke`: one more broke it. `tried`: one more is tried now. `struck`: it had
 * no room for that. `barred`: one more broke it again. `none`: nothing, or nothing any more. `doubted`: it was away with no more than the sum. `works`: one more works.
 * `lifted`: the operator says so.
 */
export type FleetWallKind = (typeof KINDS)[number]

/** What the fleet knows, as one sidecar has heard it. */
export interface FleetWall {
  /** A later one replaces it. */
  readonly version: number
  readonly kind: FleetWallKind
  readonly sum: number
  /** When one more is tried, from now (ms). */
  readonly left: number
}

/** What the store keeps of it. Times are the server's (ms). */
export interface DeviceWall extends Omit<FleetWall, 'left'> {
  /** When one more is tried. */
  readonly till: number
  /** When the device broke last. */
  readonly at: number
}

/**
 * What has happened to the device at a sidecar. `broke`: one more than `limit` broke it. `struck`: the attempt with one more did not work.
 * `doubted`: the device was away with no more. `lifted`: the operator says so.
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

/** The most requests of all sidecars together; undefined without a wall. */
export function mostUnder({ kind, sum }: Pick<FleetWall, 'kind' | 'sum'>): number | undefined {
  if (kind === 'tried') return sum + 1
  return kind === 'broke' || kind === 'struck' || kind === 'barred' ? sum : undefined
}

/** The wall as a sidecar knows it, told to a server that knows less: it was emptied. */
export function retold({ version, kind, sum, left }: FleetWall, now: number): DeviceWall {
  return { version, kind, sum, till: now + left, at: Math.min(now, version) }
}

/** The wall when the time of the next attempt has come. */
export function afterTime(wall: DeviceWall, now: number): DeviceWall {
  return waits(wall) && now >= wall.till ? changed(wall, now, { kind: 'tried' }) : wall
}

/** The wall when all sidecars have carried one more. */
export function works(wall: DeviceWall, now: number): DeviceWall {
  return changed(wall, now, { kind: 'works' })
}

/**
 * The wall after an event.
 *
 * @param ago how long ago it was (ms)
 * @param others how many requests the other sidecars had at the device then
 * @param known the version that the sidecar knows
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
  // Another sidecar has told the same outage.
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
