import type { Endpoint } from '../http/admission.ts'
import { escapeHtml } from '../http/html.ts'
import {
  described,
  ENDPOINTS,
  type Observation,
  type Question,
  type Received,
  textMember,
} from './exchange.ts'
import type { OutsideId } from './promises.ts'
import { type Broken, broken, type Judgement, kept, untested } from './verdict.ts'
import { type Limit, limitFieldFaults, retryAfter, retryAfterFaults, statedReset } from './windows.ts'

/** Different departures of one promise that are reported; more would hide the others. */
const MOST_DEPARTURES = 5

/** The documented API has no other statuses (device API §7). */
const STATUSES: ReadonlySet<number> = new Set([200, 400, 401, 429, 500])

/** A shorter text is found by chance in a page (characters). */
const SHORTEST_SOUGHT = 8

/** Waited for in addition to the end of a window, because `X-RateLimit-Reset` comes from another clock (ms). */
const CLOCK_MARGIN = 150

/** What every response of a run is read for, whatever it was sent for. */
export class Records {
  /** Requests of the run, those of its floods included. */
  requests = 0
  /** One token of each login of the run, to revoke it by: the newest refresh token, or the access token if there is none. */
  readonly logins = new Set<string>()
  readonly #limits: Readonly<Record<Endpoint, Limit>>
  readonly #unsought: string | undefined
  /** What no refusal may show (C9) in each spelling, and what a departure calls it. */
  readonly #secrets = new Map<string, string>()
  readonly #ends = new Map<Endpoint, number>()
  readonly #found = new Map<string, Broken>()

  constructor(limits: Readonly<Record<Endpoint, Limit>>, password: string) {
    this.#limits = limits
    this.#unsought = whyUnsought(password)
    if (this.#unsought === undefined) this.seek(password, 'the password')
  }

  /** Adds a text that no refusal may show (C9). */
  seek(text: string, kind = 'the password or token of the request'): void {
    for (const spelling of spellingsOf(text)) this.#secrets.getOrInsert(spelling, kind)
  }

  /** When the latest window that a response told of has ended for certain (Unix time in ms); 0 if none told of one. */
  windowEnd(endpoint: Endpoint): number {
    return this.#ends.get(endpoint) ?? 0
  }

  add(question: Question, received: Received): void {
    this.requests += 1
    const { endpoint, oddity, refused, method } = question
    const { status } = received
    if (status === 0) return
    const issued = this.#learnTokens(question, received)
    if (oddity !== 'malformed') this.#readLimits(question, received)
    this.#readWindow(question, received)
    const ofServer = refused === true && oddity === undefined
    if (ofServer && !STATUSES.has(status))
      this.#depart(
        'C19',
        question,
        described(received),
        'a refusal with 400, 401, 429 or 500',
        String(status),
      )
    if (ofServer && endpoint === 'api' && status === 401 && !namesBearer(received))
      this.#depart('C11', question, challengesOf(received), 'WWW-Authenticate: Bearer ...')
    // The server itself wrote the response, and gave no tokens: those it has to show.
    const success = status >= 200 && status < 300
    const refusal = ofServer || status === 429 || (oddity !== undefined && method === 'POST' && !success)
    if (refusal && !(success && issued)) this.#readSecrets(question, received)
  }

  /** Reads from a response of a flood only which window it tells of. They overtake each other, so none brings an end forward. */
  addFlooded(question: Question, observation: Observation): void {
    this.requests += 1
    if (observation.status !== 0) this.#readWindow(question, observation, this.windowEnd(question.endpoint))
  }

  /** C9, C16 and C19, of all responses so far; and C11 and C15 if one breaks it. */
  judgements(): readonly Judgement[] {
    const unsought = this.#unsought === undefined ? [] : untested(['C9'], this.#unsought)
    return [...this.#found.values(), ...kept(['C9', 'C16', 'C19']), ...unsought]
  }

  /** @param kind departures of one kind are one */
  #depart(promise: OutsideId, { what }: Question, came: string, wanted: string, kind = came): void {
    const known = this.#found.values().filter((each) => each.promise === promise)
    const key = `${promise} ${kind}`
    if (!this.#found.has(key) && [...known].length < MOST_DEPARTURES)
      this.#found.set(key, broken(promise, what, came, wanted))
  }

  #readLimits(question: Question, received: Received): void {
    const { api, oauth } = this.#limits
    const own = this.#limits[question.endpoint]
    const candidates = question.oddity === 'respelled' ? [api, oauth] : [own]
    const [faults = []] = candidates
      .map((limit) => limitFieldFaults(received, limit))
      .sort((a, b) => a.length - b.length)
    const wanted = 'X-RateLimit-Limit, -Remaining and -Reset once each, with the values of the window'
    for (const text of faults) this.#depart('C16', question, `${received.status}, ${text}`, wanted, text)
    if (received.status !== 429 || question.oddity !== undefined) return
    for (const text of retryAfterFaults(received, own, received.sentAt))
      this.#depart('C15', question, text, 'a Retry-After of at least 1 s that ends with the window')
  }

  #readSecrets(question: Question, { status, body, fields }: Received): void {
    const shown = [body, ...[...fields.values()].flat()].join('\n')
    for (const [spelling, kind] of this.#secrets)
      if (shown.includes(spelling))
        this.#depart('C9', question, `${status} that shows ${kind}`, 'a refusal without it', kind)
  }

  /** Returns whether the response gives tokens. */
  #learnTokens({ body = '' }: Question, received: Received): boolean {
    const access = textMember(received, 'access_token')
    const refresh = textMember(received, 'refresh_token')
    for (const token of [access, refresh])
      if (token !== undefined && token.length >= SHORTEST_SOUGHT) this.seek(token, 'a token')
    const shown = new URLSearchParams(body).get('refresh_token') ?? ''
    // A refresh may leave the refresh token out when it stays the same (RFC 6749 §6).
    const token = refresh ?? (this.logins.has(shown) ? undefined : access)
    if (token !== undefined) {
      this.logins.delete(shown)
      this.logins.add(token)
    }
    return access !== undefined || refresh !== undefined
  }

  /** @param before an end that is not brought forward */
  #readWindow({ endpoint, oddity }: Question, observation: Observation, before = 0): void {
    const limit = this.#limits[endpoint]
    const reset = statedReset(observation, limit)
    const wait = observation.status === 429 ? (retryAfter(observation) ?? 0) : 0
    const ofWait = wait > limit.window ? 0 : observation.at + wait * 1000
    const latest = reset === undefined ? observation.at + limit.window * 1000 : reset * 1000
    const end = Math.max(latest, ofWait) + CLOCK_MARGIN
    // A server may count an odd request in either window. One without a stated end is over when nothing was sent for its length.
    if (reset === undefined)
      for (const each of oddity === undefined ? [endpoint] : ENDPOINTS)
        this.#ends.set(each, Math.max(end, this.windowEnd(each)))
    else if (oddity === undefined) this.#ends.set(endpoint, Math.max(end, before))
  }
}

/** Whether a 401 names the scheme that the server expects (RFC 9110 §15.5.2, RFC 6750 §3). */
function namesBearer({ fields }: Received): boolean {
  return (fields.get('www-authenticate') ?? []).some((value) => /(?:^|,\s*)bearer(?:\s|,|$)/i.test(value))
}

function challengesOf({ fields }: Received): string {
  const challenges = fields.get('www-authenticate')
  if (challenges === undefined) return '401 without WWW-Authenticate'
  const [scheme = 'another scheme'] = /\b(?:Basic|Digest|Negotiate|NTLM)\b/i.exec(challenges.join()) ?? []
  return `WWW-Authenticate: ${scheme}`
}

/** Why C9 does not look for the password. The word `password` is in the refusals of every server. */
function whyUnsought(password: string): string | undefined {
  if (password.length < SHORTEST_SOUGHT) return 'the password is too short to look for'
  return /^[a-z]{1,15}$/i.test(password) ? 'the password is a word, which may be in any text' : undefined
}

/** A text as a response may show it: as it is, in a form or URL, as a string in JSON, in HTML, and a form or a string within JSON. */
function spellingsOf(text: string): readonly string[] {
  const form = new URLSearchParams({ text }).toString().slice('text='.length)
  const html = escapeHtml(text)
  const json = JSON.stringify(text).slice(1, -1)
  return [text, form, encodeURIComponent(text), html, json, JSON.stringify(json).slice(1, -1)]
}
