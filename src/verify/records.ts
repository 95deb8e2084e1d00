import type { Endpoint } from '../http/admission.ts'
import { type Limit, limitFieldFaults, retryAfter, statedReset } from './limit-fields.ts'
import { ENDPOINTS, type Question } from './question.ts'
import { described, type Observation, type Received, textMember } from './received.ts'
import { type Broken, broken, conclude, type Judgement, untested } from './verdict.ts'

/** What every response of a run is read for, whatever it was sent for. */
export interface Records {
  add(question: Question, received: Received): void
  /** Reads from a response of a flood only which window it tells of. They overtake each other, so none brings an end forward. */
  addFlooded(question: Question, observation: Observation): void
  /** Requests of the run, those of its floods included. */
  readonly requests: number
  /** When the latest window that a response told of has ended for certain (Unix time in ms); 0 if none told of one. */
  windowEnd(endpoint: Endpoint): number
  /** One token of each login of the run, to revoke it by: the newest refresh token, or the access token if there is none. */
  readonly logins: ReadonlySet<string>
  /** Adds a text that no refusal may show (C9), besides the password and the tokens of the server. */
  addMarker(text: string): void
  /** C9, C16 and C19, of all responses so far; and C11 if one breaks it. */
  judgements(): readonly Judgement[]
}

/** Different departures of one promise that are reported; more would hide the others. */
const MOST_DEPARTURES = 5

/** The documented API has no other statuses (device API §7). */
const STATUSES: ReadonlySet<number> = new Set([200, 400, 401, 429, 500])

/** A shorter text is found by chance in a page (characters). */
const SHORTEST_SOUGHT = 8

/** Waited for in addition to the end of a window, because `X-RateLimit-Reset` comes from another clock (ms). */
const CLOCK_MARGIN = 150

/** @param password sought in refusals (C9) */
export function createRecords(limits: Readonly<Record<Endpoint, Limit>>, password: string): Records {
  const unsought = whyUnsought(password)
  const tokens = new Set<string>()
  const markers = new Set<string>()
  const logins = new Set<string>()
  const ends = new Map<Endpoint, number>()
  const found = new Map<string, Broken>()
  let requests = 0

  function depart(kind: string, departure: Broken): void {
    const { promise } = departure
    const known = found.values().filter((each) => each.promise === promise)
    const key = `${promise} ${kind}`
    if (!found.has(key) && [...known].length < MOST_DEPARTURES) found.set(key, departure)
  }

  function readLimits({ endpoint, oddity, what }: Question, received: Received): void {
    const candidates = oddity === 'respelled' ? [limits.api, limits.oauth] : [limits[endpoint]]
    const [faults = []] = candidates
      .map((limit) => limitFieldFaults(received, limit))
      .sort((a, b) => a.length - b.length)
    const wanted = 'X-RateLimit-Limit, -Remaining and -Reset once each, with the values of the window'
    for (const text of faults) depart(text, broken('C16', what, `${received.status}, ${text}`, wanted))
  }

  function readSecrets({ what }: Question, { status, body, fields }: Received): void {
    const shown = [body, ...[...fields.values()].flat()].join('\n')
    const kinds = {
      'the password': unsought === undefined ? [password] : [],
      'a token': [...tokens].filter((token) => token.length >= SHORTEST_SOUGHT),
      'the password or token of the request': [...markers.difference(tokens)],
    }
    for (const [kind, texts] of Object.entries(kinds)) {
      if (texts.flatMap(spellingsOf).some((spelling) => shown.includes(spelling)))
        depart(kind, broken('C9', what, `${status} that shows ${kind}`, 'a refusal without it'))
    }
  }

  /** Returns whether the response gives tokens. */
  function learnTokens({ body = '' }: Question, received: Received): boolean {
    const access = textMember(received, 'access_token')
    const refresh = textMember(received, 'refresh_token')
    for (const token of [access, refresh]) if (token !== undefined) tokens.add(token)
    const shown = new URLSearchParams(body).get('refresh_token') ?? ''
    // A refresh may leave the refresh token out when it stays the same (RFC 6749 §6).
    const token = refresh ?? (logins.has(shown) ? undefined : access)
    if (token !== undefined) {
      logins.delete(shown)
      logins.add(token)
    }
    return access !== undefined || refresh !== undefined
  }

  /** @param before an end that is not brought forward */
  function readWindow({ endpoint, oddity }: Question, observation: Observation, before = 0): void {
    const limit = limits[endpoint]
    const reset = statedReset(observation, limit)
    const wait = observation.status === 429 ? (retryAfter(observation) ?? 0) : 0
    const ofWait = wait > limit.window ? 0 : observation.at + wait * 1000
    const latest = reset === undefined ? observation.at + limit.window * 1000 : reset * 1000
    const end = Math.max(latest, ofWait) + CLOCK_MARGIN
    // A server may count an odd request in either window. One without a stated end is over when nothing was sent for its length.
    if (reset === undefined)
      for (const each of oddity === undefined ? [endpoint] : ENDPOINTS)
        ends.set(each, Math.max(end, ends.get(each) ?? 0))
    else if (oddity === undefined) ends.set(endpoint, Math.max(end, before))
  }

  return {
    add(question, received) {
      requests += 1
      const { endpoint, oddity, refused, method, what } = question
      const { status } = received
      if (status === 0) return
      const issued = learnTokens(question, received)
      if (oddity !== 'malformed') readLimits(question, received)
      readWindow(question, received)
      const ofServer = refused === true && oddity === undefined
      if (ofServer && !STATUSES.has(status))
        depart(
          String(status),
          broken('C19', what, described(received), 'a refusal with 400, 401, 429 or 500'),
        )
      // A server without the challenge never sends it, so one departure says it all.
      if (ofServer && endpoint === 'api' && status === 401 && !namesBearer(received))
        depart('challenge', broken('C11', what, challengesOf(received), 'WWW-Authenticate: Bearer ...'))
      // The server itself wrote the response, and gave no tokens: those it has to show.
      const success = status >= 200 && status < 300
      const refusal = ofServer || status === 429 || (oddity !== undefined && method === 'POST' && !success)
      if (refusal && !(success && issued)) readSecrets(question, received)
    },
    addFlooded(question, observation) {
      requests += 1
      if (observation.status !== 0) readWindow(question, observation, ends.get(question.endpoint))
    },
    get requests() {
      return requests
    },
    windowEnd: (endpoint) => ends.get(endpoint) ?? 0,
    logins,
    addMarker: (text) => markers.add(text),
    judgements: () => [
      ...conclude(['C9', 'C16', 'C19'], [...found.values()]),
      ...(unsought === undefined ? [] : untested(['C9'], unsought)),
    ],
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

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** A text as a response may show it: as it is, in a form or URL, as a string in JSON, in HTML, and a form or a string within JSON. */
function spellingsOf(text: string): readonly string[] {
  const form = new URLSearchParams({ text }).toString().slice('text='.length)
  const html = text.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? '')
  const json = JSON.stringify(text).slice(1, -1)
  return [text, form, encodeURIComponent(text), html, json, JSON.stringify(json).slice(1, -1)]
}
