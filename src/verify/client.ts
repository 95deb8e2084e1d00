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
import { abortAfter, type Clock } from '../system/clock.ts'
import { readPeersSafely } from '../system/peer-certificate.ts'
import { codeOf } from '../system/setup-error.ts'
import { failureOf, foldFields, type Question, type Received, UNPROCESSED } from './exchange.ts'
import type { VerifyOptions } from './options.ts'

/** A way to the server: one or more connections of one HTTP version. */
export interface Client {
  /** Never rejects for a fault of the server: a response that is missing or broken is a `Received` with a `failure`. */
  send(question: Question): Promise<Received>
  close(): void
}

/** The server under test: where it is, and how it is trusted. */
export type Target = Pick<VerifyOptions, 'url' | 'tls'>

/** A request without a whole response after this time has failed (ms). */
const RESPONSE_TIMEOUT = 10_000

/** The fields of each request. Without them the server may compress a body, which then cannot be judged (RFC 9110 §12.5.3). */
const EVERY_REQUEST: Fields = ['Accept-Encoding', 'identity']

/** Where to connect to, without the brackets of an IPv6 address. */
export function addressOf({ hostname, port, protocol }: URL): {
  readonly host: string
  readonly port: number
} {
  const usual = protocol === 'https:' ? 443 : 80
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? usual : Number(port) }
}

/**
 * How to connect to the server over TLS. Without the name, Node would take it from `Host`, which some requests spoof; SNI takes no IP
 * address (RFC 6066 §3). Without `ca` the authorities of Node and those of the system are trusted.
 */
function tlsOptions({ url, tls: { ca, insecure } }: Target): ConnectionOptions {
  readPeersSafely()
  const address = addressOf(url)
  const servername = isIP(address.host) === 0 ? address.host : ''
  const trust = ca !== undefined ? { ca } : insecure ? {} : { secureContext: usualTrust() }
  return { ...address, servername, rejectUnauthorized: !insecure, ...trust }
}

let usual: SecureContext | undefined

/** Made once, because to read some hundred certificates takes 50 ms. On Linux the system's are in SSL_CERT_FILE and SSL_CERT_DIR. */
function usualTrust(): SecureContext {
  const all = (): Set<string> => new Set([...getCACertificates('default'), ...getCACertificates('system')])
  usual ??= createSecureContext({ ca: [...all()] })
  return usual
}

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
  const kept = { keepAlive: true, maxSockets: connections, scheduling: 'fifo', timeout: FRESH } as const
  const agent =
    url.protocol === 'https:' ? new HttpsAgent({ ...kept, ...tlsOptions(target) }) : new HttpAgent(kept)
  const common = { agent, protocol: url.protocol, ...addressOf(url), setDefaultHeaders: false }

  async function send(question: Question, signal: AbortSignal, mayRepeat: boolean): Promise<Head> {
    const { method, path, fields, hosts = [url.host], body } = question
    const length = body === undefined ? [] : ['Content-Length', String(Buffer.byteLength(body))]
    // As a list, Node sends the fields in this order and with every repeat.
    const headers = [...hosts.flatMap((host) => ['Host', host]), ...EVERY_REQUEST, ...fields, ...length]
    const sent = request({ ...common, method, path, headers, signal })
    // A connection may also break when the response has begun. Its body tells that.
    sent.on('error', () => undefined)
    sent.end(body)
    try {
      // The event has one argument.
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
 * HTTP/2 over one connection; or, in words, why there is none: the server does not offer it by ALPN (RFC 9113 §3.2), refuses the
 * connection, is not trusted or does not answer in time. It is open when the SETTINGS have arrived: Node opens no more streams at
 * once than they allow.
 *
 * @param timeout for the connection, and for each whole response (ms)
 */
export async function createHttp2Client(
  target: Target,
  clock: Clock,
  timeout: number = RESPONSE_TIMEOUT,
): Promise<Client | string> {
  if (target.url.protocol !== 'https:') return 'the server does not offer it without TLS'
  const { signal, cancel } = abortAfter(clock, timeout)
  const socket = connectTls({ ...tlsOptions(target), ALPNProtocols: ['h2', 'http/1.1'] })
  // A socket that is given up may still fail.
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
    return failureOf(error, undefined, timeout)
  } finally {
    cancel()
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

/** A response whose head has arrived. */
interface Head extends Pick<Received, 'status' | 'fields'> {
  readonly body: Readable
}

/** The codes of a connection that did not come about, so nothing was sent. */
const UNREACHABLE = /^(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENOTFOUND)$/

/** Of a longer body only this much is read (bytes), and the connection is closed: the device's pages are not judged. */
const LARGEST_BODY = 64 * 1024

/**
 * One request and its response, whichever version of HTTP carries it, in `timeout` ms at most. Never rejects.
 *
 * @param send resolves when the head has arrived; a rejection is the failure. The signal is aborted when the time is over
 */
async function exchange(
  { wall, monotonic, after }: Clock,
  timeout: number,
  send: (signal: AbortSignal) => Promise<Head>,
): Promise<Received> {
  const sentAt = wall()
  const start = monotonic()
  const over = new AbortController()
  const timer = after(timeout, () => over.abort())
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
    const failure = failureOf(over.signal.aborted ? over.signal.reason : error, received?.status, timeout)
    const unreachable = UNREACHABLE.test(codeOf(error)) ? { unreachable: true as const } : {}
    return { ...(received ?? arrived({ status: 0, fields: new Map() })), failure, ...unreachable }
  } finally {
    timer.cancel()
  }
}
