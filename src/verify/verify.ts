import { OUTSIDE, type OutsideId } from '../promises/promises.ts'
import type { Clock } from '../system/clock.ts'
import { reasonOf } from '../system/node-permission.ts'
import { VERSION } from '../version.ts'
import { maskedError, maskedReport, maskedReporter, type Told } from './masking.ts'
import type { VerifyOptions } from './options.ts'
import { createRecords } from './records.ts'
import { revokeAll } from './revocation.ts'
import { bearer } from './rounds/bearer.ts'
import { http2, manyConnections } from './rounds/crowd.ts'
import { end } from './rounds/end.ts'
import { floods } from './rounds/floods.ts'
import { lifetime } from './rounds/lifetime.ts'
import { oneConnection } from './rounds/one-connection.ts'
import { refresh } from './rounds/refresh.ts'
import type { Cost, Round } from './rounds/round.ts'
import { spelling } from './rounds/spelling.ts'
import { tokenErrors } from './rounds/token-errors.ts'
import { tokens } from './rounds/tokens.ts'
import { createStage, type Stage } from './stage.ts'
import type { Finding, Plan, Report, Reporter, Verdict } from './verdict.ts'

/** All rounds, in their order. Each promise of `OUTSIDE` has at least one. */
export const ROUNDS: readonly Round[] = [
  tokens,
  tokenErrors,
  refresh,
  bearer,
  spelling,
  oneConnection,
  lifetime,
  manyConnections,
  http2,
  floods,
  end,
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
    const needed = round === tokens || round.promises.some((id) => wanted.has(id))
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
  const logins = sum(({ logins }) => logins)
  const seconds = sum(({ seconds }) => seconds)
  const has = (...rounds: readonly Round[]): boolean => planned.some(({ round }) => rounds.includes(round))
  const testable = (id: OutsideId): boolean =>
    OUTSIDE.get(id)?.untestable !== true && planned.some(({ round }) => round.promises.includes(id))
  const wanted = [...OUTSIDE.keys()].filter((id) => selected(options).has(id))
  const revocations = options.revocationPath === undefined ? 0 : logins
  return {
    url: options.url.origin,
    path: options.path,
    promises: wanted.filter(testable),
    notTestable: wanted.filter((id) => !testable(id)),
    logins,
    wrongPasswords: sum(({ wrongPasswords }) => wrongPasswords),
    requests: sum(({ requests }) => requests) + revocations + repeats(options, seconds),
    seconds,
    floods: has(floods) ? options.flood : undefined,
    usesUpLimits: has(oneConnection, manyConnections, http2, floods),
    otherSpellings: has(spelling, oneConnection),
    tokenInQuery: has(bearer),
    revocationPath: options.revocationPath,
  }
}

/** `Stage.ask` sends a request once more if it met a used-up window, and so opens the next one. `seconds` is the length of the run. */
function repeats({ limits }: VerifyOptions, seconds: number): number {
  const windows = Object.values(limits).map(({ window }) => 1 + Math.ceil(seconds / window))
  return windows.reduce((sum, each) => sum + each, 0)
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
  const records = createRecords(options.limits, options.password)
  const { mask } = records
  const told = maskedReporter(reporter, mask)
  const stage = createStage(options, { clock, signal, records, say: told.progress })
  const { verdicts, tokens } = await runToTheEnd(stage, told)
  const report = maskedReport(
    {
      url: options.url.origin,
      version: VERSION,
      startedAt,
      seconds: (clock.monotonic() - start) / 1000,
      requests: records.requests + stage.floodRequests,
      result: verdicts.some(({ result }) => result === 'broken') ? 'broken' : 'kept',
      promises: verdicts,
      floods: stage.floods,
      tokens,
    },
    mask,
  )
  reporter.finished(report)
  return report
}

/** Runs all rounds and the clean-up. Whatever fails, the connections are closed and the first error is the one that is thrown. */
async function runToTheEnd(
  stage: Stage,
  told: Told,
): Promise<{ readonly verdicts: readonly Verdict[]; readonly tokens: string }> {
  try {
    const verdicts = await runRounds(stage, told).catch(async (error: unknown) => {
      if (stage.records.logins.size > 0) told.progress(`tokens: ${await tokensAfterFailure(stage)}`)
      throw error
    })
    return { verdicts, tokens: await revokeAll(stage) }
  } catch (error) {
    throw maskedError(error, stage.records.mask)
  } finally {
    stage.close()
  }
}

/** The clean-up must not hide the error that ended the run. */
function tokensAfterFailure(stage: Stage): Promise<string> {
  return revokeAll(stage).catch((error: unknown) => `not revoked: ${reasonOf(error)}`)
}

/** Runs the rounds one after the other. A promise is decided when no later round has it. */
async function runRounds(stage: Stage, told: Told): Promise<readonly Verdict[]> {
  const rounds = roundsFor(stage.options)
  const findings: Finding[] = []
  const verdicts = new Map<OutsideId, Verdict>()
  const undecided = new Set(selected(stage.options))
  const decide = (id: OutsideId): void => {
    const verdict = verdictOf(id, findings, stage.options.quick)
    verdicts.set(id, verdict)
    undecided.delete(id)
    told.decided(verdict)
  }
  for (const [i, { round }] of rounds.entries()) {
    findings.push(...(await round.run(stage)))
    const later = new Set(rounds.slice(i + 1).flatMap(({ round }) => round.promises))
    for (const id of OUTSIDE.keys()) {
      const touched = findings.some(({ promise }) => promise === id)
      if (undecided.has(id) && !later.has(id) && touched) decide(id)
    }
  }
  for (const id of [...undecided]) decide(id)
  return [...OUTSIDE.keys()].flatMap((id) => verdicts.get(id) ?? [])
}

/** Broken if one finding says so; kept if one says so and none breaks it. */
export function verdictOf(id: OutsideId, findings: readonly Finding[], quick = false): Verdict {
  const promise = OUTSIDE.get(id)
  const own = findings.filter((finding) => finding.promise === id)
  const departures = own.flatMap((finding) => {
    if (finding.kind !== 'broken') return []
    const { promise: _, kind: __, ...departure } = finding
    return [departure]
  })
  const kept = own.some(({ kind }) => kind === 'kept')
  const result = departures.length > 0 ? 'broken' : kept ? 'kept' : 'not testable'
  const notes = own.flatMap((finding) => {
    if (finding.kind === 'kept') return finding.note === undefined ? [] : [finding.note]
    if (finding.kind === 'broken') return []
    return [result === 'not testable' ? finding.reason : `not tested: ${finding.reason}`]
  })
  return {
    id,
    sentence: promise?.sentence ?? '',
    clause: promise?.clause ?? '',
    result,
    departures,
    notes:
      own.length === 0
        ? [quick ? 'left out by --quick' : 'no request of this run shows it']
        : [...new Set(notes)],
  }
}
