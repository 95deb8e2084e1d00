import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { groupFields } from '../http/fields.ts'
import type { Clock } from '../system/clock.ts'
import {
  type Attempt,
  type Client,
  EVERY_REQUEST,
  failureOf,
  RESPONSE_TIMEOUT,
  startAttempt,
  type Target,
  tlsOptions,
} from './client.ts'
import type { Question } from './question.ts'
import { foldFields } from './received.ts'

/** A request fails at this many refusals of its stream without a response to any other request between them. */
const MOST_REFUSALS = 5

/** The pause after the first of these refusals (ms). It doubles with each. */
const FIRST_PAUSE = 10

const CLOSED = Object.assign(new Error('session closed'), { code: 'ERR_HTTP2_SESSION_ERROR' })
const RESET = Object.assign(new Error('stream reset'), { code: 'ERR_HTTP2_STREAM_ERROR' })
const NOT_OFFERED = new Error('the server does not offer it')

/**
 * HTTP/2 over one connection at a time; or, in words, why there is none: the server does not offer it by ALPN (RFC 9113 §3.2),
 * refuses the connection, is not trusted or does not answer in time. A request that the server did not process (REFUSED_STREAM, or
 * above the last stream of a GOAWAY) is sent again, on a new connection if the old one takes no more (RFC 9113 §6.8, §8.7).
 *
 * @param timeout for a connection, and for each whole response with its repeats (ms)
 */
export async function createHttp2Client(
  target: Target,
  clock: Clock,
  timeout: number = RESPONSE_TIMEOUT,
): Promise<Client | string> {
  if (target.url.protocol !== 'https:') return 'the server does not offer it without TLS'
  /** One takes new streams; those that the server is closing may still finish theirs. */
  const opened = new Set<Connection>()
  let latest: Promise<Connection> | undefined
  let closed = false
  /** To all requests. While this grows, the server makes progress. */
  let responses = 0

  async function connect(): Promise<Connection> {
    const connection = await openConnection(target, timeout)
    opened.add(connection)
    connection.session.once('close', () => opened.delete(connection))
    if (closed) connection.session.destroy()
    return connection
  }

  /** Rejects like `openConnection`. */
  async function current(): Promise<Connection> {
    if (closed) throw CLOSED
    const known = latest
    const connection = await known?.catch(() => undefined)
    if (connection !== undefined && isOpen(connection)) return connection
    // The first that finds it closed connects, for all.
    if (latest === known || latest === undefined) latest = connect()
    return latest
  }

  /** Sends a request until the server has processed it. */
  async function sendUntilProcessed(question: Question, sending: Sending): Promise<void> {
    let refusals = 0
    let before = responses
    while (!sending.isOver) {
      const connection = await current()
      if (sending.isOver) return
      // A GOAWAY may have come with the SETTINGS.
      sending.stream = isOpen(connection) ? open(connection, question) : undefined
      if (
        sending.stream !== undefined &&
        (await headOrRefusal(connection, sending.stream, sending.attempt))
      ) {
        responses += 1
        return
      }
      refusals = responses === before ? refusals + 1 : 1
      if (refusals === MOST_REFUSALS)
        throw new Error(`the server refused the HTTP/2 stream ${refusals} times`)
      before = responses
      if (isOpen(connection)) await pause(FIRST_PAUSE * 2 ** (refusals - 1))
    }
  }

  try {
    await current()
  } catch (error) {
    return error === NOT_OFFERED ? NOT_OFFERED.message : failureOf(error, undefined, timeout)
  }
  return {
    send(question) {
      const attempt = startAttempt(clock, timeout, () => {
        sending.isOver = true
        sending.stream?.destroy()
      })
      const sending: Sending = { attempt, stream: undefined, isOver: false }
      void sendUntilProcessed(question, sending).catch(attempt.fail)
      return attempt.received
    },
    close() {
      closed = true
      for (const { session } of opened) session.destroy()
    },
  }
}

/** A request with all its repeats. */
interface Sending {
  readonly attempt: Attempt
  stream: ClientHttp2Stream | undefined
  /** The time is over. */
  isOver: boolean
}

/** A connection whose SETTINGS have arrived: Node opens no more streams at once than they allow. */
interface Connection {
  readonly session: ClientHttp2Session
  /** The last stream that a GOAWAY says was processed. */
  lastProcessed: number
}

function isOpen({ session }: Connection): boolean {
  return !session.closed && !session.destroyed
}

/** Rejects with an error of the network or of TLS, `NOT_OFFERED`, `CLOSED`, or an `AbortError` when the time (ms) is over. */
async function openConnection(target: Target, timeout: number): Promise<Connection> {
  const signal = AbortSignal.timeout(timeout)
  const socket = connectTls({ ...tlsOptions(target), ALPNProtocols: ['h2', 'http/1.1'] })
  // A socket that is given up may still fail.
  socket.on('error', () => undefined)
  try {
    await once(socket, 'secureConnect', { signal })
    if (socket.alpnProtocol !== 'h2') throw NOT_OFFERED
    return await connectionOver(socket, target, signal)
  } catch (error) {
    socket.destroy()
    throw error
  }
}

async function connectionOver(socket: TLSSocket, { url }: Target, signal: AbortSignal): Promise<Connection> {
  const session = connect(url.origin, { createConnection: () => socket })
  const connection: Connection = { session, lastProcessed: Number.POSITIVE_INFINITY }
  // Every stream of a session that fails reports the failure itself.
  session.on('error', () => undefined)
  session.on('goaway', (_code: number, last: number) => {
    connection.lastProcessed = Math.min(connection.lastProcessed, last)
  })
  const { promise: closed, reject } = Promise.withResolvers<never>()
  const close = (): void => reject(CLOSED)
  session.once('close', close)
  await Promise.race([once(session, 'remoteSettings', { signal }), closed]).finally(() =>
    session.off('close', close),
  )
  return connection
}

function open({ session }: Connection, { method, path, fields, body }: Question): ClientHttp2Stream {
  const grouped = groupFields([...EVERY_REQUEST, ...fields], 'lower')
  const stream = session.request({ ...grouped, ':method': method, ':path': path })
  stream.end(body)
  return stream
}

/** True when the head has arrived, false when the server did not process the request. Rejects if neither is so. */
function headOrRefusal(
  connection: Connection,
  stream: ClientHttp2Stream,
  attempt: Attempt,
): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>()
  let failure: unknown
  stream.on('error', (error) => {
    failure = error
  })
  // Of a stream that is closed without an error code, Node tells nothing else.
  stream.once('close', () => {
    const { rstCode, id = 0 } = stream
    if (rstCode === constants.NGHTTP2_REFUSED_STREAM || id > connection.lastProcessed) resolve(false)
    else reject(failure ?? (isOpen(connection) ? RESET : CLOSED))
  })
  // From here on, the body tells how the stream ends.
  stream.once('response', ({ ':status': status = 0, ...headers }) => {
    attempt.receive({ status, fields: foldFields(headers) }, stream)
    resolve(true)
  })
  return promise
}
