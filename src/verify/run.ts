import { SetupError } from '../system/setup-error.ts'
import { VERSION } from '../version.ts'
import { crowds, EXTRA, floods } from './at-once.ts'
import type { VerifyClient } from './client.ts'
import { Conversation, type Time } from './conversation.ts'
import type { VerifyOptions } from './options.ts'
import { OUTSIDE, type OutsideId } from './promises.ts'
import { described, member, type Received } from './question.ts'
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
} from './rows.ts'
import { oneConnection, PAST_THE_LIMIT } from './used-up-windows.ts'
import type { Cost, Plan, Report, Reporter, Verdict } from './verdict.ts'

/** Rows or checks of a window that belong together, with their cost. */
interface Part {
  /** The promises that this part checks. A promise is decided after the last part that has it. */
  readonly promises: readonly OutsideId[]
  readonly cost: (options: VerifyOptions) => Cost
  /** `--quick` leaves it out. */
  readonly isSlow?: true
  /** Resolves to the updated facts. */
  readonly run?: (conversation: Conversation, known: Known) => Promise<Known>
}

/** Runs rows that add nothing to the known facts. */
function played(rows: (options: VerifyOptions, known: Known) => Rows): Required<Part>['run'] {
  return async (conversation, known) => {
    await play(conversation, rows(conversation.options, known))
    return known
  }
}

const longest = ({ limits: { api, oauth } }: VerifyOptions): number => Math.max(api.window, oauth.window)
const both = ({ limits: { api, oauth } }: VerifyOptions): number => api.requests + oauth.requests

const LOGINS: Part = { promises: ['C3', 'C4'], cost: () => ({ logins: 3, requests: 6, seconds: 1 }) }

const BEARER: Part = {
  promises: ['C10', 'C11'],
  cost: () => ({ requests: 23, seconds: 1 }),
  async run(conversation, known) {
    await play(conversation, bearer(conversation.options, known))
    const client = await conversation.http2()
    if (typeof client === 'string') return known
    await play(conversation, bearerOverHttp2(conversation.options), client)
    client.close()
    return known
  },
}

const SPELLINGS: Part = {
  promises: ['C1', 'H20', 'H24'],
  cost: ({ path }) => {
    return { logins: LOGIN_SPELLINGS.length, requests: 8 + disguises(path).length, seconds: 1 }
  },
  run: played(spellings),
}

const ONE_CONNECTION: Part = {
  promises: ['C13', 'C14', 'C15', 'C16', 'H69'],
  cost: (options) => ({
    requests: 2 * (both(options) + PAST_THE_LIMIT) + 100,
    seconds: options.quick ? 2 : 2 * longest(options),
  }),
  run: oneConnection,
}

const CROWDS: Part = {
  promises: ['C14', 'C15'],
  cost(options) {
    const ways = options.url.protocol === 'https:' ? 2 : 1
    const requests = ways * (both(options) + 2 * (EXTRA + options.flood.connections))
    return { requests, seconds: (ways - 1) * longest(options) + 2 * ways }
  },
  isSlow: true,
  async run(conversation, known) {
    await crowds(conversation, known)
    return known
  },
}

const FLOODS: Part = {
  promises: ['C15', 'H125'],
  cost: (options) => {
    return { requests: both(options), seconds: 2 * (longest(options) + options.flood.seconds) }
  },
  isSlow: true,
  run: floods,
}

/** The promises that every response of a run shows, even those to the logins. */
const SHOWN_BY_ALL: readonly OutsideId[] = ['C9', 'C11', 'C15', 'C16', 'C19']

/** All parts of a run, in their order. Each promise of `OUTSIDE` has at least one. */
export const PARTS: readonly Part[] = [
  LOGINS,
  {
    promises: ['C2', 'C5', 'C9', 'C19'],
    cost: () => ({ logins: 4, wrongPasswords: 3, requests: 12, seconds: 1 }),
    run: played(tokenErrors),
  },
  {
    promises: ['C6', 'C7'],
    cost: ({ quick }) => ({ requests: 13, seconds: quick ? 1 : GRACE + 1 }),
    async run(conversation, known) {
      return play(conversation, refreshes(conversation.options, known))
    },
  },
  BEARER,
  SPELLINGS,
  ONE_CONNECTION,
  {
    promises: ['C7'],
    cost: () => ({ requests: 1, seconds: 1 }),
    async run(conversation, known) {
      const { options, findings, time } = conversation
      if (!options.quick && !known.isUsedLate) await play(conversation, lateUse(options, known, time.wall()))
      const note = options.quick
        ? 'only expires_in was read, because of --quick'
        : 'that tokens expire would take an hour and a week to see'
      findings.kept(['C7'], note)
      return known
    },
  },
  CROWDS,
  FLOODS,
  { promises: ['C8', ...SHOWN_BY_ALL], cost: () => ({ requests: 0, seconds: 0 }) },
]

/** Logs in, and resolves to the tokens that the API admits. */
async function logIn(conversation: Conversation): Promise<Known | undefined> {
  const { known, third } = await play(
    conversation,
    logins(conversation.options, requireUsable(conversation.options)),
  )
  // The run needs no third login.
  if (third !== undefined && (await conversation.revoke(third.refreshToken)) === undefined)
    await play(conversation, afterRevocation(third))
  return known
}

/** Sends the rows one after the other, judges the responses, and resolves to the result of the rows. */
async function play<Result>(
  conversation: Conversation,
  rows: Rows<Result>,
  client?: VerifyClient,
): Promise<Result> {
  let next = rows.next()
  while (next.done !== true) {
    const { question, after } = next.value
    if (after !== undefined) {
      conversation.say(`waits ${after} s, then sends ${question.what}`)
      await conversation.pauseUntil(conversation.time.wall() + 1000 * after)
    }
    const received = await conversation.ask(question, client)
    judge(conversation, next.value, received)
    next = rows.next(received)
  }
  return next.value
}

function judge(
  { findings }: Conversation,
  { promise, question, expects, note }: Row,
  received: Received,
): void {
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
  if (note !== undefined && wrong.length === 0) findings.kept([promise], note)
  findings.kept([promise, ...expects.flatMap((each) => each.promise ?? [])])
}

/** Throws if nothing can be checked: no connection, a password that the server does not accept, or a name that may not GET the path. */
function requireUsable({ url: { origin }, path, tls }: VerifyOptions): (received: Received) => void {
  return (received) => {
    const { failure, status } = received
    const error = member(received, 'error')
    const end = (problem: string, remedy: string): never => {
      throw new SetupError(`${problem}: ${described(received)}`, { exitCode: 1, remedy })
    }
    if (failure !== undefined) end(origin, remedyFor(failure, tls))
    if (error === 'insufficient_scope')
      end(
        `the name of this password may not GET ${path}`,
        'name a path that it may read with --path, or verify with a password that may do everything',
      )
    if (error === 'invalid_grant' || status === 401 || status === 403)
      end(`${origin} does not accept the password`, 'correct the password file; nothing was checked')
  }
}

/** @param failure the message of OpenSSL or Node */
function remedyFor(failure: string, { ca }: VerifyOptions['tls']): string {
  if (/certificate|hostname|altnames|unable to verify/i.test(failure))
    return ca === undefined
      ? 'name its certificate, or that of its authority, with --ca (--insecure accepts any)'
      : 'the file of --ca has to hold its certificate, or that of its authority, for this name'
  const plain = /wrong version number|packet length too long/i.test(failure)
  return plain ? 'it may speak http, not https, at this port' : 'check address and port'
}

/** The parts that check the wanted promises, with their costs. The first part logs in, so it is always included. */
function partsFor(options: VerifyOptions): { readonly part: Part; readonly cost: Cost }[] {
  const wanted = selected(options)
  return PARTS.flatMap((part) => {
    const isNeeded = part === LOGINS || part.promises.some((id) => wanted.has(id))
    return isNeeded && !(options.quick && part.isSlow) ? [{ part, cost: part.cost(options) }] : []
  })
}

/** The wanted promises, in the order of the reports. */
function selected({ only }: VerifyOptions): ReadonlySet<OutsideId> {
  return new Set([...OUTSIDE.keys()].filter((id) => only.length === 0 || only.includes(id)))
}

/** The plan of a run with these options. */
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
  // `Session.ask` sends a request once more after a 429, and so opens the next window.
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
 * Checks the promises of a server from outside, reports each as soon as it is decided, and revokes the tokens of the run at the end.
 * Rejects with a `SetupError` with exit code 1 if the server cannot be reached or trusted, if it does not accept the password, or if it
 * does not respond any more. If `signal` is aborted, rejects with its reason; even then the tokens are revoked, and the reporter gets the
 * result. No text shows the password or a token.
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
  using conversation = new Conversation(options, time, signal, reporter.progress)
  const { promises, floods } = await runParts(conversation, reporter).catch(async (error: unknown) => {
    // A run that fails or was stopped revokes its tokens, too.
    const left = await conversation.revokeAll()
    if (conversation.hasLoggedIn) reporter.progress(`tokens: ${left}`)
    throw error
  })
  const tokens = await conversation.revokeAll()
  const report: Report = {
    url: options.url.origin,
    version: VERSION,
    startedAt,
    seconds: (time.monotonic() - start) / 1000,
    requests: conversation.requests,
    result: promises.some(({ result }) => result === 'broken') ? 'broken' : 'kept',
    promises,
    floods,
    tokens,
  }
  reporter.finished(report)
  return report
}

/** Runs the parts one after the other. */
async function runParts(
  conversation: Conversation,
  reporter: Reporter,
): Promise<Pick<Report, 'promises' | 'floods'>> {
  const { options, findings } = conversation
  const parts = partsFor(options).map(({ part }) => part)
  const verdicts = new Map<OutsideId, Verdict>()
  let known: Known | undefined
  findings.untestable(['C8'], 'no run checks this, because the password of the device would have to change')
  for (const [i, part] of parts.entries()) {
    if (part === LOGINS) known = await logIn(conversation)
    else if (known !== undefined) known = (await part.run?.(conversation, known)) ?? known
    else if (part.run !== undefined)
      findings.untestable(
        part.promises.filter((id) => !SHOWN_BY_ALL.includes(id)),
        'no two logins gave tokens that the API admits',
      )
    const open = new Set(parts.slice(i + 1).flatMap(({ promises }) => promises))
    for (const id of selected(options).difference(verdicts).difference(open)) {
      const verdict = findings.verdictOf(id, options.quick)
      verdicts.set(id, verdict)
      reporter.decided(verdict)
    }
  }
  const promises = [...OUTSIDE.keys()].flatMap((id) => verdicts.get(id) ?? [])
  return { promises, floods: known?.floods ?? [] }
}
