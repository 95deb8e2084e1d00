/**
 * A deadline by which something must arrive. It ends one turn of the event loop after its timer fires, when what has arrived is read. After a
 * stall of this process (a busy machine, or a suspended one) Node fires due timers before it reads the sockets.
 */
export class Deadline {
  readonly #timer: NodeJS.Timeout
  #judgement: NodeJS.Immediate | undefined

  /** @param time ms. The deadline alone does not keep the process alive */
  constructor(time: number, onLate: () => void) {
    this.#timer = setTimeout(() => {
      this.#judgement = setImmediate(onLate)
    }, time).unref()
  }

  /** It has arrived. */
  clear(): void {
    clearTimeout(this.#timer)
    clearImmediate(this.#judgement)
  }
}
