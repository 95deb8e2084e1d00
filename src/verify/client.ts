import { once } from 'node:events'
import { Agent as HttpAgent, type IncomingMessage, request } from 'node:http'
import { type ClientHttp2Session, connect, constants } from 'node:http2'
import { Agent as HttpsAgent } from 'node:https'
import { isIP } from 'node:net'
import type { Readable } from 'node:stream'
import {
  type ConnectionOptions,
  connect as connectTls,
  createSecureContext,
  getCACertificates,
  type SecureContext,
} from 'node:tls'
import { type Fields, groupFields } from '../http/fields.ts'
import { hostOf } from '../http/ip.ts'
import { abortAfter, type Clock } from '../system/clock.ts'
import { readPeersSafely } from '../system/peer-certificate.ts'
import { codeOf } from '../system/setup-error.ts'
import type { VerifyOptions } from './options.ts'
import { clientFailure, foldFields, type Question, type Received, UNPROCESSED } from './question.ts'

/** A way to the server: one or more connections of one HTTP version. */
export interface VerifyClient {
  /** Never rejects for a fault of the server: a missing or broken response is a `Received` with a `failure`. */
  send(question: Question): Promise<Received>
  close(): void
}

/** The server under test: its address, and the authorities that are trusted. */
type Target = Pick<VerifyOptions, 'url' | 'tls'>

/** A request without a whole response after this time has failed (ms). */
const RESPONSE_TIMEOUT = 10_000

/** The fields of every request. Without `identity` the server may compress a body, which then cannot be judged (RFC 9110 §12.5.3). */
const EVERY_REQUEST: Fields = ['Accept-Encoding', 'identity']

/** The host, without the brackets of an IPv6 address, and the port of a URL. */
export function addressOf(url: URL): {
  readonly host: string
  readonly port: number
} {
  const { port, protocol } = url
  const usual = protocol === 'https:' ? 443 : 80
  return { host: hostOf(url), port: port === '' ? usual : Number(port) }
}

/**
 * The options of a TLS connection to the server. They name the server, because Node would otherwise take the name from `Host`, which some
 * requests spoof; SNI takes no IP address (RFC 6066 §3). Without `ca`, the authorities of Node and of the system are trusted.
 */
function tlsOptions({ url, tls: { ca, insecure } }: Target): ConnectionOptions {
  readPeersSafely()
  const address = addressOf(url)
  const servername = isIP(address.host) === 0 ? address.host : ''
  const trust = ca !== undefined ? { ca } : insecure ? {} : { secureContext: usualTrust() }
  return { ...address, servername, rejectUnauthorized: !insecure, ...trust }
}

let usual: SecureContext | undefined

/** The authorities of Node and of the system (on Linux: SSL_CERT_FILE and SSL_CERT_DIR). Made once: reading them takes 50 ms. */
function usualTrust(): SecureContext {
  const all = (): Set<string> => new Set([...getCACertificates('default'), ...getCACertificates('system')])
  usual ??= createSecureContext({ ca: [...all()] })
  return usual
}

/**
 * A connection that is idle for longer than this (ms) is closed: the server may close it while a request is in flight, and a client must
 * not repeat a POST by itself, because the server may have processed it (RFC 9112 §9.3.1, RFC 9110 §9.2.2). Node's server closes idle
 * connections after 5 s, nginx after 75 s, and the shortest setting of either is 1 s.
 */
const FRESH = 500

/**
 * HTTP/1.1 over at most `connections` kept connections. A connection that the server closes is replaced. If the server closes a kept
 * connection just as a GET, HEAD or OPTIONS is sent, the request is sent once more.
 *
 * @param timeout for a whole response (ms)
 */
export function createHttp1Client(
  target: Target,
  clock: Clock,
  connections = 1,
  timeout: number = RESPONSE_TIMEOUT,
): VerifyClient {
  const { url } = target
  const kept = { keepAlive: true, maxSockets: connections, scheduling: 'fifo', timeout: FRESH } as const
  const agent =
    url.protocol === 'https:' ? new HttpsAgent({ ...kept, ...tlsOptions(target) }) : new HttpAgent(kept)
  const common = { agent, protocol: url.protocol, ...addressOf(url), setDefaultHeaders: false }

  async function send(question: Question, signal: AbortSignal, mayRepeat: boolean): Promise<Head> {
    const { method, path, fields, hosts = [url.host], body } = question
    const length = body === undefined ? [] : ['Content-Length', String(Buffer.byteLength(body))]
    // Node sends a list of fields in this order and with every repeated field.
    const headers = [...hosts.flatMap((host) => ['Host', host]), ...EVERY_REQUEST, ...fields, ...length]
    const sent = request({ ...common, method, path, headers, signal })
    // A connection may also break after the beginning of the response: then the body reports the error.
    sent.on('error', () => undefined)
    sent.end(body)
    try {
      // Proof of the cast: the event has one argument, the response.
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      const { statusCode: status = 0, rawHeaders } = response
      return { status, fields: foldFields(groupFields(rawHeaders, 'lower')), body: response }
    } catch (error) {
      if (mayRepeat && sent.reusedSocket && codeOf(error) === 'ECONNRESET')
        return send(question, signal, false)
      throw error
    }
  }

  return {
    send: (question) =>
      exchange(clock, timeout, (signal) => send(question, signal, question.method !== 'POST')),
    close: () => agent.destroy(),
  }
}

const CLOSED = Object.assign(new Error('session closed'), { code: 'ERR_HTTP2_SESSION_ERROR' })
const RESET = Object.assign(new Error('stream reset'), { code: 'ERR_HTTP2_STREAM_ERROR' })

/**
 * HTTP/2 over one connection; or, in words, why there is none: the server does not offer HTTP/2 by ALPN (RFC 9113 §3.2), refuses the
 * connection, is not trusted or does not answer in time. Resolves when the server's SETTINGS have arrived, so that Node opens no more
 * concurrent streams than they allow.
 *
 * @param timeout for the connection, and for each whole response (ms)
 */
export async function createHttp2Client(
  target: Target,
  clock: Clock,
  timeout: number = RESPONSE_TIMEOUT,
): Promise<VerifyClient | string> {
  if (target.url.protocol !== 'https:') return 'the server does not offer it without TLS'
  using deadline = abortAfter(clock, timeout)
  const { signal } = deadline
  const socket = connectTls({ ...tlsOptions(target), ALPNProtocols: ['h2', 'http/1.1'] })
  // A socket that is no longer needed may still emit an error.
  socket.on('error', () => undefined)
  try {
    await once(socket, 'secureConnect', { signal })
    if (socket.alpnProtocol === 'h2') {
      const session = connect(target.url.origin, { createConnection: () => socket })
      // Every stream of a session that fails reports the failure itself.
      session.on('error', () => undefined)
      const closed = once(session, 'close', { signal }).then(() => Promise.reject(CLOSED))
      await Promise.race([once(session, 'remoteSettings', { signal }), closed])
      return {
        send: (question) => exchange(clock, timeout, (signal) => sendOver(session, question, signal)),
        close: () => session.destroy(),
      }
    }
    socket.destroy()
    return 'the server does not offer it'
  } catch (error) {
    socket.destroy()
    return clientFailure(error, undefined, timeout)
  }
}

/** Sends a request. Resolves when the head of the response has arrived, and rejects if there is none. */
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
  // For a stream that closes without an error code, Node emits nothing but `close`. A stream above the last id of a GOAWAY counts as
  // refused.
  stream.once('close', () => {
    if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) reject(UNPROCESSED)
    else reject(failure ?? (session.closed ? CLOSED : RESET))
  })
  // From here on, the body reports how the stream ends.
  stream.once('response', ({ ':status': status = 0, ...headers }) =>
    resolve({ status, fields: foldFields(headers), body: stream }),
  )
  stream.end(body)
  return promise
}

/** A response whose head has arrived. */
interface Head extends Pick<Received, 'status' | 'fields'> {
  readonly body: Readable
}

/** The error codes of a connection that could not be opened, so nothing was sent. */
const UNREACHABLE = /^(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENOTFOUND)$/

/** The most that is read of a body (bytes). A longer one closes the connection: pages of the device are not judged. */
const LARGEST_BODY = 64 * 1024

/**
 * One request and its response, in any version of HTTP, in at most `timeout` ms. Never rejects.
 *
 * @param send resolves when the head has arrived, and rejects with the failure. Its signal is aborted after `timeout`
 */
async function exchange(
  { wall, monotonic, after }: Clock,
  timeout: number,
  send: (signal: AbortSignal) => Promise<Head>,
): Promise<Received> {
  const sentAt = wall()
  const start = monotonic()
  using over = abortAfter({ after }, timeout)
  const arrived = (head: Pick<Received, 'status' | 'fields'>): Received => {
    return { ...head, body: '', failure: undefined, at: wall(), ms: monotonic() - start, sentAt }
  }
  let received: Received | undefined
  try {
    const { body, ...head } = await send(over.signal)
    received = arrived(head)
    let bytes = Buffer.alloc(0)
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes = Buffer.concat([bytes, chunk])
      received = { ...received, body: bytes.toString() }
      if (bytes.length > LARGEST_BODY) break
    }
    return received
  } catch (error) {
    const failure = clientFailure(over.signal.aborted ? over.signal.reason : error, received?.status, timeout)
    const unreachable = UNREACHABLE.test(codeOf(error)) ? { unreachable: true as const } : {}
    return { ...(received ?? arrived({ status: 0, fields: new Map() })), failure, ...unreachable }
  }
}
