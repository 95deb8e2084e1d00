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
 * Sends the request to the device and its answer to the client. A keep-alive connection that turns out to be closed
 * is the one fault that is repaired: once, on another connection, for a request that is safe to repeat (C24).
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
  // Also one that was revoked while it waited: its refusal may still be on the way to the client.
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
              // Whoever calls this is a socket, and would keep it to itself.
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

/** Closed by the device without a byte: it had given up the connection before the request came. */
function isStale(end: RelayEnd): boolean {
  return end.kind === 'failed' && end.silent && failureOf(end.error) === 'connection_terminated'
}

const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Whether a request may be sent again when nobody knows whether it arrived: a safe one (RFC 9110 §9.2.1) without a body. */
function isRepeatable(method: string, { framing }: Forward): boolean {
  return framing === null && SAFE.has(method)
}
