import { type Limit, limitFieldsOf } from './limit-faults.ts'
import type { Observation } from './observation.ts'

/** What came back for one request. A request without a response has the status 0. */
export interface Answer extends Observation {
  /** When the request was sent (Unix time in ms). */
  readonly sentAt: number
  /** From the request to the head of the response (ms). */
  readonly ms: number
  /** Why there was no response, such as `no response within 10 s`, or no whole one: `200, whose body broke off`. */
  readonly failure: string | undefined
  /** No connection came about, so nothing was sent. */
  readonly unreachable?: true
}

/**
 * The latest time until which a window lasts whose first response this is (Unix time in ms): its length, or the stated reset, which
 * is earlier if windows open on the clock.
 */
export function windowEndOf(first: Answer, limit: Limit): number {
  const latest = first.at + limit.window * 1000
  const reset = (limitFieldsOf(first)?.reset ?? 0) * 1000
  return reset > first.at ? Math.min(latest, reset) : latest
}

/** A member of the JSON object in a body; undefined if there is none. */
export function member({ body }: Pick<Observation, 'body'>, name: string): unknown {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null
      ? new Map<string, unknown>(Object.entries(value)).get(name)
      : undefined
  } catch {
    return undefined
  }
}

/** A member that is a text and not empty; undefined if there is none. */
export function textMember(answer: Pick<Observation, 'body'>, name: string): string | undefined {
  const value = member(answer, name)
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Whether the server let the request pass the limit, whatever it answered then. */
export function passedLimit({ status }: Observation): boolean {
  return status !== 0 && status !== 429
}

/** Long enough to recognise a page, short enough for a line. */
const EXCERPT = 100

/** A response in words: status and the beginning of the body. The caller masks secrets in the body. */
export function describeAnswer({ status, body, failure }: Answer): string {
  if (failure !== undefined) return failure
  const text = body.replace(/\s+/g, ' ').trim()
  if (text === '') return `${status} without a body`
  return `${status} ${text.length > EXCERPT ? `${text.slice(0, EXCERPT)}…` : text}`
}
