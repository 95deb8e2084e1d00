import type { OutsideId } from '../promises/promises.ts'
import { type Answer, describeAnswer } from './answer.ts'
import { shownBy } from './encodings.ts'
import { type Limit, limitFieldFaults } from './limit-faults.ts'
import { createLogins } from './logins.ts'
import type { Observation } from './observation.ts'
import type { Question } from './question.ts'
import { createSecrets } from './secrets.ts'
import type { Departure, Endpoint, Finding } from './verdict.ts'
import { createWindowEnds } from './window-ends.ts'

/** What every response of a run is read for, whatever it was sent for. */
export interface Records {
  add(question: Question, answer: Answer): void
  /** Records of a response of a flood only which window it tells of. */
  addFlooded(question: Question, answer: Observation): void
  /** Requests that were recorded. */
  readonly requests: number
  /** When the latest window that a response told of has ended for certain (Unix time in ms). */
  windowEnd(endpoint: Endpoint): number
  /** One token of each login of the run, to revoke it by: the newest refresh token, or the access token if there is none. */
  readonly logins: ReadonlySet<string>
  /** Adds a text that no refusal may show (C9), besides the password and the tokens of the server. */
  addMarker(text: string): void
  /** A text without the password and the tokens of the run, in any usual encoding. */
  mask(text: string): string
  /** A response whose body is masked: an excerpt of it shows no part of a secret. */
  masked(answer: Answer): Answer
  /** C9, C16 and C19, of all responses so far. */
  findings(): readonly Finding[]
}

/** Different departures of one promise that are reported; more would hide the others. */
const MOST_DEPARTURES = 5

/** The documented API has no other statuses (device API §7). */
const STATUSES: ReadonlySet<number> = new Set([200, 400, 401, 429, 500])

/** A shorter text is found by chance in a page (characters). */
const SHORTEST_SOUGHT = 8

/** @param password masked in every text, and sought in refusals (C9) */
export function createRecords(limits: Readonly<Record<Endpoint, Limit>>, password: string): Records {
  const windowEnds = createWindowEnds(limits)
  const secrets = createSecrets(password)
  const logins = createLogins()
  const unsought = whyUnsought(password)
  const markers = new Set<string>()
  const departures = new Map<OutsideId, Map<string, Departure>>()
  let requests = 0

  function masked(answer: Answer): Answer {
    return { ...answer, body: secrets.mask(answer.body) }
  }

  function depart(promise: OutsideId, key: string, departure: Departure): void {
    const known = departures.get(promise) ?? new Map<string, Departure>()
    departures.set(promise, known)
    if (!known.has(key) && known.size < MOST_DEPARTURES) known.set(key, departure)
  }

  function readLimits({ endpoint, oddity, what }: Question, answer: Answer): void {
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

  function readStatus({ what }: Question, answer: Answer): void {
    if (STATUSES.has(answer.status)) return
    depart('C19', String(answer.status), {
      sent: what,
      came: describeAnswer(masked(answer)),
      wanted: 'a refusal with 400, 401, 429 or 500',
      clause: 'device API §7',
    })
  }

  function readSecrets({ what }: Question, { status, body, fields }: Answer): void {
    const isShown = shownBy([body, ...[...fields.values()].flat()].join('\n'))
    const kinds: readonly (readonly [string, readonly string[]])[] = [
      ['the password', unsought === undefined ? [password] : []],
      ['a token', [...secrets.tokens].filter((token) => token.length >= SHORTEST_SOUGHT)],
      ['the password or token of the request', [...markers].filter((text) => !secrets.tokens.has(text))],
    ]
    for (const [kind, texts] of kinds) {
      if (!texts.some(isShown)) continue
      depart('C9', kind, {
        sent: what,
        came: `${status} that shows ${kind}`,
        wanted: 'a refusal without it',
        clause: 'CWE-532, CWE-209',
      })
    }
  }

  return {
    add(question, answer) {
      requests += 1
      const tokens = secrets.learn(answer.body)
      if (answer.status === 0) return
      if (question.method === 'POST') logins.add(question, answer)
      if (question.oddity !== 'malformed') readLimits(question, answer)
      windowEnds.add(question, answer)
      if (question.refused === true && question.oddity === undefined) readStatus(question, answer)
      if (isRefusal(question, answer, tokens.length > 0)) readSecrets(question, answer)
    },
    addFlooded: windowEnds.addFlooded,
    get requests() {
      return requests
    },
    windowEnd: windowEnds.of,
    logins: logins.tokens,
    addMarker: (text) => markers.add(text),
    mask: secrets.mask,
    masked,
    findings: () => [
      ...(['C9', 'C16', 'C19'] as const).flatMap((promise): readonly Finding[] => {
        const found = [...(departures.get(promise)?.values() ?? [])]
        if (found.length === 0) return [{ promise, kind: 'kept' }]
        return found.map((departure) => ({ promise, kind: 'broken', ...departure }))
      }),
      ...(unsought === undefined ? [] : [{ promise: 'C9', kind: 'untested', reason: unsought } as const]),
    ],
  }
}

/** Whether the server itself wrote the response, and gave no tokens: those it has to show. */
function isRefusal({ refused, oddity, method }: Question, { status }: Answer, givesTokens: boolean): boolean {
  const success = status >= 200 && status < 300
  if (success && givesTokens) return false
  const odd = oddity !== undefined && method === 'POST' && !success
  return (refused === true && oddity === undefined) || odd || status === 429
}

/** Why C9 does not look for the password. The word `password` is in the refusals of every server. */
function whyUnsought(password: string): string | undefined {
  if (password.length < SHORTEST_SOUGHT) return 'the password is too short to look for'
  return /^[a-z]{1,15}$/i.test(password) ? 'the password is a word, which may be in any text' : undefined
}
