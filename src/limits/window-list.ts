/** The base of a window in a `WindowList`. */
export abstract class Listed {
  /** When the window closes (ms on the monotonic clock). */
  abstract closesAt: number
  key = ''
  /** The neighbours in the order of closing. */
  older: this | undefined
  newer: this | undefined
}

/** A window that its first count opens, and that closes at a fixed time (C14). */
export class FixedWindow extends Listed {
  closesAt: number
  count = 0
  refused = 0

  constructor(closesAt: number) {
    super()
    this.closesAt = closesAt
  }
}

/**
 * What is counted by key, such as the requests or the wrong passwords of a client: windows in the order in which they close. An open window
 * is never evicted, so an attacker with many addresses cannot reset the count of another client (C17). Every operation takes constant time,
 * whatever the number of windows. (A `Map` alone is not enough: to find its oldest entry, V8 walks over the holes of all deleted entries.)
 */
export class WindowList<W extends Listed> {
  readonly #make: (now: number) => W
  readonly #windows = new Map<string, W>()
  #oldest: W | undefined
  #newest: W | undefined
  /** The latest window that keys shared because the list was full. */
  overflow: W | undefined

  /** @param make creates a window that opens now (ms on the monotonic clock) */
  constructor(make: (now: number) => W) {
    this.#make = make
  }

  /** The number of windows without `overflow`, including closed ones that are not removed yet. */
  get size(): number {
    return this.#windows.size
  }

  /**
   * The window in which a key counts: its open window, or the overflow window that all further keys share while the list has `maxKeys`
   * windows. Undefined if the key may `open` a window. Each call removes up to two closed windows, so the list shrinks under load.
   *
   * @param now ms on the monotonic clock
   */
  find(key: string, now: number, maxKeys: number): W | undefined {
    const known = this.#windows.get(key)
    if (known !== undefined) {
      // A request at exactly `closesAt` belongs to the next window.
      if (now < known.closesAt) return known
      this.#remove(known)
    }
    for (let steps = 0; steps < 2; steps += 1) {
      if (this.#oldest === undefined || now < this.#oldest.closesAt) break
      this.#remove(this.#oldest)
    }
    if (this.#windows.size < maxKeys) return undefined
    if (this.overflow === undefined || now >= this.overflow.closesAt) this.overflow = this.#make(now)
    return this.overflow
  }

  /** Opens a window for a key without one: see `find`. It must close last. */
  open(key: string, now: number): W {
    const window = this.#make(now)
    window.key = key
    this.#append(window)
    return window
  }

  /** Changes when a window closes. One in the list must close last. */
  renew(window: W, closesAt: number): void {
    window.closesAt = closesAt
    // The overflow window, and one that was removed, have no place in the order.
    if (this.#windows.get(window.key) !== window) return
    this.#remove(window)
    this.#append(window)
  }

  clear(): void {
    this.#windows.clear()
    this.#oldest = undefined
    this.#newest = undefined
    this.overflow = undefined
  }

  #append(window: W): void {
    window.older = this.#newest
    if (this.#newest === undefined) this.#oldest = window
    else this.#newest.newer = window
    this.#newest = window
    this.#windows.set(window.key, window)
  }

  #remove(window: W): void {
    const { key, older, newer } = window
    this.#windows.delete(key)
    if (older === undefined) this.#oldest = newer
    else older.newer = newer
    if (newer === undefined) this.#newest = older
    else newer.older = older
    window.older = undefined
    window.newer = undefined
  }
}
