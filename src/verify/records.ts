import type { OutsideId } from '../promises/promises.ts'
import { type Answer, describeAnswer, member } from './answer.ts'
import { isPlausibleReset, type Limit, limitFieldFaults, limitFieldsOf } from './limit-faults.ts'
import { retryAfter } from './observation.ts'
import type { Question } from './question.ts'
import { type Departure, ENDPOINTS, type Endpoint, type Finding } from './verdict.ts'

/** What every response of a run is read for, whatever it was sent for. */
export interface Records {
  add(question: Question, answer: Answer): void
  /** Requests that were recorded. */
  readonly requests: number
  /** When the latest window that a response told of has ended for certain (Unix time in ms). */
  windowEnd(endpoint: Endpoint): number
  /** Refresh tokens that the server has issued in this run. */
  readonly refreshTokens: ReadonlySet<string>
  /** Adds a text that no response may show (C9). */
  addMarker(text: string): void
  /** A text without the password and the tokens of the run. */
  mask(text: string): string
  /** A response whose body is masked: an excerpt of it shows no part of a secret. */
  masked(answer: Answer): Answer
  /** C9, C16 and C19, of all responses so far. */
  findings(): readonly Finding[]
}

/** Different departures of one promise that are reported; more would hide the others. */
const MOST_DEPARTURES = 5

/** Waited for in addition, because `X-RateLimit-Reset` comes from another clock (ms). */
const CLOCK_MARGIN = 150

/** The documented API has no other statuses (device API §7). */
const STATUSES: ReadonlySet<number> = new Set([200, 400, 401, 429, 500])

/** @param password masked in every text */
export function createRecords(limits: Readonly<Record<Endpoint, Limit>>, password: string): Records {
  const ends = new Map<Endpoint, number>()
  const secrets = new Set([password])
  const markers = new Set<string>()
  const refreshTokens = new Set<string>()
  const departures = new Map<OutsideId, Map<string, Departure>>()
  let requests = 0

  function mask(text: string): string {
    let masked = text
    for (const secret of secrets) masked = masked.replaceAll(secret, '***')
    return masked
  }

  function masked(answer: Answer): Answer {
    return { ...answer, body: mask(answer.body) }
  }

  function depart(promise: OutsideId, key: string, departure: Departure): void {
    const known = departures.get(promise) ?? new Map<string, Departure>()
    departures.set(promise, known)
    if (!known.has(key) && known.size < MOST_DEPARTURES) known.set(key, departure)
  }

  function addTokens(answer: Answer): void {
    for (const name of ['access_token', 'refresh_token']) {
      const token = member(answer, name)
      if (typeof token !== 'string' || token === '') continue
      secrets.add(token)
      if (name === 'refresh_token') refreshTokens.add(token)
    }
  }

  function readLimits(question: Question, answer: Answer): void {
    const { endpoint, oddity, what } = question
    const candidates = oddity === 'respelled' ? [limits.api, limits.oauth] : [limits[endpoint]]
    const [faults = []] = candidates
      .map((limit) => limitFieldFaults(answer, limit))
      .sort((a, b) => a.length - b.length)
    for (const { text } of faults) {
      depart('C16', text, {
        sent: what,
        came: `${answer.status}, ${text}`,
        wanted: 'X-RateLimit-Limit, -Remaining and -Reset once each, with the values of the window',
        clause: 'device API §8',
      })
    }
  }

  function readWindow({ endpoint, oddity }: Question, answer: Answer): void {
    const limit = limits[endpoint]
    const reset = limitFieldsOf(answer)?.reset
    const stated = reset !== undefined && isPlausibleReset(reset, answer, limit) ? reset * 1000 : undefined
    const wait = answer.status === 429 ? retryAfter(answer) : undefined
    const latest = answer.at + limit.window * 1000
    const ofWait = wait === undefined || wait > limit.window ? 0 : answer.at + wait * 1000
    const end = Math.max(stated ?? latest, ofWait) + CLOCK_MARGIN
    // A server may count an odd request in either window.
    if (oddity === undefined && stated !== undefined) ends.set(endpoint, end)
    // A window without a stated end is over when nothing was sent for its length.
    else if (stated === undefined)
      for (const each of oddity === undefined ? [endpoint] : ENDPOINTS)
        ends.set(each, Math.max(end, ends.get(each) ?? 0))
  }

  function readRefusal({ what }: Question, answer: Answer): void {
    if (!STATUSES.has(answer.status)) {
      depart('C19', String(answer.status), {
        sent: what,
        came: describeAnswer(masked(answer)),
        wanted: 'a refusal with 400, 401, 429 or 500',
        clause: 'device API §7',
      })
    }
    const shown = [answer.body, ...[...answer.fields.values()].flat()].join('\n')
    for (const marker of markers) {
      if (!shown.includes(marker)) continue
      depart('C9', marker, {
        sent: what,
        came: `${answer.status} that shows the password or token of the request`,
        wanted: 'a refusal without it',
        clause: 'CWE-532, CWE-209',
      })
    }
  }

  return {
    add(question, answer) {
      requests += 1
      if (answer.failure !== undefined) return
      if (question.method === 'POST') addTokens(answer)
      if (question.oddity !== 'malformed') readLimits(question, answer)
      readWindow(question, answer)
      if (question.refused === true && question.oddity === undefined) readRefusal(question, answer)
    },
    get requests() {
      return requests
    },
    windowEnd: (endpoint) => ends.get(endpoint) ?? 0,
    refreshTokens,
    addMarker: (text) => markers.add(text),
    mask,
    masked,
    findings: () =>
      (['C9', 'C16', 'C19'] as const).flatMap((promise): readonly Finding[] => {
        const found = [...(departures.get(promise)?.values() ?? [])]
        if (found.length === 0) return [{ promise, kind: 'kept' }]
        return found.map((departure) => ({ promise, kind: 'broken', ...departure }))
      }),
  }
}
