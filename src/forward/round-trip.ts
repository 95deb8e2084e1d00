import type { Connections } from '../device/connections.ts'
import { failureOf } from '../device/failure.ts'
import { type Forward, hasBody } from '../http/admission.ts'
import type { Exchange } from '../http/exchange.ts'
import type { KeptBody } from './kept-body.ts'
import { type ReaderPatience, Relay, type RelayEnd, type RelayRules } from './relay.ts'

/** What a request needs on its way to the device and back. */
export interface RoundTripDependencies {
  readonly connections: Connections
  /** How long a client may pause within its request body (ms). */
  readonly uploadTimeout: () => number
  readonly reader: ReaderPatience
}

/**
 * Sends the request to the device and relays the response to the client. One fault is repaired: if the device closed the
 * keep-alive connection while it was idle, a request that is safe to repeat is sent once more, on another connection (C24).
 */
export function forwardToDevice(
  admission: Forward,
  exchange: Exchange,
  fields: readonly string[],
  { connections, uploadTimeout, reader }: RoundTripDependencies,
  rules: RelayRules,
  collected?: KeptBody,
): Promise<RelayEnd> {
  const { target, framing } = admission
  const { method } = exchange.head
  // A request whose grant was revoked while it waited is answered too: its refusal may still be in flight.
  if (exchange.answered) return Promise.resolve({ kind: 'abandoned' })
  return new Promise((resolve, reject) => {
    function attempt(mayRepeat: boolean): void {
      const connection = connections.borrow(mayRepeat)
      const relay = new Relay({
        exchange,
        rules,
        reader,
        onEnd(end) {
          const stale = isStale(end) && connection.reused
          connection.release(end.kind === 'relayed')
          if (!stale || !mayRepeat) resolve(end)
          else
            try {
              attempt(false)
            } catch (bug) {
              // A socket event calls `onEnd`, so a throw would not reject this promise.
              reject(bug)
            }
        },
      })
      relay.start(connection)
      const body = hasBody(admission) ? (collected?.open() ?? exchange.body(uploadTimeout())) : undefined
      connection.send({ method, target, fields, framing, body }, relay)
    }
    attempt(isRepeatable(method, admission))
  })
}

/** Whether the device closed the connection before it read the request: it sent no byte of a response. */
function isStale(end: RelayEnd): boolean {
  return end.kind === 'failed' && end.silent && failureOf(end.error) === 'connection_terminated'
}

const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Whether a request may be sent again although the first may have arrived: a safe method (RFC 9110 §9.2.1), no body. */
function isRepeatable(method: string, { framing }: Forward): boolean {
  return framing === null && SAFE.has(method)
}
