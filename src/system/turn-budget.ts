import { afterTurn, turnOfLoop } from './clock.ts'

/**
 * What may be done for one client in one turn of the event loop, in bytes: half a megabyte that is read, or 32 requests that are refused
 * (about 1 ms of a processor).
 */
export const PER_TURN: number = 512 * 1024

/** The work of a request, of a read, and of a piece of a body within a read, in bytes that cost as much. */
export const REQUEST_WORK: number = 16 * 1024
export const READ_WORK: number = 1024
export const PIECE_WORK: number = 512

/** The work of an HTTP/2 DATA frame, which nghttp2 and Node report one by one. */
export const FRAME_WORK: number = 1024

/** The work of a TLS handshake, whose signature takes 1 ms or more. It uses up a budget, so a turn begins one for each client. */
export const HANDSHAKE_WORK: number = PER_TURN

/** The most waiting clients that one turn serves. */
const MOST_SERVED = PER_TURN / REQUEST_WORK

/** The budgets with waiting work, in the order in which they are served. All listeners have one list, because they share one event loop. */
const waiting: TurnBudget[] = []
/** `serveWaiting` will run. */
let scheduled = false

/**
 * What is done for one client in a turn of the event loop, over all its connections (C26). A client that sends faster than it is served would
 * otherwise keep the loop within one turn, because Node reports the end of each write before it reads the next socket. Work beyond `PER_TURN`
 * waits: the next turn reads the sockets of all clients first, then divides `PER_TURN` among those that wait.
 *
 * Work that does not wait costs one addition: the budget asks which turn this is only when it is used up. So what an earlier turn left of it
 * counts in this one, too, and a turn may do up to twice `PER_TURN`.
 */
export class TurnBudget {
  #used = 0
  #turn = -1
  readonly #waiters: (() => void)[] = []
  /** It is among those that wait, or is being served. */
  #queued = false

  /** Takes so much work from the budget. False if it is used up in this turn, or if earlier work waits: then the caller calls `wait`. */
  take(work: number): boolean {
    if (this.#queued || (this.#used >= PER_TURN && !this.#renew())) return false
    this.#used += work
    return true
  }

  /** Counts work that is done already, or that `wait` has put off. */
  spend(work: number): void {
    this.#used += work
  }

  /** Does a piece of work now, or in a later turn if the budget is used up. If `isOver` says then that it is not wanted any more, it is dropped. */
  run(work: number, goOn: () => void, isOver: () => boolean): void {
    if (this.take(work)) goOn()
    else
      this.wait(() => {
        if (isOver()) return
        this.spend(work)
        goOn()
      })
  }

  /** Calls `goOn` in a later turn, after what already waits. Waits are not cancelled: `goOn` checks its state. It must not throw. */
  wait(goOn: () => void): void {
    this.#waiters.push(goOn)
    if (this.#queued) return
    this.#queued = true
    enqueue(this)
  }

  /** Does what waits, as long as no more than `most` is spent; nothing if the budget was used up in this very turn. */
  serve(turn: number, most: number): void {
    if (this.#turn === turn) {
      enqueue(this)
      return
    }
    this.#turn = turn
    this.#used = PER_TURN - most
    while (this.#used < PER_TURN) {
      const goOn = this.#waiters.shift()
      if (goOn === undefined) break
      goOn()
    }
    this.#queued = this.#waiters.length > 0
    if (this.#queued) enqueue(this)
  }

  /** Begins anew if it was used up in an earlier turn. */
  #renew(): boolean {
    const turn = turnOfLoop()
    if (this.#turn === turn) return false
    this.#turn = turn
    this.#used = 0
    return true
  }
}

function enqueue(budget: TurnBudget): void {
  waiting.push(budget)
  if (scheduled) return
  scheduled = true
  afterTurn(serveWaiting)
}

/** Those that wait again are served in the next turn: Node runs an immediate of an immediate only then. */
function serveWaiting(): void {
  const turn = turnOfLoop()
  const served = waiting.splice(0, MOST_SERVED)
  scheduled = waiting.length > 0
  if (scheduled) afterTurn(serveWaiting)
  for (const budget of served) budget.serve(turn, PER_TURN / served.length)
}
