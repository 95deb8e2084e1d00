import { MODELS, type ModelName } from '../../bench/models/models.ts'
import { Aimd, Gradient, RestartedMeasure, Vegas } from './laws.ts'
import { type Outcome, type Run, simulate } from './simulation.ts'

/** Prints the table of docs/measure.md: each law in front of each model, as a share of the best fixed bound. */
const LAWS: Readonly<Record<string, (name: ModelName, run: Run) => Outcome>> = {
  '64': (name, run) => simulate(name, { limit: 64 }, run),
  AIMD: (name, run) => simulate(name, new Aimd(), run),
  gradient: (name, run) => simulate(name, new Gradient(), run),
  Vegas: (name, run) => simulate(name, new Vegas(), run),
  Postern: (name, run) => simulate(name, new RestartedMeasure(), run),
}
const TIMES: Partial<Record<ModelName, number>> = {
  crashes: 120_000,
  reloads: 120_000,
  fast: 10_000,
  page: 20_000,
}

function cell(outcome: Outcome, best: Outcome): string {
  const share = Math.round((100 * outcome.throughput) / best.throughput)
  const tail = outcome.p99 / best.p99
  const crashes = outcome.crashedAt.length > 0 ? `, crashes: ${outcome.crashedAt.length}` : ''
  return Number.isFinite(tail) ? `${share} %, ${tail.toFixed(1)}${crashes}` : `${share} %${crashes}`
}

console.log(
  `| device | best | ${Object.keys(LAWS).join(' | ')} |\n|${' --- |'.repeat(2 + Object.keys(LAWS).length)}`,
)
for (const name of Object.keys(MODELS) as ModelName[]) {
  const run = { clients: 64, noise: 0.2, seed: 3, time: TIMES[name] ?? 60_000 }
  const best = simulate(name, { limit: MODELS[name].best }, run)
  const cells = Object.values(LAWS).map((law) => cell(law(name, run), best))
  console.log(`| ${MODELS[name].about} | ${MODELS[name].best} | ${cells.join(' | ')} |`)
}
