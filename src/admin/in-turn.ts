import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { isRead } from '../http/scope.ts'
import { REQUEST_WORK, type TurnBudget } from '../system/turn-budget.ts'
import { bodyArrived, requestBegan, requestEnded } from './admin-wire.ts'

/**
 * The most unanswered requests of a connection. Tools of operators do not pipeline, but a few requests may overlap: Node reports the end of
 * a response after it has read the next request.
 */
const MOST_UNANSWERED = 8

const unanswered = new WeakMap<Socket, number>()

/**
 * Serves a request of `node:http` in this turn of the event loop, or in a later one if the budget of its client is used up. Closes a
 * connection that pipelines: Node would read all its requests at once, and hold one for every 40 bytes.
 */
export function inTurn(
  turns: TurnBudget,
  req: IncomingMessage,
  res: ServerResponse,
  serve: () => void,
): void {
  const { socket } = req
  // Node still parses bytes that it has read from a connection that is destroyed meanwhile.
  if (socket.destroyed) return
  const count = (unanswered.get(socket) ?? 0) + 1
  unanswered.set(socket, count)
  if (count > MOST_UNANSWERED) {
    socket.destroy()
    return
  }
  const isWhole = isRead(req.method)
  requestBegan(socket, isWhole)
  if (!isWhole) req.once('end', () => bodyArrived(socket))
  res.once('close', () => {
    unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1)
    requestEnded(socket)
  })
  turns.run(REQUEST_WORK, serve, () => res.destroyed)
}
