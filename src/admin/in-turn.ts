import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { REQUEST_WORK, type TurnBudget } from '../system/turn-budget.ts'

/**
 * How many requests of a connection may be unanswered. No tool of an operator pipelines; a few may overlap, because Node reports the end of
 * a response after it reads the next request.
 */
const MOST_UNANSWERED = 8

const unanswered = new WeakMap<Socket, number>()

/**
 * Serves a request of `node:http` in this turn of the event loop, or in a later one if its client had its part of this one. Closes a
 * connection that pipelines: Node reads all that it sends, and would hold a request for each 40 bytes of it.
 */
export function inTurn(
  turns: TurnBudget,
  { socket }: IncomingMessage,
  res: ServerResponse,
  serve: () => void,
): void {
  // Node goes on with the bytes that it has read.
  if (socket.destroyed) return
  const count = (unanswered.get(socket) ?? 0) + 1
  unanswered.set(socket, count)
  if (count > MOST_UNANSWERED) {
    socket.destroy()
    return
  }
  res.once('close', () => unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1))
  if (turns.take(REQUEST_WORK)) serve()
  else
    turns.wait(() => {
      if (res.destroyed) return
      turns.spend(REQUEST_WORK)
      serve()
    })
}
