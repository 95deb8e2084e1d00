import { once } from 'node:events'
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http'
import { type ClientHttp2Session, connect, constants } from 'node:http2'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { connect as connectTls } from 'node:tls'
import { groupFields } from '../http/fields.ts'
import type { Clock } from '../system/clock.ts'
import { codeOf } from '../system/setup-error.ts'
import {
  type Client,
  EVERY_REQUEST,
  exchange,
  failureOf,
  type Head,
  placeOf,
  RESPONSE_TIMEOUT,
  type Target,
  tlsOptions,
  UNPROCESSED,
} from './client.ts'
import { foldFields, type Question } from './exchange.ts'

/**
 * A connection that has been idle for longer than this is closed (ms): the server may close it while a request is on its way, and a
 * client must not repeat a POST by itself, because the server may have acted on it (RFC 9112 §9.3.1, RFC 9110 §9.2.2). Node's server
 * closes after 5 s, nginx after 75 s, and the shortest setting of either is 1 s.
 */
const FRESH = 500

/**
 * HTTP/1.1 over at most this many kept connections. A connection that the server closes is replaced. A GET, HEAD or OPTIONS whose
 * kept connection is closed just then is sent again, once.
 *
 * @param timeout for a whole response (ms)
 */
export function createHttp1Client(
  target: Target,
  clock: Clock,
  connections = 1,
  timeout: number = RESPONSE_TIMEOUT,
): Client {
  const { url } = target
  const secure = url.protocol === 'https:'
  const kept = { keepAlive: true, maxSockets: connections, scheduling: 'fifo', timeout: FRESH } as const
  const agent = secure ? new HttpsAgent({ ...kept, ...tlsOptions(target) }) : new HttpAgent(kept)
  const request = secure ? requestHttps : requestHttp
  const place = { agent, ...placeOf(url), setDefaultHeaders: false }

  async function send(question: Question, signal: AbortSignal, mayRepeat: boolean): Promise<Head> {
    const { method, path, body } = question
    const sent = request({ ...place, method, path, headers: headerOf(question, url), signal })
    // A connection may also break when the response has begun. Its body tells that.
    sent.on('error', () => undefined)
    sent.end(body)
    try {
      // The event has one argument.
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      const { statusCode: status = 0, rawHeaders } = response
      return { status, fields: foldFields(groupFields(rawHeaders, 'lower')), body: response }
    } catch (error) {
      const closedByServer = sent.reusedSocket && codeOf(error) === 'ECONNRESET'
      if (mayRepeat && closedByServer) return send(question, signal, false)
      throw error
    }
  }

  return {
    send: (question) =>
      exchange(clock, timeout, (signal) => send(question, signal, question.method !== 'POST')),
    close: () => agent.destroy(),
  }
}

/** The fields as Node takes them to send them in this order and with every repeat. */
function headerOf({ fields, hosts, body }: Question, url: URL): string[] {
  const host = (hosts ?? [url.host]).flatMap((value) => ['Host', value])
  const length = body === undefined ? [] : ['Content-Length', String(Buffer.byteLength(body))]
  return [...host, ...EVERY_REQUEST, ...fields, ...length]
}

const CLOSED = Object.assign(new Error('session closed'), { code: 'ERR_HTTP2_SESSION_ERROR' })
const RESET = Object.assign(new Error('stream reset'), { code: 'ERR_HTTP2_STREAM_ERROR' })
const NOT_OFFERED = new Error('the server does not offer it')

/**
 * HTTP/2 over one connection; or, in words, why there is none: the server does not offer it by ALPN (RFC 9113 §3.2), refuses the
 * connection, is not trusted or does not answer in time.
 *
 * @param timeout for the connection, and for each whole response (ms)
 */
export async function createHttp2Client(
  target: Target,
  clock: Clock,
  timeout: number = RESPONSE_TIMEOUT,
): Promise<Client | string> {
  if (target.url.protocol !== 'https:') return 'the server does not offer it without TLS'
  try {
    const session = await openSession(target, timeout)
    return {
      send: (question) => exchange(clock, timeout, (signal) => sendOver(session, question, signal)),
      close: () => session.destroy(),
    }
  } catch (error) {
    return error === NOT_OFFERED ? NOT_OFFERED.message : failureOf(error, undefined, timeout)
  }
}

/**
 * Resolves when the SETTINGS have arrived: Node opens no more streams at once than they allow. Rejects with an error of the network or
 * of TLS, `NOT_OFFERED`, `CLOSED`, or an `AbortError` when the time (ms) is over.
 */
async function openSession(target: Target, timeout: number): Promise<ClientHttp2Session> {
  const signal = AbortSignal.timeout(timeout)
  const socket = connectTls({ ...tlsOptions(target), ALPNProtocols: ['h2', 'http/1.1'] })
  // A socket that is given up may still fail.
  socket.on('error', () => undefined)
  try {
    await once(socket, 'secureConnect', { signal })
    if (socket.alpnProtocol !== 'h2') throw NOT_OFFERED
    const session = connect(target.url.origin, { createConnection: () => socket })
    // Every stream of a session that fails reports the failure itself.
    session.on('error', () => undefined)
    const closed = once(session, 'close', { signal }).then(() => Promise.reject(CLOSED))
    await Promise.race([once(session, 'remoteSettings', { signal }), closed])
    return session
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** Resolves when the head has arrived. Rejects if there is none. */
async function sendOver(
  session: ClientHttp2Session,
  { method, path, fields, body }: Question,
  signal: AbortSignal,
): Promise<Head> {
  if (session.closed) throw session.destroyed ? CLOSED : UNPROCESSED
  const { promise, resolve, reject } = Promise.withResolvers<Head>()
  const header = { ...groupFields([...EVERY_REQUEST, ...fields], 'lower'), ':method': method, ':path': path }
  const stream = session.request(header, { signal })
  let failure: unknown
  stream.on('error', (error) => {
    failure = error
  })
  // Of a stream that is closed without an error code, Node tells nothing else. One above the last of a GOAWAY is refused, too.
  stream.once('close', () => {
    if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) reject(UNPROCESSED)
    else reject(failure ?? (session.closed ? CLOSED : RESET))
  })
  // From here on, the body tells how the stream ends.
  stream.once('response', ({ ':status': status = 0, ...headers }) =>
    resolve({ status, fields: foldFields(headers), body: stream }),
  )
  stream.end(body)
  return promise
}
