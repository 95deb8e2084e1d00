import type { Endpoint } from '../http/admission.ts'
import { groupFields } from '../http/fields.ts'
import { escapeHtml } from '../http/html.ts'
import type { OutsideId } from './promises.ts'
import { dateOf, described, type Question, type Received, textMember } from './question.ts'
import { type Limit, limitFieldFaults, retryAfterFaults, type ServerClock } from './stated-limits.ts'
import type { Findings } from './verdict.ts'

/** The most different departures of one promise in a report: more would hide those of other promises. */
const MOST_DEPARTURES = 5

/** The statuses of the documented API (device API §7). */
const STATUSES: ReadonlySet<number> = new Set([200, 400, 401, 429, 500])

/** The least length of a secret to search for (characters): a shorter text may be in a page by chance. */
const SHORTEST_SOUGHT = 8

/** Synchronized clocks differ by less than this (ms). */
const SYNCHRONIZED = 2_000

type Limits = Readonly<Record<Endpoint, Limit>>

interface Known {
  readonly limits: Limits
  readonly clock: ServerClock
}

/** A fault of a response. Faults of one kind are reported once. */
interface Fault {
  readonly kind: string
  readonly came: string
}

/** What every response must show, independent of the purpose of its request. */
interface Row {
  readonly promise: OutsideId
  /** Whether the row applies to a response. */
  readonly of: (question: Question, received: Received) => boolean
  readonly faults: (question: Question, received: Received, known: Known) => readonly Fault[]
  readonly wanted: string
}

/** True if the server itself wrote the response, to a request that every server understands alike. */
const ofServer = ({ refused, oddity }: Question): boolean => refused === true && oddity === undefined

const sameKind = (texts: readonly string[]): Fault[] => texts.map((text) => ({ kind: text, came: text }))

const ROWS: readonly Row[] = [
  {
    promise: 'C11',
    of: (question, { status }) => ofServer(question) && question.endpoint === 'api' && status === 401,
    faults: (_question, received) => (namesBearer(received) ? [] : sameKind([challengesOf(received)])),
    wanted: 'WWW-Authenticate: Bearer ...',
  },
  {
    promise: 'C15',
    of: ({ oddity }, { status }) => status === 429 && oddity === undefined,
    faults: ({ endpoint }, received, { limits, clock }) =>
      sameKind(retryAfterFaults(received, limits[endpoint], clock, received.sentAt)),
    wanted: 'a Retry-After of at least 1 s that ends with the window',
  },
  {
    promise: 'C16',
    of: ({ oddity }) => oddity !== 'malformed',
    faults: (question, received, known) =>
      fieldFaults(question, received, known).map((kind) => ({ kind, came: `${received.status}, ${kind}` })),
    wanted: 'X-RateLimit-Limit, -Remaining and -Reset once each, with the values of the window',
  },
  {
    promise: 'C19',
    of: ofServer,
    faults: (_question, received) =>
      STATUSES.has(received.status) ? [] : [{ kind: String(received.status), came: described(received) }],
    wanted: 'a refusal with 400, 401, 429 or 500',
  },
]

/** The faults of the rate-limit fields. A server may count a respelled path in either window: then those with fewer faults. */
function fieldFaults(
  { endpoint, oddity }: Question,
  received: Received,
  { limits, clock }: Known,
): readonly string[] {
  const candidates = oddity === 'respelled' ? [limits.api, limits.oauth] : [limits[endpoint]]
  const [fewest = []] = candidates
    .map((limit) => limitFieldFaults(received, limit, clock))
    .sort((a, b) => a.length - b.length)
  return fewest
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

/** Checks each response of a run for what every response must show, and each refusal for secrets (C9). */
export class EveryResponse {
  readonly #limits: Limits
  readonly #findings: Findings
  #clock: ServerClock | undefined
  readonly #password: string
  readonly #unsought: string | undefined
  readonly #found = new Map<string, OutsideId>()

  constructor(limits: Limits, password: string, findings: Findings) {
    this.#limits = limits
    this.#findings = findings
    this.#password = password
    this.#unsought = whyUnsought(password)
    findings.kept(['C9'], this.#unsought)
  }

  /** Whether a reset can be compared with our time. The first response decides, because the server itself wrote it. */
  get clock(): ServerClock {
    return this.#clock ?? 'wrong'
  }

  read(question: Question, received: Received): void {
    this.#clock ??= this.#readClock(received)
    const known = { limits: this.#limits, clock: this.clock }
    for (const { promise, of, faults, wanted } of ROWS) {
      if (!of(question, received)) continue
      this.#findings.kept([promise])
      for (const { kind, came } of faults(question, received, known))
        this.#depart(promise, question, came, wanted, kind)
    }
    this.#readSecrets(question, received)
  }

  /** Compares `Date` with our time. A device may not know the time, which breaks no promise; it may then omit `Date` (RFC 9110 §6.6.1). */
  #readClock(received: Received): ServerClock {
    const date = dateOf(received)
    const { sentAt, at } = received
    if (date !== undefined && date + 1_000 > sentAt - SYNCHRONIZED && date < at + SYNCHRONIZED) return 'right'
    const off = Math.round(Math.abs((date ?? at) - at) / 1000)
    const is = date === undefined ? 'unknown' : `${off} s ${date > at ? 'ahead' : 'behind'}`
    this.#findings.untestable(['C16'], `the clock of the server is ${is}: no reset can be compared with it`)
    return 'wrong'
  }

  /** Searches for secrets in refusals that the server itself wrote, also to a form at an odd path. A response with tokens is no refusal. */
  #readSecrets(question: Question, received: Received): void {
    const { status, body, fields } = received
    const success = status >= 200 && status < 300
    const oddForm = question.oddity !== undefined && question.method === 'POST' && !success
    const hasTokens = success && textMember(received, 'access_token') !== undefined
    if (!(ofServer(question) || status === 429 || oddForm) || hasTokens) return
    const shown = [body, ...[...fields.values()].flat()].join('\n')
    const seek = (texts: readonly string[], kind: string): void => {
      if (texts.flatMap(spellingsOf).some((spelling) => shown.includes(spelling)))
        this.#depart('C9', question, `${status} that shows ${kind}`, 'a refusal without it', kind)
    }
    const others = secretsOf(question).filter((secret) => secret !== this.#password)
    seek(this.#unsought === undefined ? [this.#password] : [], 'the password')
    seek(others, 'the password or token of the request')
  }

  #depart(promise: OutsideId, { what }: Question, came: string, wanted: string, kind: string): void {
    if (this.#isNew(promise, kind)) this.#findings.broken(promise, what, came, wanted)
  }

  /** Whether a fault of this kind is new, and its promise has fewer than `MOST_DEPARTURES`. */
  #isNew(promise: OutsideId, kind: string): boolean {
    const key = `${promise} ${kind}`
    const known = this.#found.values().filter((each) => each === promise)
    if (this.#found.has(key) || [...known].length >= MOST_DEPARTURES) return false
    this.#found.set(key, promise)
    return true
  }
}

/** The secret parameters of a form or a query. */
const SECRET = ['password', 'refresh_token', 'token', 'access_token']

/** A token in a field, after a scheme or the name of a cookie. */
const TOKEN = /(?<=^|[ =])[\w\-.~+/]{12,}=*(?=$|[ ;,])/g

/** The passwords and tokens that a request carries. */
function secretsOf({ body = '', path, fields }: Question): readonly string[] {
  const forms = [body, path.split('?')[1] ?? ''].map((text) => new URLSearchParams(text))
  const parameters = forms.flatMap((form) => SECRET.flatMap((name) => form.getAll(name)))
  const grouped = groupFields(fields, 'lower')
  const tokens = [grouped.authorization, grouped.cookie].flat().flatMap((value) => value?.match(TOKEN) ?? [])
  return [...parameters.filter(({ length }) => length >= SHORTEST_SOUGHT), ...tokens]
}

/** Why C9 does not search for this password; undefined if it does. A password such as `password` is in the refusals of every server. */
function whyUnsought(password: string): string | undefined {
  if (password.length < SHORTEST_SOUGHT) return 'the password is too short to look for'
  return /^[a-z]{1,15}$/i.test(password) ? 'the password is a word, which may be in any text' : undefined
}

/** The spellings in which a response may show a text: unchanged, as in a form or URL, in HTML, in JSON, and in JSON within JSON. */
function spellingsOf(text: string): readonly string[] {
  const form = new URLSearchParams({ text }).toString().slice('text='.length)
  const html = escapeHtml(text)
  const json = JSON.stringify(text).slice(1, -1)
  return [text, form, encodeURIComponent(text), html, json, JSON.stringify(json).slice(1, -1)]
}
