import type { ConnectionOptions } from 'node:tls'
import type { Clock } from '../system/clock.ts'
import { reasonOf } from '../system/node-permission.ts'
import { codeOf } from '../system/setup-error.ts'
import type { Answer } from './answer.ts'
import type { VerifyOptions } from './options.ts'
import type { Question } from './question.ts'

/** A way to the server: one or more connections of one HTTP version. */
export interface Client {
  /** Never rejects for a fault of the server: no response is an `Answer` with a `failure`. */
  send(question: Question): Promise<Answer>
  close(): void
}

/** A request without a response after this time has none (ms). */
export const RESPONSE_TIMEOUT = 10_000

/** Of a longer body only this much is read (bytes), and the connection is closed: the device's pages are not judged. */
const LARGEST_BODY = 64 * 1024

/** The body of a response, or its start. Rejects if it breaks off. */
export async function startOfText(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    size += chunk.length
    if (size > LARGEST_BODY) break
  }
  return Buffer.concat(chunks).toString()
}

/** How the certificate of the server is checked. */
export function tlsOptions({ url, tls }: Pick<VerifyOptions, 'url' | 'tls'>): ConnectionOptions {
  return {
    host: hostOf(url),
    port: portOf(url),
    rejectUnauthorized: !tls.insecure,
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
  }
}

/** Without the brackets of an IPv6 address. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}

export function portOf({ port, protocol }: URL): number {
  if (port !== '') return Number(port)
  return protocol === 'https:' ? 443 : 80
}

/** Takes the times of a request. */
export interface Stopwatch {
  readonly sentAt: number
  /** What the times of a response are when its head arrives now. */
  readonly arrived: () => { readonly at: number; readonly ms: number; readonly sentAt: number }
}

export function stopwatch(clock: Clock): Stopwatch {
  const sentAt = clock.wall()
  const start = clock.monotonic()
  return { sentAt, arrived: () => ({ at: clock.wall(), ms: clock.monotonic() - start, sentAt }) }
}

/** The `Answer` of a request without a response. */
export function noAnswer(error: unknown, watch: Stopwatch): Answer {
  return { status: 0, fields: new Map(), body: '', failure: failureOf(error), ...watch.arrived() }
}

const CLOSED: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'EPIPE',
  'ERR_HTTP2_STREAM_ERROR',
  'ERR_HTTP2_SESSION_ERROR',
])

function failureOf(error: unknown): string {
  if (error instanceof Error && /^(?:Timeout|Abort)Error$/.test(error.name))
    return `no response within ${RESPONSE_TIMEOUT / 1000} s`
  const code = codeOf(error)
  if (code.startsWith('HPE_')) return `no valid HTTP response (${code})`
  if (CLOSED.has(code)) return 'the connection was closed without a response'
  // OpenSSL's errors have several parts, with the path of a source file: `...:SSL routines::wrong version number:../ssl/...`
  const [, ofTls] = /:SSL routines:[^:]*:([^:\n]+)/.exec(reasonOf(error)) ?? []
  return `no response: ${ofTls ?? reasonOf(error)}`
}
