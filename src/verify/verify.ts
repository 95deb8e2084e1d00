import type { Clock } from '../system/clock.ts'
import { VERSION } from '../version.ts'
import type { VerifyOptions } from './options.ts'
import { OUTSIDE, type OutsideId } from './promises.ts'
import { bearer, spelling } from './rounds/access.ts'
import { crowds, floods } from './rounds/at-once.ts'
import { oneConnection } from './rounds/one-connection.ts'
import { lifetime, refresh } from './rounds/refresh.ts'
import type { Facts, Round } from './rounds/round.ts'
import { login, tokenErrors } from './rounds/token-endpoint.ts'
import { Server } from './server.ts'
import {
  type Cost,
  type Judgement,
  kept,
  type Plan,
  type Report,
  type Reporter,
  untested,
  type Verdict,
  verdictOf,
} from './verdict.ts'

/** C8, and what all responses of the run say of C9, C11, C15, C16 and C19. */
const end: Round = {
  promises: ['C8', 'C9', 'C11', 'C15', 'C16', 'C19'],
  cost: () => ({ requests: 0, seconds: 0 }),
  needsTokens: false,
  async *run({ records, clockNote }) {
    yield* untested(['C8'], 'no run checks this, because the password of the device would have to change')
    yield* records.judgements()
    return yield* clockNote === undefined ? [] : kept(['C16'], clockNote)
  },
}

/** All rounds, in their order. Each promise of `OUTSIDE` has at least one. */
export const ROUNDS: readonly Round[] = [
  ...[login, tokenErrors, refresh, bearer, spelling, oneConnection],
  ...[lifetime, crowds, floods, end],
]

/** The rounds that the promises need, with their costs. The first one logs in, so it is always among them. */
function roundsFor(options: VerifyOptions): { readonly round: Round; readonly cost: Cost }[] {
  const wanted = selected(options)
  return ROUNDS.flatMap((round) => {
    const cost = round.cost(options)
    const needed = round === login || round.promises.some((id) => wanted.has(id))
    return cost === undefined || !needed ? [] : [{ round, cost }]
  })
}

/** In the order of the reports. */
function selected({ only }: VerifyOptions): ReadonlySet<OutsideId> {
  return new Set([...OUTSIDE.keys()].filter((id) => only.length === 0 || only.includes(id)))
}

/** What a run with these options is going to do. */
export function planOf(options: VerifyOptions): Plan {
  const planned = roundsFor(options)
  const sum = (part: keyof Cost): number => planned.reduce((total, { cost }) => total + (cost[part] ?? 0), 0)
  const [logins, seconds] = [sum('logins'), sum('seconds')]
  const has = (...rounds: readonly Round[]): boolean => planned.some(({ round }) => rounds.includes(round))
  const testable = (id: OutsideId): boolean =>
    OUTSIDE.get(id)?.untestable !== true && planned.some(({ round }) => round.promises.includes(id))
  const wanted = [...selected(options)]
  const { url, path, limits, flood, revocationPath } = options
  const revocations = revocationPath === undefined ? 0 : logins
  // `Server.ask` sends a request once more if it met a used-up window, and so opens the next one.
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
    floods: has(floods) ? flood : undefined,
    usesUpLimits: has(oneConnection, crowds, floods),
    otherSpellings: has(spelling, oneConnection),
    tokenInQuery: has(bearer),
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
  clock: Clock,
  signal: AbortSignal = new AbortController().signal,
): Promise<Report> {
  const start = clock.monotonic()
  const startedAt = new Date(clock.wall()).toISOString()
  reporter.announce(planOf(options))
  const server = new Server(options, clock, signal, reporter.progress)
  try {
    const { promises, floods } = await runRounds(server, reporter).catch(async (error: unknown) => {
      // A run that is broken off leaves no tokens either.
      const left = await server.revokeAll()
      if (server.records.logins.size > 0) reporter.progress(`tokens: ${left}`)
      throw error
    })
    const tokens = await server.revokeAll()
    const report: Report = {
      url: options.url.origin,
      version: VERSION,
      startedAt,
      seconds: (clock.monotonic() - start) / 1000,
      requests: server.records.requests,
      result: promises.some(({ result }) => result === 'broken') ? 'broken' : 'kept',
      promises,
      floods,
      tokens,
    }
    reporter.finished(report)
    return report
  } finally {
    server.close()
  }
}

/** Runs the rounds one after the other. */
async function runRounds(server: Server, reporter: Reporter): Promise<Pick<Report, 'promises' | 'floods'>> {
  const { options } = server
  const rounds = roundsFor(options).map(({ round }) => round)
  const judgements: Judgement[] = []
  const verdicts = new Map<OutsideId, Verdict>()
  let facts: Facts | undefined
  for (const [i, round] of rounds.entries()) {
    const findings = findingsOf(round, server, facts)
    let next = await findings.next()
    for (; next.done !== true; next = await findings.next()) judgements.push(next.value)
    facts = next.value
    // A promise that none of the later rounds has is decided.
    const open = new Set(rounds.slice(i + 1).flatMap(({ promises }) => promises))
    for (const id of selected(options).difference(verdicts).difference(open)) {
      const verdict = verdictOf(id, judgements, options.quick)
      verdicts.set(id, verdict)
      reporter.decided(verdict)
    }
  }
  const promises = [...OUTSIDE.keys()].flatMap((id) => verdicts.get(id) ?? [])
  return { promises, floods: facts?.floods ?? [] }
}

async function* findingsOf(round: Round, server: Server, facts: Facts | undefined): ReturnType<Round['run']> {
  if (!round.needsTokens) return (yield* round.run(server)) ?? facts
  if (facts !== undefined) return (yield* round.run(server, facts)) ?? facts
  return yield* untested(round.promises, 'no two logins gave tokens that the API admits')
}
