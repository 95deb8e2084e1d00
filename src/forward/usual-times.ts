import { LRUCache } from 'lru-cache'

/** How many paths have a usual time: it bounds memory, since clients choose the paths. */
const PATHS = 256
/** How much one response moves the usual time of its path. */
const WEIGHT = 1 / 64
/** Times (ms) up to this count as this one: they are mostly the network and the sidecar itself. */
export const FAST = 10

/**
 * How long a device that has answered a path may be silent: this many times its usual time, and at most `LONGEST_SILENCE` (ms), or
 * `LONGEST_WITH_MANY` with many places.
 */
const TIMES_OF_SILENCE = 250
const LONGEST_SILENCE = 1_100
const LONGEST_WITH_MANY = 5_000

/** The usual time of each path (ms) between the last byte of a request and the head of its response, for at most 256 paths. */
export class UsualTimes {
  /** The least recently used path is evicted first. */
  readonly #times = new LRUCache<string, number>({ max: PATHS })
  /** The usual time of the first response of a path, over all paths: a device may have a path for each of its records. */
  #newPaths = 0
  /** By how much the device is slower than these times, for other reasons than its load. */
  #drift = 1

  /** Undefined if the path is new. */
  of(path: string): number | undefined {
    const time = this.#times.get(path)
    return time === undefined ? undefined : time * this.#drift
  }

  /** How long (ms) the device may be silent before the silence means something; 0 if the path is new. */
  silence(path: string, many: boolean): number {
    const most = many ? LONGEST_WITH_MANY : LONGEST_SILENCE
    return Math.min(TIMES_OF_SILENCE * (this.of(path) ?? 0), most)
  }

  /**
   * How many times its usual time a response took that took longer than `FAST`. A new path has the usual time of new paths.
   *
   * @param learn whether the response changes the usual time
   */
  ratio(path: string, time: number, learn: boolean): number {
    const usual = this.#times.get(path)
    if (usual === undefined) {
      this.#times.set(path, time / this.#drift)
      const others = this.#newPaths || time / this.#drift
      this.#newPaths = others + WEIGHT * (time / this.#drift - others)
      return time / Math.max(others * this.#drift, FAST)
    }
    if (learn) this.#times.set(path, usual + WEIGHT * (time / this.#drift - usual))
    return time / Math.max(usual * this.#drift, FAST)
  }

  /** The device has become this many times slower, for another reason than its load. Firmware does that. */
  drift(by: number): void {
    this.#drift *= by
  }
}
