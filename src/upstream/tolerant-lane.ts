import { type Forward, hasBody } from '../http/admission.ts'
import type { Exchange } from '../http/exchange.ts'
import { type Fields, fieldValues } from '../http/fields.ts'
import type { KeptBody } from './kept-body.ts'
import { type AnswerRules, type ReaderPatience, Relay, type RelayEnd } from './relay.ts'
import type { UpstreamDeadlines, UpstreamTarget } from './target.ts'
import { TolerantAttempt } from './tolerant-attempt.ts'

export interface TolerantLaneDependencies {
  readonly target: UpstreamTarget
  readonly deadlines: UpstreamDeadlines
  /** How long a client may pause within its request body (ms). */
  readonly uploadTimeout: () => number
  readonly reader: ReaderPatience
}

/**
 * As `forwardStrictly`, for firmware whose HTTP the strict parser refuses: through `http-proxy-3` and Node's lenient
 * parser, on a connection of its own, so that whatever the device sends too much is never taken for the next answer.
 * Nothing is repeated: a new connection cannot be stale.
 */
export function forwardTolerantly(
  admission: Forward,
  exchange: Exchange,
  fields: readonly string[],
  { target, deadlines, uploadTimeout, reader }: TolerantLaneDependencies,
  answer: AnswerRules,
  collected?: KeptBody,
): Promise<RelayEnd> {
  // An attempt opens its connection at once; for a client that has left there would be nobody to close it.
  if (exchange.answered) return Promise.resolve({ kind: 'abandoned' })
  const { method } = exchange.head
  return new Promise((resolve) => {
    let attempt: TolerantAttempt | undefined
    const relay = new Relay({
      exchange,
      answer,
      reader,
      onEnd(end) {
        attempt?.close()
        resolve(end)
      },
    })
    attempt = new TolerantAttempt(relay, method, target, deadlines)
    attempt.send(
      admission.target,
      [...hostField(fields, target), ...fields, ...connectionFields(method, admission)],
      hasBody(admission) ? (collected?.open() ?? exchange.body(uploadTimeout())) : undefined,
    )
  })
}

/** A client of HTTP/1.0 may have named no host; the request to the device is of HTTP/1.1, which needs one. */
function hostField(fields: Fields, { origin }: UpstreamTarget): string[] {
  return fieldValues(fields, 'host').length > 0 ? [] : ['Host', new URL(origin).host]
}

/** What Node would add by itself where it knows the header as an object only, or would get wrong. */
function connectionFields(method: string, { framing }: Forward): string[] {
  const fields = ['Connection', 'close']
  if (framing === 'chunked') fields.push('Transfer-Encoding', 'chunked')
  // Without a length Node would send an empty chunked body, which old firmware does not understand.
  if (framing === null && !BODYLESS.has(method)) fields.push('Content-Length', '0')
  return fields
}

/** Methods whose requests Node sends without a body unless told otherwise. */
const BODYLESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'])
