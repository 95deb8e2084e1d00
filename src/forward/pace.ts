import type { Connection } from '../device/connections.ts'
import type { Exchange } from '../http/exchange.ts'
import { StalledBodyError } from '../http/refusal.ts'
import type { BoundedQueue } from '../system/bounded-queue.ts'
import type { Clock, Timer } from '../system/clock.ts'

/** How fast a client must move its bytes to keep a place, once other requests wait for it. */
export interface Pace {
  readonly clock: Pick<Clock, 'every'>
  /** The time (ms) over which a client is judged. It does not include time in which the device or the queue holds the transfer up. */
  readonly window: number
  /** The fewest bytes that the client has to move in `window`; 0: it is never too slow. */
  readonly least: number
  /** The client loses its place after this time (ms) without `least` bytes, even if no other request waits. */
  readonly longest: number
  readonly isCrowded: () => boolean
}

/** The longest window of an upload (ms). */
const UPLOAD_WINDOW = 2_000
/** How many looks at a client a window has. The verdict comes at most one look after the window. */
const LOOKS = 8
/** The shortest time (ms) between two looks. */
const SHORTEST_STEP = 5

/** The listener reads at least this much (bytes) of a body that waits for its place. Beyond that, the client may have to wait. */
const ALWAYS_READ = 16 * 1024

/**
 * How fast an upload has to be.
 *
 * @param rate bytes per second
 */
export function uploadPace(
  clock: Pick<Clock, 'every'>,
  rate: number,
  queueTimeout: number,
  queue: BoundedQueue,
): Pace {
  const window = Math.min(UPLOAD_WINDOW, judgedWithin(queueTimeout))
  return {
    clock,
    window,
    least: (rate * window) / 1000,
    longest: Number.POSITIVE_INFINITY,
    isCrowded: () => queue.waiting > 0,
  }
}

/** How fast a download has to be. It counts as moved each time the client has read its backlog. */
export function downloadPace(
  clock: Pick<Clock, 'every'>,
  longest: number,
  queueTimeout: number,
  queue: BoundedQueue,
): Pace {
  return { clock, window: judgedWithin(queueTimeout), least: 1, longest, isCrowded: () => queue.waiting > 0 }
}

/** A window that ends within half of the time that requests may wait: they have not timed out when the place becomes free. */
function judgedWithin(queueTimeout: number): number {
  return (queueTimeout / 2) * (LOOKS / (LOOKS + 1))
}

/**
 * Looks at a client that may be slow until the returned timer is cancelled. One timer looks at the whole transfer, so the bytes themselves
 * cost nothing.
 *
 * @param waited time (ms) before the first look in which the client could have moved bytes
 * @param moved the bytes that the client has moved; undefined while something other than the client holds the transfer up
 */
export function watchPace(
  { clock, window, least, longest, isCrowded }: Pace,
  waited: number,
  moved: () => number | undefined,
  onTooSlow: () => void,
): Timer {
  const step = Math.max(SHORTEST_STEP, window / LOOKS)
  let marked: number | undefined = 0
  // The first look only marks: the device may be to blame for a part of the step before it.
  let quiet = Math.floor(waited / step) - 1
  return clock.every(step, () => {
    const now = moved()
    if (now === undefined || marked === undefined || now - marked >= least) {
      marked = now
      quiet = 0
    } else quiet += 1
    if (quiet * step >= longest || (quiet >= LOOKS && isCrowded())) onTooSlow()
  })
}

/** Aborts an upload that is too slow. Its connection closes: the part of the request that the device has got is worth nothing. */
export function watchUpload(
  exchange: Pick<Exchange, 'arrived' | 'waited'>,
  device: Pick<Connection, 'uploaded' | 'abort'>,
  pace: Pace,
): Timer {
  return watchPace(
    pace,
    idleIn(exchange.waited, exchange),
    () => device.uploaded,
    () => device.abort(new StalledBodyError()),
  )
}

/** The part of the time in the queue (ms) in which the client could have sent more of its body. */
export function idleIn(waited: number, { arrived }: Pick<Exchange, 'arrived'>): number {
  return arrived < ALWAYS_READ ? waited : 0
}

/** Whether an upload was too slow during the `waited` ms before it got its place, and other requests still wait. */
export function laggedIn(waited: number, { arrived }: Pick<Exchange, 'arrived'>, pace: Pace): boolean {
  const { window, least, isCrowded } = pace
  return waited >= window && arrived < Math.min((least * waited) / window, ALWAYS_READ) && isCrowded()
}
