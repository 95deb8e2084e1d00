import { LRUCache } from 'lru-cache'
import { pathOf } from '../http/request-path.ts'

/** How many paths are remembered: it bounds memory, since clients choose the paths. */
const PATHS = 256
/** How much one response moves the usual time of its path. */
const WEIGHT = 1 / 8
/** One response counts as at most this many times the time from which on it is long. A dozen quick ones make up for it. */
const LONGEST = 4

/**
 * The paths whose responses usually begin late, as those of long polls: their requests keep their places for so long that others would wait
 * for all of them. Of every other path nothing is kept.
 */
export class LongPaths {
  readonly #times = new LRUCache<string, number>({ max: PATHS })
  /** Whether there is such a path. A field, because each request reads it. */
  any = false

  /**
   * The head of a response has come `time` ms behind the last byte of its request, or had not come by then.
   *
   * @param long from this time on (ms) it counts as long
   */
  answered(target: string, time: number, long: number): void {
    const path = pathOf(target)
    const before = this.#times.get(path)
    if (before === undefined && time <= long) return
    const counted = Math.min(time, LONGEST * long)
    const usual = before === undefined ? counted : before + WEIGHT * (counted - before)
    if (usual > long) this.#times.set(path, usual)
    else this.#times.delete(path)
    this.any = this.#times.size > 0
  }

  has(target: string): boolean {
    return this.any && this.#times.has(pathOf(target))
  }
}
