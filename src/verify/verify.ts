import { randomUUID } from 'node:crypto'
import { SetupError } from '../system/setup-error.ts'
import { VERSION } from '../version.ts'
import { crowds, EXTRA, floods } from './at-once.ts'
import type { Client } from './client.ts'
import { described, member, type Question, type Received } from './exchange.ts'
import type { VerifyOptions } from './options.ts'
import { OUTSIDE, type OutsideId } from './promises.ts'
import {
  afterRevocation,
  bearer,
  bearerOverHttp2,
  disguises,
  GRACE,
  type Known,
  LOGIN_SPELLINGS,
  lateUse,
  logins,
  type Row,
  type Rows,
  refreshes,
  spellings,
  tokenErrors,
  useOfFirstToken,
} from './rows.ts'
import { Session, type Time } from './session.ts'
import type { Cost, FloodFigures, Plan, Report, Reporter, Verdict } from './verdict.ts'
import { oneConnection, PAST_THE_LIMIT } from './windows.ts'

/** What the parts of a run hand on. */
interface Progress {
  /** Undefined until two logins have given tokens that the API admits. */
  known?: Known
  /** A late use of the first token, which a used-up window has seen. */
  late?: { readonly question: Question; readonly received: Received } | undefined
  floods: readonly FloodFigures[]
}

/** Rows, or checks of a window, that belong together. */
type Part = {
  /** A promise is decided when no later part has it. */
  readonly promises: readonly OutsideId[]
  /** Undefined if the options leave it out. */
  readonly cost: (options: VerifyOptions) => Cost | undefined
} & (
  | {
      readonly needsTokens: true
      readonly run: (session: Session, progress: Progress, known: Known) => Promise<void>
    }
  | { readonly needsTokens: false; readonly run: (session: Session, progress: Progress) => Promise<void> }
)

const LOGINS: Part = {
  promises: ['C3', 'C4'],
  cost: () => ({ logins: 3, requests: 6, seconds: 1 }),
  needsTokens: false,
  async run(session, progress) {
    const { options } = session
    const rows = logins(
      options,
      (first) => requireAccepted(options, first),
      (used) => requireScope(options, used),
    )
    const { known, third } = await play(session, rows)
    // The run needs no third login.
    if (third !== undefined && (await session.revoke(third.refreshToken)) === undefined)
      await play(session, afterRevocation(third))
    if (known !== undefined) progress.known = known
  },
}

const SPELLINGS: Part = {
  promises: ['C1', 'H20', 'H24'],
  cost: ({ path }) => ({
    logins: LOGIN_SPELLINGS.length,
    requests: 8 + disguises(path).length,
    seconds: 1,
  }),
  needsTokens: true,
  run: (session, _progress, known) => play(session, spellings(session.options, known)),
}

const BEARER: Part = {
  promises: ['C10', 'C11'],
  cost: () => ({ requests: 23, seconds: 1 }),
  needsTokens: true,
  async run(session, _progress, known) {
    const unknown = `unknown-${randomUUID()}`
    for (const text of [unknown, known.admitted.accessToken]) session.everyResponse.seek(text)
    const { path } = session.options
    await play(session, bearer(path, known, unknown))
    const client = await session.http2()
    if (typeof client === 'string') return
    await play(session, bearerOverHttp2(path), client)
    client.close()
  },
}

const ONE_CONNECTION: Part = {
  promises: ['C13', 'C14', 'C15', 'C16', 'H69'],
  cost: ({ limits: { api, oauth }, quick }) => ({
    requests: 2 * (api.requests + oauth.requests + PAST_THE_LIMIT) + 100,
    seconds: quick ? 2 : 2 * Math.max(api.window, oauth.window),
  }),
  needsTokens: true,
  async run(session, progress, known) {
    progress.late = await oneConnection(session, known)
  },
}

const CROWDS: Part = {
  promises: ['C14', 'C15'],
  cost({ quick, url, limits: { api, oauth }, flood }) {
    if (quick) return undefined
    const ways = url.protocol === 'https:' ? 2 : 1
    const requests = ways * (api.requests + oauth.requests + 2 * (EXTRA + flood.connections))
    return { requests, seconds: (ways - 1) * Math.max(api.window, oauth.window) + 2 * ways }
  },
  needsTokens: true,
  run: (session, _progress, known) => crowds(session, known),
}

const FLOODS: Part = {
  promises: ['C15', 'H125'],
  cost({ quick, limits: { api, oauth }, flood: { seconds } }) {
    if (quick) return undefined
    return {
      requests: api.requests + oauth.requests,
      seconds: 2 * (Math.max(api.window, oauth.window) + seconds),
    }
  },
  needsTokens: true,
  async run(session, progress, known) {
    progress.floods = await floods(session, known)
  },
}

/** What all responses of a run show, those of the logins, too. */
const SHOWN_BY_ALL: readonly OutsideId[] = ['C9', 'C11', 'C15', 'C16', 'C19']

const NO_TOKENS = 'no two logins gave tokens that the API admits'

/** All parts of a run, in their order. Each promise of `OUTSIDE` has at least one. */
export const PARTS: readonly Part[] = [
  LOGINS,
  {
    promises: ['C2', 'C5', 'C9', 'C19'],
    cost: () => ({ logins: 4, wrongPasswords: 3, requests: 12, seconds: 1 }),
    needsTokens: true,
    async run(session, _progress, { admitted: { accessToken } }) {
      const [wrong, unknown] = [`wrong-${randomUUID()}`, `unknown-${randomUUID()}`]
      for (const text of [wrong, unknown, accessToken]) session.everyResponse.seek(text)
      await play(session, tokenErrors(session.options.password, accessToken, wrong, unknown))
    },
  },
  {
    promises: ['C6', 'C7'],
    cost: ({ quick }) => ({ requests: 13, seconds: quick ? 1 : GRACE + 1 }),
    needsTokens: true,
    async run(session, progress, before) {
      const known = await play(session, refreshes(session.options, before))
      progress.known = known
      if (known.refreshing === undefined) return
      const isReplaced = known.refreshing === 'replaces'
      session.findings.kept(
        ['C6'],
        isReplaced ? 'each refresh replaces the refresh token' : 'the refresh token stays the same',
      )
    },
  },
  BEARER,
  SPELLINGS,
  ONE_CONNECTION,
  {
    promises: ['C7'],
    cost: () => ({ requests: 1, seconds: 1 }),
    needsTokens: true,
    async run(session, { late }, { first }) {
      const { options, findings, time } = session
      if (options.quick) return findings.kept(['C7'], 'only expires_in was read, because of --quick')
      const row = lateUse(late?.question ?? useOfFirstToken(options.path, first, time.wall()))
      judge(session, row, late?.received ?? (await session.ask(row.question)))
      findings.kept(['C7'], 'that tokens expire would take an hour and a week to see')
    },
  },
  CROWDS,
  FLOODS,
  {
    promises: ['C8', ...SHOWN_BY_ALL],
    cost: () => ({ requests: 0, seconds: 0 }),
    needsTokens: false,
    async run({ findings }) {
      findings.untestable(
        ['C8'],
        'no run checks this, because the password of the device would have to change',
      )
    },
  },
]

/** Sends the rows one after the other, judges what comes, and resolves to what they return. */
async function play<Result>(session: Session, rows: Rows<Result>, client?: Client): Promise<Result> {
  let next = rows.next()
  while (next.done !== true) {
    const { question, after } = next.value
    if (after !== undefined) {
      session.say(`waits ${after} s, then sends ${question.what}`)
      await session.pauseUntil(session.time.wall() + 1000 * after)
    }
    const received = await session.ask(question, client)
    judge(session, next.value, received)
    next = rows.next(received)
  }
  return next.value
}

function judge({ findings }: Session, { promise, question, expects }: Row, received: Received): void {
  const failed = expects.filter(({ holds }) => !holds(received))
  const wrong = failed[0] === expects[0] ? failed.slice(0, 1) : failed
  if (wrong.length > 0 && received.status === 429) {
    findings.untestable([promise], `${question.what}: 429, also in a new window`)
    return
  }
  for (const each of wrong) {
    const came = each.came?.(received) ?? received
    findings.broken(each.promise ?? promise, question.what, came, each.wanted, each.clause)
  }
  findings.kept([promise, ...expects.flatMap((each) => each.promise ?? [])])
}

/** Fails if nothing can be checked: no connection, or a password that the server does not take. */
function requireAccepted({ url: { origin }, tls }: VerifyOptions, received: Received): void {
  const { failure, status } = received
  if (failure !== undefined)
    throw new SetupError(`${origin}: ${failure}`, { exitCode: 1, remedy: remedyFor(failure, tls) })
  if (member(received, 'error') !== 'invalid_grant' && status !== 401 && status !== 403) return
  throw new SetupError(`${origin} does not accept the password: ${described(received)}`, {
    exitCode: 1,
    remedy: 'correct the password file; nothing was checked',
  })
}

/** @param failure in the words of OpenSSL and Node */
function remedyFor(failure: string, { ca }: VerifyOptions['tls']): string {
  if (/certificate|hostname|altnames|unable to verify/i.test(failure))
    return ca === undefined
      ? 'name its certificate, or that of its authority, with --ca (--insecure accepts any)'
      : 'the file of --ca has to hold its certificate, or that of its authority, for this name'
  const plain = /wrong version number|packet length too long/i.test(failure)
  return plain ? 'it may speak http, not https, at this port' : 'check address and port'
}

/** Fails if the name of the password may not do what the run needs. */
function requireScope({ path }: VerifyOptions, received: Received): void {
  if (member(received, 'error') !== 'insufficient_scope') return
  throw new SetupError(`the name of this password may not GET ${path}: ${described(received)}`, {
    exitCode: 1,
    remedy: 'name a path that it may read with --path, or verify with a password that may do everything',
  })
}

/** The parts that the promises need, with their costs. The first one logs in, so it is always among them. */
function partsFor(options: VerifyOptions): { readonly part: Part; readonly cost: Cost }[] {
  const wanted = selected(options)
  return PARTS.flatMap((part) => {
    const cost = part.cost(options)
    const needed = part === LOGINS || part.promises.some((id) => wanted.has(id))
    return cost === undefined || !needed ? [] : [{ part, cost }]
  })
}

/** In the order of the reports. */
function selected({ only }: VerifyOptions): ReadonlySet<OutsideId> {
  return new Set([...OUTSIDE.keys()].filter((id) => only.length === 0 || only.includes(id)))
}

/** What a run with these options is going to do. */
export function planOf(options: VerifyOptions): Plan {
  const planned = partsFor(options)
  const sum = (key: keyof Cost): number => planned.reduce((total, { cost }) => total + (cost[key] ?? 0), 0)
  const [logins, seconds] = [sum('logins'), sum('seconds')]
  const has = (...parts: readonly Part[]): boolean => planned.some(({ part }) => parts.includes(part))
  const testable = (id: OutsideId): boolean =>
    OUTSIDE.get(id)?.untestable !== true && planned.some(({ part }) => part.promises.includes(id))
  const wanted = [...selected(options)]
  const { url, path, limits, flood, revocationPath } = options
  const revocations = revocationPath === undefined ? 0 : logins
  // `Session.ask` sends a request once more if it met a used-up window, and so opens the next one.
  const repeats = Object.values(limits).map(({ window }) => 1 + Math.ceil(seconds / window))
  return {
    url: url.origin,
    path,
    promises: wanted.filter(testable),
    notTestable: wanted.filter((id) => !testable(id)),
    logins,
    wrongPasswords: sum('wrongPasswords'),
    requests: repeats.reduce((total, each) => total + each, revocations + sum('requests')),
    seconds,
    floods: has(FLOODS) ? flood : undefined,
    usesUpLimits: has(ONE_CONNECTION, CROWDS, FLOODS),
    otherSpellings: has(SPELLINGS, ONE_CONNECTION),
    tokenInQuery: has(BEARER),
    revocationPath,
  }
}

/**
 * Checks the promises of a server from outside, tells the reporter of each as soon as it is decided, and revokes the tokens of the
 * run at the end. Throws a `SetupError` with exit code 1 if the server cannot be reached or trusted, if it does not accept the
 * password, or if it does not respond any more. If `signal` is aborted, the promise rejects with its reason. Also then the tokens
 * are revoked, and the reporter is told what became of them. No text shows the password or a token.
 */
export async function verify(
  options: VerifyOptions,
  reporter: Reporter,
  time: Time,
  signal: AbortSignal = new AbortController().signal,
): Promise<Report> {
  const start = time.monotonic()
  const startedAt = new Date(time.wall()).toISOString()
  reporter.announce(planOf(options))
  const session = new Session(options, time, signal, reporter.progress)
  try {
    const { promises, floods } = await runParts(session, reporter).catch(async (error: unknown) => {
      // A run that is broken off leaves no tokens either.
      const left = await session.revokeAll()
      if (session.hasLoggedIn) reporter.progress(`tokens: ${left}`)
      throw error
    })
    const tokens = await session.revokeAll()
    const report: Report = {
      url: options.url.origin,
      version: VERSION,
      startedAt,
      seconds: (time.monotonic() - start) / 1000,
      requests: session.requests,
      result: promises.some(({ result }) => result === 'broken') ? 'broken' : 'kept',
      promises,
      floods,
      tokens,
    }
    reporter.finished(report)
    return report
  } finally {
    session.close()
  }
}

/** Runs the parts one after the other. */
async function runParts(session: Session, reporter: Reporter): Promise<Pick<Report, 'promises' | 'floods'>> {
  const { options, findings } = session
  const parts = partsFor(options).map(({ part }) => part)
  const verdicts = new Map<OutsideId, Verdict>()
  const progress: Progress = { floods: [] }
  for (const [i, part] of parts.entries()) {
    if (!part.needsTokens) await part.run(session, progress)
    else if (progress.known !== undefined) await part.run(session, progress, progress.known)
    else
      findings.untestable(
        part.promises.filter((id) => !SHOWN_BY_ALL.includes(id)),
        NO_TOKENS,
      )
    const open = new Set(parts.slice(i + 1).flatMap(({ promises }) => promises))
    for (const id of selected(options).difference(verdicts).difference(open)) {
      const verdict = findings.verdictOf(id, options.quick)
      verdicts.set(id, verdict)
      reporter.decided(verdict)
    }
  }
  const promises = [...OUTSIDE.keys()].flatMap((id) => verdicts.get(id) ?? [])
  return { promises, floods: progress.floods }
}
