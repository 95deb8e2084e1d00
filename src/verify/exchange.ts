import type { Readable } from 'node:stream'
import type { Fields } from '../http/fields.ts'
import type { Clock } from '../system/clock.ts'
import { reasonOf } from '../system/node-permission.ts'
import { codeOf } from '../system/setup-error.ts'
import type { Answer } from './answer.ts'
import type { Question } from './question.ts'

/** A way to the server: one or more connections of one HTTP version. */
export interface Client {
  /** Never rejects for a fault of the server: a response that is missing or broken is an `Answer` with a `failure`. */
  send(question: Question): Promise<Answer>
  close(): void
}

/** A request without a whole response after this time has failed (ms). */
export const RESPONSE_TIMEOUT = 10_000

/** The fields of each request. Without them the server may compress a body, which then cannot be judged (RFC 9110 §12.5.3). */
export const EVERY_REQUEST: Fields = ['Accept-Encoding', 'identity']

/** The head of a response, with fields by lower-case name. */
export type Head = Pick<Answer, 'status' | 'fields'>

/** One request and its response, whichever version of HTTP carries them. The first outcome counts; later calls do nothing. */
export interface Exchange {
  /** Resolves when the response has been read, when it breaks off or when the time is over. Never rejects. */
  readonly answer: Promise<Answer>
  /** The head has arrived: reads the body. */
  receive(head: Head, body: Readable): void
  /** There will be no response, or no more of it. */
  fail(error: unknown): void
}

/** Of a longer body only this much is read (bytes), and the connection is closed: the device's pages are not judged. */
const LARGEST_BODY = 64 * 1024

/**
 * Starts an exchange that takes `timeout` ms at most, from now to the end of the body.
 *
 * @param end closes the stream or the connection; called when the time is over
 */
export function startExchange(clock: Clock, timeout: number, end: () => void): Exchange {
  const sentAt = clock.wall()
  const start = clock.monotonic()
  const { promise: answer, resolve } = Promise.withResolvers<Answer>()
  const times = (): Pick<Answer, 'at' | 'ms' | 'sentAt'> => ({
    at: clock.wall(),
    ms: clock.monotonic() - start,
    sentAt,
  })
  let received: Answer | undefined
  const timer = setTimeout(() => {
    fail(new DOMException('', 'TimeoutError'))
    end()
  }, timeout)

  function finish(result: Answer): void {
    clearTimeout(timer)
    resolve(result)
  }

  function fail(error: unknown): void {
    const none = { status: 0, fields: new Map(), body: '', ...times() }
    const failure = failureOf(error, received?.status, timeout)
    finish({
      ...(received ?? none),
      failure,
      ...(UNREACHABLE.has(codeOf(error)) ? { unreachable: true } : {}),
    })
  }

  async function read({ body, ...head }: Head & { readonly body: Readable }): Promise<void> {
    const begun = { ...head, failure: undefined, ...times() }
    const chunks: Buffer[] = []
    const text = (): string => Buffer.concat(chunks).toString()
    received = { ...begun, body: '' }
    let size = 0
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      size += chunk.length
      received = { ...begun, body: text() }
      if (size > LARGEST_BODY) break
    }
    finish(received)
  }

  return {
    answer,
    receive: (head, body) => void read({ ...head, body }).catch(fail),
    fail,
  }
}

const UNREACHABLE: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
  'ENOTFOUND',
])

const CLOSED: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'EPIPE',
  'ERR_HTTP2_SESSION_ERROR',
  'ERR_HTTP2_INVALID_SESSION',
  'ERR_HTTP2_GOAWAY_SESSION',
])

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
  if (CLOSED.has(code)) return 'the connection was closed without a response'
  // OpenSSL's errors have several parts, with the path of a source file: `...:SSL routines::wrong version number:../ssl/...`
  const [, ofTls] = /:SSL routines:[^:]*:([^:\n]+)/.exec(reasonOf(error)) ?? []
  return `no response: ${ofTls ?? reasonOf(error).replace(NODES_HINT, '')}`
}
