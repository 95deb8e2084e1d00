/** Reports of several sidecars that are at most this far apart (ms) are of the same outage of the device. */
export const SAME_OUTAGE = 5_000

/** The version of a wall that a sidecar has found alone. Every version of a fleet is higher. */
export const ALONE = 1

/** The wall of the device as one sidecar knows it. */
export interface FleetWall {
  /** What has a higher version replaces this. 0: nothing was ever known. */
  readonly version: number
  /** One request more than so many, of all sidecars together, broke the device. 0: there is no wall, or the operator has lifted it. */
  readonly sum: number
}

/** The wall of the device in the store. */
export interface DeviceWall extends FleetWall {
  /** When the device broke, or the operator lifted the wall (ms, by the server's clock). */
  readonly at: number
}

/** What a sidecar tells the fleet. `broke`: `limit + 1` of its requests broke the device. `lifted`: the operator has lifted the wall. */
export interface PlacesEvent {
  readonly kind: 'broke' | 'lifted'
  readonly limit: number
  /** When it happened (ms on the monotonic clock). */
  readonly at: number
}

/** The wall in the text of the store; none if the text makes no sense. It begins with a word: a text that begins with a time is a beat. */
export function readWall(text: string): DeviceWall {
  const [, ...numbers] = /^wall (\d+) (\d+) (\d+)$/.exec(text) ?? []
  const [version = 0, sum = 0, at = 0] = numbers.map(Number)
  return { version, sum, at }
}

export function textOfWall({ version, sum, at }: DeviceWall): string {
  return ['wall', ...[version, sum, at].map((number) => number.toFixed(0))].join(' ')
}

/** The wall after a sidecar has told what it knows. Returns the same object if that is nothing new. */
export function afterWord(wall: DeviceWall, { version, sum }: FleetWall, now: number): DeviceWall {
  // The server was emptied.
  if (version > wall.version && version > ALONE) return { version, sum, at: Math.min(now, version) }
  return version === ALONE ? lowered(wall, sum, wall.at, now) : wall
}

/**
 * The wall after an event. Returns the same object if it changes nothing.
 *
 * @param ago the age of the event (ms)
 * @param others the requests that the other sidecars had at the device when it happened
 */
export function afterEvent(
  wall: DeviceWall,
  { kind, limit }: PlacesEvent,
  { now, ago, others }: { readonly now: number; readonly ago: number; readonly others: number },
): DeviceWall {
  if (kind === 'lifted') return changed(wall, now, { sum: 0, at: now })
  const at = now - ago
  const isTold = wall.sum > 0 && at - wall.at < SAME_OUTAGE
  return at < wall.at || isTold ? wall : lowered(wall, limit + others, at, now)
}

/** No event makes a wall higher: what has broken the device once is not tried again. */
function lowered(wall: DeviceWall, sum: number, at: number, now: number): DeviceWall {
  return wall.sum > 0 && wall.sum <= sum ? wall : changed(wall, now, { sum, at })
}

function changed(wall: DeviceWall, now: number, change: Partial<DeviceWall>): DeviceWall {
  return { ...wall, ...change, version: Math.max(now, wall.version + 1) }
}
