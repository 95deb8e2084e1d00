import { isIP } from 'node:net'
import type { Readable } from 'node:stream'
import { type ConnectionOptions, createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import type { Fields } from '../http/fields.ts'
import type { Clock } from '../system/clock.ts'
import { codeOf, reasonOf } from '../system/setup-error.ts'
import type { Question, Received } from './exchange.ts'
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

/** A response whose head has arrived. */
export interface Head extends Pick<Received, 'status' | 'fields'> {
  readonly body: Readable
}

/** Of a longer body only this much is read (bytes), and the connection is closed: the device's pages are not judged. */
const LARGEST_BODY = 64 * 1024

/**
 * One request and its response, whichever version of HTTP carries it, in `timeout` ms at most. Never rejects.
 *
 * @param send resolves when the head has arrived; a rejection is the failure. The signal is aborted when the time is over
 */
export async function exchange(
  { wall, monotonic }: Clock,
  timeout: number,
  send: (signal: AbortSignal) => Promise<Head>,
): Promise<Received> {
  const sentAt = wall()
  const start = monotonic()
  const over = new AbortController()
  const timer = setTimeout(() => over.abort(), timeout)
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
    const unreachable = UNREACHABLE.has(codeOf(error)) ? { unreachable: true as const } : {}
    return { ...(received ?? arrived({ status: 0, fields: new Map() })), failure, ...unreachable }
  } finally {
    clearTimeout(timer)
  }
}

const UNREACHABLE: ReadonlySet<string> = new Set(
  ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ENOTFOUND'], // nothing was sent
)

/** The server says by REFUSED_STREAM or GOAWAY that it did nothing with an HTTP/2 request (RFC 9113 §8.7). */
export const UNPROCESSED = new Error('the server did not process each request')

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
  if (error === UNPROCESSED) return UNPROCESSED.message
  const code = codeOf(error)
  if (status !== undefined) return `${status}, whose body broke off`
  if (code.startsWith('HPE_')) return `no valid HTTP response (${code})`
  if (code === 'ERR_HTTP2_STREAM_ERROR') return 'the HTTP/2 stream was reset without a response'
  if (CLOSED.test(code)) return 'the connection was closed without a response'
  // OpenSSL's errors have several parts, with the path of a source file: `...:SSL routines::wrong version number:../ssl/...`
  const [, ofTls] = /:SSL routines:[^:]*:([^:\n]+)/.exec(reasonOf(error)) ?? []
  return `no response: ${ofTls ?? reasonOf(error).replace(NODES_HINT, '')}`
}
