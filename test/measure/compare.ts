import { parseArgs } from 'node:util'
import { MODELS, type ModelName } from '../../bench/models/models.ts'
import { Aimd, BY_DEFAULT, Gradient, RestartedLaw, Vegas } from './laws.ts'
import { type Outcome, type Run, simulate } from './simulation.ts'

/**
 * Prints the table of bench/laws.md: each law in front of each model, as a share of the best fixed bound, as the mean of `--seeds N` runs,
 * and the most crashes in one of them. One run of each takes ten seconds of processor time; the table has forty. `auto` and `default` are
 * Postern's. `--law NAME` prints the column of one law.
 */
const LAWS: Readonly<Record<string, (name: ModelName, run: Run) => Outcome>> = {
  '64': (name, run) => simulate(name, { places: 64 }, run),
  AIMD: (name, run) => simulate(name, new Aimd(), run),
  gradient: (name, run) => simulate(name, new Gradient(), run),
  Vegas: (name, run) => simulate(name, new Vegas(), run),
  auto: (name, run) => simulate(name, new RestartedLaw(), run),
  default: (name, run) => simulate(name, new RestartedLaw(undefined, BY_DEFAULT), run),
}
const TIMES: Partial<Record<ModelName, number>> = {
  crashes: 120_000,
  reloads: 120_000,
  fast: 10_000,
  page: 20_000,
}
/** The way to 64 places, one by one, takes less (ms). */
const CLIMB = 10_000

/** One outcome beside that of the best fixed bound, with the same seed. */
interface Pair {
  readonly outcome: Outcome
  readonly best: Outcome
}

const { values } = parseArgs({
  options: { seeds: { type: 'string', default: '1' }, law: { type: 'string' } },
})
const shown = Object.entries(LAWS).filter(([name]) => name === (values.law ?? name))
const seeds = Array.from({ length: Number(values.seeds) }, (_, index) => 3 + index)

/** What a law does from the start, and what it does when it has found its bound: the difference is the price of being careful. */
function pairs(name: ModelName, law: (run: Run) => Outcome, from: number): readonly Pair[] {
  const time = (TIMES[name] ?? 60_000) + from
  return seeds.map((seed) => {
    const run = { clients: 64, noise: 0.2, seed, time, from }
    return { outcome: law(run), best: simulate(name, { places: MODELS[name].best }, run) }
  })
}

function mean(all: readonly Pair[], of: (outcome: Outcome) => number): number {
  return all.reduce((sum, { outcome, best }) => sum + of(outcome) / of(best), 0) / all.length
}

function share(all: readonly Pair[]): string {
  return `${Math.round(100 * mean(all, ({ throughput }) => throughput))} %`
}

function cell(all: readonly Pair[]): string {
  const tail = mean(all, ({ p99 }) => p99)
  const most = Math.max(...all.map(({ outcome }) => outcome.crashedAt.length))
  const crashes = most > 0 ? `, crashes: ${most}` : ''
  return Number.isFinite(tail) ? `${share(all)}, ${tail.toFixed(1)}${crashes}` : `${share(all)}${crashes}`
}

console.log(`| device | best | ${shown.map(([name]) => name).join(' | ')} | auto after 10 s |`)
console.log(`|${' --- |'.repeat(3 + shown.length)}`)
for (const name of Object.keys(MODELS) as ModelName[]) {
  const cells = shown.map(([, law]) => cell(pairs(name, (run) => law(name, run), 0)))
  const after = share(pairs(name, (run) => simulate(name, new RestartedLaw(), run), CLIMB))
  console.log(`| ${MODELS[name].about} | ${MODELS[name].best} | ${cells.join(' | ')} | ${after} |`)
}
