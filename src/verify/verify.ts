import type { Clock } from '../system/clock.ts'
import { reasonOf } from '../system/setup-error.ts'
import { VERSION } from '../version.ts'
import type { VerifyOptions } from './options.ts'
import { OUTSIDE, type OutsideId } from './promises.ts'
import { bearer } from './rounds/bearer.ts'
import { http2, manyConnections } from './rounds/crowd.ts'
import { floods } from './rounds/floods.ts'
import { oneConnection } from './rounds/one-connection.ts'
import { lifetime, refresh } from './rounds/refresh.ts'
import type { Cost, Facts, Round } from './rounds/round.ts'
import { spelling } from './rounds/spelling.ts'
import { login, tokenErrors } from './rounds/token-endpoint.ts'
import { createServer, type Server } from './server.ts'
import {
  type Judgement,
  type Plan,
  type Report,
  type Reporter,
  untested,
  type Verdict,
  verdictOf,
} from './verdict.ts'

/** C8, and what all responses of the run say of C9, C16 and C19. */
const end: Round = {
  promises: ['C8', 'C9', 'C16', 'C19'],
  cost: () => ({ requests: 0, seconds: 0 }),
  run: async ({ records, clockNote: note }) => ({
    judgements: [
      ...untested(['C8'], 'no run checks this, because the password of the device would have to change'),
      ...records.judgements(),
      ...(note === undefined ? [] : [{ promise: 'C16', kind: 'kept', note } as const]),
    ],
  }),
}

/** All rounds, in their order. Each promise of `OUTSIDE` has at least one. */
export const ROUNDS: readonly Round[] = [
  ...[login, tokenErrors, refresh, bearer, spelling, oneConnection],
  ...[lifetime, manyConnections, http2, floods, end],
]

interface PlannedRound {
  readonly round: Round
  readonly cost: Cost
}

/** The rounds that the promises need. The first one logs in, so it is always among them. */
function roundsFor(options: VerifyOptions): PlannedRound[] {
  const wanted = selected(options)
  return ROUNDS.flatMap((round) => {
    const cost = round.cost(options)
    const needed = round === login || round.promises.some((id) => wanted.has(id))
    return cost === undefined || !needed ? [] : [{ round, cost }]
  })
}

function selected({ only }: VerifyOptions): ReadonlySet<OutsideId> {
  return new Set(only.length === 0 ? OUTSIDE.keys() : only)
}

/** What a run with these options is going to do. */
export function planOf(options: VerifyOptions): Plan {
  const planned = roundsFor(options)
  const sum = (of: (cost: Cost) => number | undefined): number =>
    planned.reduce((total, { cost }) => total + (of(cost) ?? 0), 0)
  const logins = sum((cost) => cost.logins)
  const seconds = sum((cost) => cost.seconds)
  const has = (...rounds: readonly Round[]): boolean => planned.some(({ round }) => rounds.includes(round))
  const testable = (id: OutsideId): boolean =>
    OUTSIDE.get(id)?.untestable !== true && planned.some(({ round }) => round.promises.includes(id))
  const wanted = [...OUTSIDE.keys()].filter((id) => selected(options).has(id))
  const revocations = options.revocationPath === undefined ? 0 : logins
  // `Server.ask` sends a request once more if it met a used-up window, and so opens the next one.
  const repeats = Object.values(options.limits).map(({ window }) => 1 + Math.ceil(seconds / window))
  return {
    url: options.url.origin,
    path: options.path,
    promises: wanted.filter(testable),
    notTestable: wanted.filter((id) => !testable(id)),
    logins,
    wrongPasswords: sum((cost) => cost.wrongPasswords),
    requests: repeats.reduce((total, each) => total + each, revocations + sum((cost) => cost.requests)),
    seconds,
    floods: has(floods) ? options.flood : undefined,
    usesUpLimits: has(oneConnection, manyConnections, http2, floods),
    otherSpellings: has(spelling, oneConnection),
    tokenInQuery: has(bearer),
    revocationPath: options.revocationPath,
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
  const server = createServer(options, clock, signal, reporter.progress)
  const { promises, floods, tokens } = await runToTheEnd(server, reporter)
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
}

type Result = Pick<Report, 'promises' | 'floods'>

/** Runs all rounds and the clean-up. Whatever fails, the connections are closed and the first error is the one that is thrown. */
async function runToTheEnd(server: Server, reporter: Reporter): Promise<Result & Pick<Report, 'tokens'>> {
  const { records, revocation } = server
  try {
    const result = await runRounds(server, reporter).catch(async (error: unknown) => {
      const left = await revocation.revokeAll().catch((failure) => `not revoked: ${reasonOf(failure)}`)
      if (records.logins.size > 0) reporter.progress(`tokens: ${left}`)
      throw error
    })
    return { ...result, tokens: await revocation.revokeAll() }
  } finally {
    server.close()
  }
}

/** Runs the rounds one after the other. A promise is decided when no later round has it. */
async function runRounds(server: Server, reporter: Reporter): Promise<Result> {
  const { options } = server
  const rounds = roundsFor(options).map(({ round }) => round)
  const judgements: Judgement[] = []
  const verdicts = new Map<OutsideId, Verdict>()
  const undecided = new Set(selected(options))
  let facts: Facts = { logins: [], openings: new Map(), floods: [] }
  const decide = (id: OutsideId): void => {
    const verdict = verdictOf(id, judgements, options.quick)
    verdicts.set(id, verdict)
    undecided.delete(id)
    reporter.decided(verdict)
  }
  for (const [i, round] of rounds.entries()) {
    const found = await round.run(server, facts)
    facts = { ...facts, ...found.facts }
    judgements.push(...found.judgements)
    const later = new Set(rounds.slice(i + 1).flatMap(({ promises }) => promises))
    for (const id of OUTSIDE.keys()) {
      const touched = judgements.some(({ promise }) => promise === id)
      if (undecided.has(id) && !later.has(id) && touched) decide(id)
    }
  }
  for (const id of [...undecided]) decide(id)
  return { promises: [...OUTSIDE.keys()].flatMap((id) => verdicts.get(id) ?? []), floods: facts.floods }
}
