import { isIP } from 'node:net'
import type { Readable } from 'node:stream'
import { type ConnectionOptions, createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import type { Fields } from '../http/fields.ts'
import type { Clock } from '../system/clock.ts'
import { codeOf, reasonOf } from '../system/setup-error.ts'
import type { VerifyOptions } from './options.ts'
import type { Question } from './question.ts'
import type { Received } from './received.ts'

/** A way to the server: one or more connections of one HTTP version. */
export interface Client {
  /** Never rejects for a fault of the server: a response that is missing or broken is a `Received` with a `failure`. */
  send(question: Question): Promise<Received>
  close(): void
}

/** The server under test: where it is, and how it is trusted. */
export type Target = Pick<VerifyOptions, 'url' | 'tls'>

/** A request without a whole response after this time has failed (ms). */
export const RESPONSE_TIMEOUT = 10_000

/** The fields of each request. Without them the server may compress a body, which then cannot be judged (RFC 9110 §12.5.3). */
export const EVERY_REQUEST: Fields = ['Accept-Encoding', 'identity']

/** Where to connect to, without the brackets of an IPv6 address. */
export function placeOf({ hostname, port, protocol }: URL): { readonly host: string; readonly port: number } {
  const usual = protocol === 'https:' ? 443 : 80
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? usual : Number(port) }
}

/**
 * How to connect to the server over TLS. Without the name, Node would take it from `Host`, which some requests spoof; SNI takes no IP
 * address (RFC 6066 §3). Without `ca` the authorities of Node and those of the system are trusted.
 */
export function tlsOptions({ url, tls: { ca, insecure } }: Target): ConnectionOptions {
  const place = placeOf(url)
  const servername = isIP(place.host) === 0 ? place.host : ''
  const trust = ca !== undefined ? { ca } : insecure ? {} : { secureContext: usualTrust() }
  return { ...place, servername, rejectUnauthorized: !insecure, ...trust }
}

let usual: SecureContext | undefined

/** Made once, because to read some hundred certificates takes 50 ms. On Linux the system's are in SSL_CERT_FILE and SSL_CERT_DIR. */
function usualTrust(): SecureContext {
  const all = (): Set<string> => new Set([...getCACertificates('default'), ...getCACertificates('system')])
  usual ??= createSecureContext({ ca: [...all()] })
  return usual
}

/** One request on its way, whichever version of HTTP carries it. The first outcome counts; later calls do nothing. */
export interface Attempt {
  /** Resolves when the response has been read, when it breaks off or when the time is over. Never rejects. */
  readonly received: Promise<Received>
  /** The head has arrived: reads the body. */
  receive(head: Pick<Received, 'status' | 'fields'>, body: Readable): void
  /** There will be no response, or no more of it. */
  fail(error: unknown): void
}

/** Of a longer body only this much is read (bytes), and the connection is closed: the device's pages are not judged. */
const LARGEST_BODY = 64 * 1024

/**
 * Starts an attempt that takes `timeout` ms at most, from now to the end of the body.
 *
 * @param end closes the stream or the connection; called when the time is over
 */
export function startAttempt(
  { wall, monotonic }: Clock,
  timeout: number,
  end: (error: Error) => void,
): Attempt {
  const sentAt = wall()
  const start = monotonic()
  const { promise, resolve } = Promise.withResolvers<Received>()
  const arrived = (head: Pick<Received, 'status' | 'fields'>): Received => {
    return { ...head, body: '', failure: undefined, at: wall(), ms: monotonic() - start, sentAt }
  }
  let begun: Received | undefined
  const timer = setTimeout(() => {
    const error = new DOMException('', 'TimeoutError')
    fail(error)
    end(error)
  }, timeout)

  function finish(received: Received): void {
    clearTimeout(timer)
    resolve(received)
  }

  function fail(error: unknown): void {
    const failure = failureOf(error, begun?.status, timeout)
    const unreachable = UNREACHABLE.has(codeOf(error)) ? { unreachable: true as const } : {}
    finish({ ...(begun ?? arrived({ status: 0, fields: new Map() })), failure, ...unreachable })
  }

  async function read(head: Pick<Received, 'status' | 'fields'>, body: Readable): Promise<void> {
    const first = arrived(head)
    begun = first
    let bytes = Buffer.alloc(0)
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes = Buffer.concat([bytes, chunk])
      begun = { ...first, body: bytes.toString() }
      if (bytes.length > LARGEST_BODY) break
    }
    finish(begun)
  }

  return { received: promise, receive: (head, body) => void read(head, body).catch(fail), fail }
}

const UNREACHABLE: ReadonlySet<string> = new Set(
  ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ENOTFOUND'], // nothing was sent
)

const CLOSED = /^(?:ECONNRESET|EPIPE|ERR_HTTP2_(?:SESSION_ERROR|INVALID_SESSION|GOAWAY_SESSION))$/

/** Node's advice, which has no effect here: the system's authorities are trusted already. */
const NODES_HINT = /; if the root CA is installed locally, try running Node\.js with --use-system-ca$/

/**
 * An error in words.
 *
 * @param status of the response whose body broke off; undefined if there was none
 */
export function failureOf(error: unknown, status: number | undefined, timeout: number): string {
  if (error instanceof Error && /^(?:Timeout|Abort)Error$/.test(error.name)) {
    const within = `within ${timeout / 1000} s`
    return status === undefined ? `no response ${within}` : `${status}, whose body did not end ${within}`
  }
  const code = codeOf(error)
  if (status !== undefined) return `${status}, whose body broke off`
  if (code.startsWith('HPE_')) return `no valid HTTP response (${code})`
  if (code === 'ERR_HTTP2_STREAM_ERROR') return 'the HTTP/2 stream was reset without a response'
  if (CLOSED.test(code)) return 'the connection was closed without a response'
  // OpenSSL's errors have several parts, with the path of a source file: `...:SSL routines::wrong version number:../ssl/...`
  const [, ofTls] = /:SSL routines:[^:]*:([^:\n]+)/.exec(reasonOf(error)) ?? []
  return `no response: ${ofTls ?? reasonOf(error).replace(NODES_HINT, '')}`
}
