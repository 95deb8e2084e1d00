import { parseArgs } from 'node:util'
import { formatTable } from '../../bench/format.ts'
import { runProgram, say } from '../../bench/run-program.ts'
import { closeAll } from '../support/cleanup.ts'
import { figuresOf } from '../support/processes.ts'
import { keepCase } from './case.ts'
import { type Failure, playRound } from './round.ts'
import { createScenes, type Target } from './target.ts'
import { targets } from './targets.ts'

const HELP = `npm run fuzz -- [--minutes N] [--seed S] [--target NAME,...]

Sends generated and damaged bytes to real sidecars and checks every response against the contract.
  --minutes  duration (default 5)
  --seed     the first seed; each round prints its own, which repeats that round (default: the time)
  --target   ${targets.map(({ name }) => name).join(', ')} (default: all)

A failure is shrunk, printed and saved in test/fuzz/cases, which the test suite replays. Exits with 1 after a failure.
`

/** Limits of a round: its cases, and its duration (ms). They keep the log of its sidecar small. */
const CASES = 3000
const ROUND = 30_000

interface Line {
  readonly target: Target
  rounds: number
  played: number
  failures: number
  grown: number
}

async function main(): Promise<0 | 1> {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '5' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000_000) },
      target: { type: 'string', default: targets.map(({ name }) => name).join() },
      help: { type: 'boolean', default: false },
    },
  })
  const wanted = values.target.split(',')
  const unknown = wanted.filter((name) => !targets.some((target) => target.name === name))
  const minutes = Number(values.minutes)
  const first = Number(values.seed)
  if (values.help || unknown.length > 0 || !(minutes > 0) || !Number.isSafeInteger(first)) {
    process.stdout.write(HELP)
    return values.help ? 0 : 1
  }
  const lines = targets
    .filter(({ name }) => wanted.includes(name))
    .map((target): Line => ({ target, rounds: 0, played: 0, failures: 0, grown: 0 }))
  const turns = lines.flatMap((line) => line.target.settings.map((setting) => ({ line, setting })))
  const end = performance.now() + minutes * 60_000
  const share = Math.max(2000, Math.min(ROUND, (minutes * 60_000) / turns.length))
  for (let seed = first; performance.now() < end; seed += 1) {
    const turn = turns[(seed - first) % turns.length]
    if (turn === undefined) break
    const stop = Math.min(end, performance.now() + share)
    const { line, setting } = turn
    const scenes = createScenes(setting)
    const goOn = (): boolean => performance.now() < stop
    const { played, failure } = await playRound(scenes, { target: line.target, seed, count: CASES, goOn })
    const beds = (await scenes.started()).map(({ bed }) => bed)
    const left = (await Promise.all(beds.map((bed) => bed.leftBehind()))).flat()
    line.rounds += 1
    line.played += played
    line.grown = Math.max(line.grown, ...beds.map(({ served }) => figuresOf(served.pid).resident))
    say(`${line.target.name} ${setting.transport} ${setting.parser} seed ${seed}: ${played} cases`)
    if (failure !== undefined) report(failure)
    if (left.length > 0) say(`FAIL  ${line.target.name} seed ${seed}: ${left.join(', ')}`)
    if (failure !== undefined || left.length > 0) line.failures += 1
    await closeAll()
  }
  const rows = lines.map(({ target, rounds, played, failures, grown }) =>
    [target.name, rounds, played, failures, Math.round(grown / (1 << 20))].map(String),
  )
  process.stdout.write(`${formatTable(['target', 'rounds', 'cases', 'failures', 'MiB'], rows)}\n`)
  return lines.every(({ failures }) => failures === 0) ? 0 : 1
}

function report(failure: Failure): void {
  say(`FAIL  ${failure.target} seed ${failure.seed}: ${failure.why}`)
  for (const { writes, ending, ask } of failure.cases.slice(0, 3)) {
    say(`      ${JSON.stringify(writes)} ${ending} ${ask ?? ''}`)
  }
  say(`      saved in ${keepCase(failure)}`)
}

/** Upper bound of `--minutes` with its cleanup (ms). */
const TIME_LIMIT = 24 * 60 * 60_000

await runProgram(() => main().finally(closeAll), TIME_LIMIT)
