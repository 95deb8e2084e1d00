import type { Fields } from '../http/fields.ts'
import type { Clock } from '../system/clock.ts'
import { type Connection, type Connections, createConnections } from './connections.ts'
import { DeviceFault, failureOf } from './failure.ts'
import type { ResponseHandler } from './response-handler.ts'
import type { UpstreamDeadlines, UpstreamTarget } from './target.ts'

/** A request of the sidecar's own; `body` is short. */
export interface OwnRequest {
  readonly method: 'GET' | 'POST'
  readonly target: string
  readonly fields: Fields
  readonly body?: string
}

/** As much of an answer as the sidecar itself looks at. */
export interface Answer {
  readonly status: number
  readonly fields: Fields
}

/** Of an answer of which nobody reads the page, so much (bytes) is read off the connection; a longer one ends it. */
const LARGEST_PAGE = 128 * 1024

/**
 * Asks the device, and gives the head of its answer. `repeatable`: a kept connection that turns out to be closed is tried once
 * more, on another one.
 */
export async function askDevice(
  connections: Connections,
  request: OwnRequest,
  repeatable: boolean,
): Promise<Answer> {
  const connection = connections.borrow(repeatable)
  try {
    const answer = await sendOwn(connection, request)
    connection.release(true)
    return answer
  } catch (error) {
    const stale = connection.reused && failureOf(error) === 'connection_terminated'
    connection.release(false)
    if (repeatable && stale) return askDevice(connections, request, false)
    throw error
  }
}

/** Asks the device for `path` once and gives the status of its answer. Fails with the reason in words. */
export async function probeDevice(
  target: UpstreamTarget,
  deadlines: UpstreamDeadlines,
  path: string,
  clock: Clock,
): Promise<number> {
  const connections = createConnections(target, deadlines, clock)
  try {
    return (await askDevice(connections, { method: 'GET', target: path, fields: [] }, false)).status
  } catch (error) {
    const at = target.socketPath ?? target.origin
    throw new Error(`${at} gave no answer (${failureOf(error)})`, { cause: error })
  } finally {
    await connections.close()
  }
}

/** Settles once nothing of the answer is left on the connection. */
function sendOwn(connection: Connection, { method, target, fields, body }: OwnRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let answer: Answer | undefined
    let size = 0
    const handler: ResponseHandler = {
      inform() {},
      head(status, _reason, fields) {
        answer = { status, fields }
      },
      data(chunk) {
        size += chunk.length
        if (size > LARGEST_PAGE) connection.abort(TOO_LONG)
      },
      end() {
        if (answer !== undefined) resolve(answer)
      },
      failed(error) {
        if (error === TOO_LONG && answer !== undefined) resolve(answer)
        else reject(error)
      },
    }
    if (body === undefined) {
      connection.send({ method, target, fields, framing: null, body }, handler)
      return
    }
    const bytes = Buffer.from(body)
    const length = ['Content-Length', String(bytes.length)]
    connection.send(
      { method, target, fields: [...fields, ...length], framing: bytes.length, body: once(bytes) },
      handler,
    )
  })
}

const TOO_LONG = new DeviceFault('http_protocol_error')

async function* once(bytes: Buffer): AsyncGenerator<Buffer, void, void> {
  yield bytes
}
