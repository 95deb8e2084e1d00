import { constants, type ServerHttp2Session } from 'node:http2'
import { afterTurn } from '../../system/clock.ts'
import { type ListenLimits, OVERUSE_SPAN, type Overuse } from '../connection-caps.ts'
import type { Overhead } from './overhead.ts'

interface MisuseOptions {
  readonly limits: ListenLimits
  readonly overhead: Pick<Overhead, 'share' | 'newSpan'>
  readonly onOveruse: (reason: Overuse) => void
  /** The time (ms) on the clock of `check`. */
  readonly now: number
}

/** Node's error codes for sessions that nghttp2 ends itself. */
const REFUSED_BY_NGHTTP2: ReadonlyMap<string | undefined, Overuse> = new Map([
  ['ERR_HTTP2_ERROR', 'protocol_error'],
  ['ERR_HTTP2_TOO_MANY_INVALID_FRAMES', 'max_resets'],
])

/** NGHTTP2_ERR_CALLBACK_FAILURE: Node refused too many streams, which the client opened before its reset streams were closed. */
const TOO_MANY_REFUSED = -902

/** Counts the work that the client of one session causes for free within `OVERUSE_SPAN`: resets, control frames and tiny frames. */
export class Misuse {
  readonly #session: ServerHttp2Session
  readonly #limits: ListenLimits
  readonly #overhead: Pick<Overhead, 'share' | 'newSpan'>
  readonly #onOveruse: (reason: Overuse) => void
  #spanBegan: number
  #resets = 0
  #controlFrames = 0
  /** The client exceeded a limit, so the session is being closed. */
  condemned = false

  constructor(session: ServerHttp2Session, { limits, overhead, onOveruse, now }: MisuseOptions) {
    this.#session = session
    this.#limits = limits
    this.#overhead = overhead
    this.#onOveruse = onOveruse
    this.#spanBegan = now
  }

  /** Called at intervals: judges the overhead, and begins a new span if the last one is over. `time` is in ms of any clock. */
  check(time: number): void {
    this.judgeOverhead()
    if (time - this.#spanBegan < OVERUSE_SPAN) return
    this.#spanBegan = time
    this.#resets = 0
    this.#controlFrames = 0
    this.#overhead.newSpan()
  }

  /** Ends the session if it has exceeded the bound of `Overhead`: it sends tiny frames as fast as they are read. */
  judgeOverhead(): void {
    if (this.condemned || this.#overhead.share <= 1) return
    this.#condemn('tiny_frames')
    this.dismiss()
  }

  countControlFrame(): void {
    this.#controlFrames += 1
    if (this.#controlFrames > this.#limits.maxControlFrames) this.#condemn('max_control_frames')
    if (this.condemned) this.dismiss()
  }

  /**
   * Rapid reset (CVE-2023-44487) and MadeYouReset (CVE-2025-8671): a client that opens streams only to have them reset makes the sidecar
   * work for free. The session does not end here, within the close of a stream, but with the next control frame or in the next turn of the
   * event loop. To end it here would make nghttp2 send the queued frames of the stream and free it. After the close nghttp2 would free the
   * stream a second time, which crashes the process.
   */
  countReset(): void {
    this.#resets += 1
    if (this.#resets <= this.#limits.maxResets || this.condemned) return
    this.#condemn('max_resets')
    afterTurn(() => this.dismiss())
  }

  /** Call this when the session has failed: by overuse, or by an error of the network or of the sidecar. */
  sessionFailed(error: NodeJS.ErrnoException): void {
    const reason = overuseIn(error)
    if (reason === undefined) return
    this.condemned = true
    this.#onOveruse(reason)
  }

  /**
   * The share of its limits that the client used, 0 to 1.
   *
   * @param open the number of open streams. They count as reset, so a client gains nothing by closing just before the limit.
   */
  usedShare(open: number): number {
    if (this.condemned) return 1
    const { maxResets, maxControlFrames } = this.#limits
    const shares = [(this.#resets + open) / maxResets, this.#controlFrames / maxControlFrames]
    return Math.min(Math.max(...shares, this.#overhead.share), 1)
  }

  /** Ends the session with ENHANCE_YOUR_CALM. */
  dismiss(): void {
    this.#session.destroy(new Error('overuse'), constants.NGHTTP2_ENHANCE_YOUR_CALM)
  }

  #condemn(reason: Overuse): void {
    if (this.#session.destroyed || this.condemned) return
    this.condemned = true
    this.#onOveruse(reason)
  }
}

/** The overuse that made a session fail; undefined for errors of the network and of the sidecar. */
function overuseIn({ code, errno }: NodeJS.ErrnoException): Overuse | undefined {
  return errno === TOO_MANY_REFUSED ? 'max_resets' : REFUSED_BY_NGHTTP2.get(code)
}
