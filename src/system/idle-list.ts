import type { Clock } from './clock.ts'
import { MovingDeadline } from './moving-deadline.ts'

/** What may fall silent: a connection, or a tunnel. Times in ms of the clock. */
export interface Idling {
  /** When it was last active, `now` at the latest. Asked only when it is due, so activity itself costs no call. */
  lastActive(now: number): number
  /** It was idle for the time of its list, which it has left. */
  onIdle(): void
}

/**
 * Watches for those that are idle for one time, the same for all. Their order is that of their last activity as far as it is known, and one timer
 * waits for the first. When it is due, what has arrived until then is read.
 */
export class IdleList {
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>
  readonly #time: number
  readonly #deadline: MovingDeadline
  /** The first is due first. */
  readonly #members: { readonly idling: Idling; readonly due: number }[] = []

  /** @param time ms without activity */
  constructor(clock: Pick<Clock, 'monotonic' | 'after'>, time: number) {
    this.#clock = clock
    this.#time = time
    this.#deadline = new MovingDeadline(clock, () => this.#look())
  }

  join(idling: Idling): void {
    const now = this.#clock.monotonic()
    this.#place(idling, idling.lastActive(now) + this.#time)
    this.#waitForFirst(now)
  }

  /** Also for one that is not on the list. */
  leave(idling: Idling): void {
    const at = this.#members.findLastIndex((each) => each.idling === idling)
    if (at < 0) return
    this.#members.splice(at, 1)
    if (this.#members.length === 0) this.#deadline.cancel()
  }

  #place(idling: Idling, due: number): void {
    this.#members.splice(this.#members.findLastIndex((each) => each.due <= due) + 1, 0, { idling, due })
  }

  #waitForFirst(now: number): void {
    const [first] = this.#members
    if (first !== undefined) this.#deadline.move(first.due - now)
  }

  #look(): void {
    const now = this.#clock.monotonic()
    try {
      for (let [first] = this.#members; first !== undefined && first.due <= now; [first] = this.#members) {
        this.#members.shift()
        const due = first.idling.lastActive(now) + this.#time
        if (due <= now) first.idling.onIdle()
        else this.#place(first.idling, due)
      }
    } finally {
      this.#waitForFirst(now)
    }
  }
}
