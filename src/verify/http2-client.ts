import { once } from 'node:events'
import { type ClientHttp2Session, connect, constants } from 'node:http2'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
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
  let latest = open()
  let closed = false
  /** To all requests. While this grows, the server makes progress. */
  let responses = 0

  async function open(): Promise<Connection> {
    const connection = await openConnection(target, timeout)
    opened.add(connection)
    connection.session.once('close', () => opened.delete(connection))
    if (closed) connection.session.destroy()
    return connection
  }

  /** Rejects like `openConnection`. The first request that finds the connection closed opens another one, for all. */
  async function current(): Promise<Connection> {
    const known = latest
    const connection = await known.catch(() => undefined)
    if (connection !== undefined && isOpen(connection)) return connection
    if (closed) throw CLOSED
    if (latest === known) latest = open()
    return latest
  }

  /** Sends a request until the server has processed it, or until the time is over. */
  async function sendUntilProcessed(
    question: Question,
    attempt: Attempt,
    signal: AbortSignal,
  ): Promise<void> {
    let refusals = 0
    let before = responses
    for (;;) {
      const connection = await current()
      if (signal.aborted) return
      // A GOAWAY may have come with the SETTINGS.
      if (isOpen(connection) && (await isProcessed(connection, question, attempt, signal))) {
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
    await latest
  } catch (error) {
    return error === NOT_OFFERED ? NOT_OFFERED.message : failureOf(error, undefined, timeout)
  }
  return {
    send(question) {
      const over = new AbortController()
      const attempt = startAttempt(clock, timeout, () => over.abort())
      void sendUntilProcessed(question, attempt, over.signal).catch(attempt.fail)
      return attempt.received
    },
    close() {
      closed = true
      for (const { session } of opened) session.destroy()
    },
  }
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
    const session = connect(target.url.origin, { createConnection: () => socket })
    const connection: Connection = { session, lastProcessed: Number.POSITIVE_INFINITY }
    // Every stream of a session that fails reports the failure itself.
    session.on('error', () => undefined)
    session.on('goaway', (_code: number, last: number) => {
      connection.lastProcessed = Math.min(connection.lastProcessed, last)
    })
    const closed = once(session, 'close', { signal }).then(() => Promise.reject(CLOSED))
    await Promise.race([once(session, 'remoteSettings', { signal }), closed])
    return connection
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** Resolves when the head has arrived, or to false when the server did not process the request. Rejects if neither is so. */
function isProcessed(
  connection: Connection,
  { method, path, fields, body }: Question,
  attempt: Attempt,
  signal: AbortSignal,
): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>()
  const header = { ...groupFields([...EVERY_REQUEST, ...fields], 'lower'), ':method': method, ':path': path }
  const stream = connection.session.request(header, { signal })
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
  stream.end(body)
  return promise
}
