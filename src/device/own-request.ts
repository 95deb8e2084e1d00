import type { Fields } from '../http/fields.ts'
import type { Clock, Timer } from '../system/clock.ts'
import {
  type Connection,
  type Connections,
  type ConnectionsOptions,
  createConnections,
} from './connections.ts'
import { DeviceFault, failureOf } from './failure.ts'
import { looksDelayed, SHOWN_WITHIN } from './kept-connections.ts'
import type { Loss, ResponseHandler } from './request.ts'
import type { UpstreamDeadlines, UpstreamTarget } from './target.ts'

/** A request of the sidecar's own; `body` is short, and sent in chunks if it is an array of them. */
export interface OwnRequest {
  readonly method: string
  readonly target: string
  readonly fields: Fields
  readonly body?: string | readonly string[]
  /** Whether `OwnResponse.body` is wanted. */
  readonly keepsBody?: boolean
}

/** The part of a response that the sidecar itself evaluates. */
export interface OwnResponse {
  readonly status: number
  readonly fields: Fields
  /** The body did not end within `LONGEST_PAGE`. */
  readonly goesOn?: true
  /** Undefined for a body longer than `LARGEST_PAGE`, and if the request does not want it. */
  readonly body?: Buffer
}

/** A discarded response body up to this size (bytes) is drained to keep the connection; a larger one closes it. */
const LARGEST_PAGE = 128 * 1024

/** How long the body of a response may take in all (ms): logins and health checks wait for its end. */
export const LONGEST_PAGE = 5_000

/**
 * Sends a request to the device and returns the head of its response, with the body if `keepsBody`. Rejects if no response comes.
 *
 * @param repeatable if the device closed the connection while it was idle, the request is sent again on another one, once. After the 408 of
 *   an idle connection every request is sent again, because the device has not read it
 * @param isFirst false: the request is sent for the second time, and not again
 */
export async function sendOwnRequest(
  connections: Connections,
  request: OwnRequest,
  repeatable: boolean,
  isFirst = true,
): Promise<OwnResponse> {
  if (connections.ended) throw new DeviceFault('http_response_timeout')
  const loan = connections.borrow(repeatable)
  let loss: Loss | undefined
  try {
    const response = await exchangeOn(connections.clock, loan.connection, request, isFirst, (lost) => {
      loss = lost
    })
    loan.release(true)
    return response
  } catch (error) {
    loan.release(false)
    const stale = loss === 'stale' && failureOf(error) === 'connection_terminated'
    if (loss === 'unread' || (repeatable && stale)) return sendOwnRequest(connections, request, false, false)
    throw error
  }
}

/**
 * Requests `path` once, with these fields, and returns the response. Rejects with an error whose message names the device and the failure.
 */
export async function probeDevice(
  target: UpstreamTarget,
  deadlines: UpstreamDeadlines,
  path: string,
  clock: Clock,
  fields: Fields = [],
  options: ConnectionsOptions = {},
): Promise<OwnResponse> {
  const connections = createConnections(target, deadlines, clock, options)
  try {
    return await sendOwnRequest(connections, { method: 'GET', target: path, fields }, false)
  } catch (error) {
    const at = target.socketPath ?? target.origin
    throw new Error(`${at} did not respond (${failureOf(error)})`, { cause: error })
  } finally {
    await connections.close()
  }
}

/** The requests after which a longer look begins, if one of them was slow. */
const FIRST_LOOK = 3

/**
 * Whether kept connections cost 40 ms a request: see `DelayedAcks`. Requests `path` three times, and up to `SHOWN_WITHIN` times more if one
 * of them looks delayed. False if the device does not respond.
 */
export async function isDelayed(
  target: UpstreamTarget,
  deadlines: UpstreamDeadlines,
  path: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  let found = false
  const connections = createConnections(target, deadlines, clock, {
    signal,
    onQuirk(quirk) {
      if (quirk === 'delayed') found = true
    },
  })
  try {
    let suspicious = false
    for (let sent = 0; !found && sent < (suspicious ? FIRST_LOOK + SHOWN_WITHIN : FIRST_LOOK); sent += 1) {
      const start = clock.monotonic()
      await sendOwnRequest(connections, { method: 'GET', target: path, fields: [] }, true)
      if (sent > 0 && looksDelayed(clock.monotonic() - start)) suspicious = true
    }
    return found
  } catch {
    return false
  } finally {
    await connections.close()
  }
}

/** Resolves or rejects when all bytes of the response were read, or the connection was closed. */
function exchangeOn(
  clock: Pick<Clock, 'after'>,
  connection: Connection,
  { method, target, fields, body, keepsBody = false }: OwnRequest,
  repeatsUnread: boolean,
  onLost: (loss: Loss) => void,
): Promise<OwnResponse> {
  return new Promise((resolve, reject) => {
    let response: OwnResponse | undefined
    let size = 0
    let timer: Timer | undefined
    const chunks: Buffer[] = []
    const handler: ResponseHandler = {
      repeatsUnread,
      inform() {},
      head({ status, fields }) {
        response = { status, fields }
        timer = clock.after(LONGEST_PAGE, () => connection.abort(TOO_SLOW))
      },
      data(chunk) {
        size += chunk.length
        if (size > LARGEST_PAGE) connection.abort(TOO_LONG)
        else if (keepsBody) chunks.push(chunk)
      },
      end(last) {
        if (response === undefined) return
        timer?.cancel()
        if (keepsBody) response = { ...response, body: Buffer.concat(last ? [...chunks, last] : chunks) }
        resolve(response)
      },
      failed(error, loss) {
        timer?.cancel()
        onLost(loss)
        if (response === undefined) reject(error)
        else if (error === TOO_LONG) resolve(response)
        else if (error === TOO_SLOW && !keepsBody) resolve({ ...response, goesOn: true })
        else reject(error)
      },
    }
    const framing = body === undefined ? null : typeof body === 'string' ? Buffer.byteLength(body) : 'chunked'
    const length = typeof framing === 'number' ? ['Content-Length', String(framing)] : []
    const pieces = body === undefined ? undefined : piecesOf(body)
    connection.send({ method, target, fields: [...fields, ...length], framing, body: pieces }, handler)
  })
}

/** Ends a body that is too long. The response counts without it. */
const TOO_LONG = new DeviceFault('http_protocol_error')
/** Ends a body that takes too long. The response counts without it, unless its body is wanted. */
const TOO_SLOW = new DeviceFault('http_response_timeout')

async function* piecesOf(body: string | readonly string[]): AsyncGenerator<Buffer, void, void> {
  for (const piece of [body].flat()) yield Buffer.from(piece)
}
