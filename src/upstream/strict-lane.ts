import type { Forward } from '../http/admission.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Fields } from '../http/fields.ts'
import type { Connections, Dispatcher } from './connections.ts'
import { failureOf } from './failure.ts'
import { Relay, type RelayEnd } from './relay.ts'
import { isRepeatable } from './repeatable.ts'

export interface LaneDependencies {
  readonly connections: Connections
  readonly project: (device: Fields, status: number) => string[]
  readonly uploadTimeout: number
  readonly readerTimeout: number
  readonly onHead: () => void
}

/**
 * Sends the request to the device and its answer to the client. A keep-alive connection that turns out to be closed
 * is the one fault that is repaired: once, on another connection, for a request that is safe to repeat (C24).
 */
export async function forwardStrictly(
  admission: Forward,
  exchange: Exchange,
  fields: string[],
  deps: LaneDependencies,
): Promise<RelayEnd> {
  const first = await attempt(admission, exchange, fields, deps)
  const stale = first.reused && isStale(first.end)
  if (!stale || !isRepeatable(exchange.head.method, admission)) return first.end
  return (await attempt(admission, exchange, fields, deps)).end
}

/** Closed by the device without a byte: it had given up the connection before the request came. */
function isStale(end: RelayEnd): boolean {
  return end.kind === 'failed' && end.silent && failureOf(end.error) === 'connection_terminated'
}

function attempt(
  admission: Forward,
  exchange: Exchange,
  fields: string[],
  { connections, project, uploadTimeout, readerTimeout, onHead }: LaneDependencies,
): Promise<{ readonly end: RelayEnd; readonly reused: boolean }> {
  return new Promise((resolve) => {
    const connection = connections.borrow()
    const relay = new Relay({
      exchange,
      project,
      readerTimeout,
      onHead,
      onEnd(end) {
        const { reused } = connection
        connection.release(end.kind === 'relayed')
        resolve({ end, reused })
      },
    })
    const hasBody = admission.framing !== null && admission.framing !== 0
    const options: Dispatcher.DispatchOptions = {
      path: admission.target,
      method: exchange.head.method as Dispatcher.HttpMethod,
      headers: fields,
      // undici takes any async iterable for a body; its types name only the commonest ones.
      body: hasBody ? (exchange.body(uploadTimeout) as unknown as Buffer) : null,
    }
    try {
      connection.dispatcher.dispatch(options, relay)
    } catch (error) {
      relay.onResponseError(undefined, error)
    }
  })
}
