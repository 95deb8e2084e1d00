import { afterTurn, turnOfLoop } from './clock.ts'

/**
 * The budget of one client in one turn of the event loop, in bytes of work: 512 KiB of body bytes, or 32 refused requests (about 1 ms of
 * processor time).
 */
export const PER_TURN: number = 512 * 1024

/** The work of a request, of a read, and of a piece of a body within a read. The unit is the cost of one body byte. */
export const REQUEST_WORK: number = 16 * 1024
export const READ_WORK: number = 1024
export const PIECE_WORK: number = 512

/** The work of an HTTP/2 DATA frame, which nghttp2 and Node report one by one. */
export const FRAME_WORK: number = 1024

/** The work of a TLS handshake, whose signature takes 1 ms or more. It uses up the budget, so each client begins one handshake per turn. */
export const HANDSHAKE_WORK: number = PER_TURN

/** The most waiting clients that one turn serves. */
const MOST_SERVED = PER_TURN / REQUEST_WORK

/** The budgets with waiting work, in the order of service. All listeners share the list, because they share one event loop. */
const waiting: TurnBudget[] = []
/** `serveWaiting` will run. */
let scheduled = false

/**
 * The budget of work for one client in a turn of the event loop, over all its connections (C26). Without it, a client that sends faster
 * than the sidecar serves would keep the loop in one turn, because Node reports the end of each write before it reads the next socket. Work
 * beyond `PER_TURN` waits: the next turn first reads the sockets of all clients, then divides `PER_TURN` among the clients with waiting
 * work.
 *
 * Work within the budget costs one addition: the budget asks for the number of the turn only when it is used up. So it may still hold work
 * of earlier turns, and a turn may do up to twice `PER_TURN`.
 */
export class TurnBudget {
  #used = 0
  #turn = -1
  readonly #waiters: (() => void)[] = []
  /** The budget is in `waiting`, or is being served. */
  #queued = false

  /** Takes work from the budget. False if it is used up in this turn, or if earlier work waits: the caller then calls `wait`. */
  take(work: number): boolean {
    if (this.#queued || (this.#used >= PER_TURN && !this.#renew())) return false
    this.#used += work
    return true
  }

  /** Charges work that is already done, or that `wait` has postponed. */
  spend(work: number): void {
    this.#used += work
  }

  /** Does a piece of work now, or in a later turn if the budget is used up. In a later turn it is dropped if `isOver` returns true. */
  run(work: number, goOn: () => void, isOver: () => boolean): void {
    if (this.take(work)) goOn()
    else
      this.wait(() => {
        if (isOver()) return
        this.spend(work)
        goOn()
      })
  }

  /** Calls `goOn` in a later turn, after earlier waiting work. A wait cannot be cancelled: `goOn` checks its state. It must not throw. */
  wait(goOn: () => void): void {
    this.#waiters.push(goOn)
    if (this.#queued) return
    this.#queued = true
    enqueue(this)
  }

  /** Does waiting work until `most` is spent. Does none, and stays in the queue, if the budget was used up in this turn. */
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

  /** Empties the budget if it was used up in an earlier turn. False if that was in this turn. */
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

/** Serves the waiting budgets. One that waits again is served in the next turn: only then does Node run an immediate of an immediate. */
function serveWaiting(): void {
  const turn = turnOfLoop()
  const served = waiting.splice(0, MOST_SERVED)
  scheduled = waiting.length > 0
  if (scheduled) afterTurn(serveWaiting)
  for (const budget of served) budget.serve(turn, PER_TURN / served.length)
}
