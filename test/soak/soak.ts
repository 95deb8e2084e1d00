import { parseArgs } from 'node:util'
import { formatTable } from '../../bench/format.ts'
import { runProgram, say } from '../../bench/run-program.ts'
import { closeAll } from '../support/cleanup.ts'
import { type SoakReport, soak } from './run.ts'

const HELP = `npm run soak -- [--minutes N] [--seed S] [--rate R]

Mixed traffic through a real sidecar while the device restarts, the password changes and the configuration is reloaded.
Every response is checked; memory, descriptors and sockets must stay flat. The output ends with a table and pass or fail.
--minutes  duration (default 10)
--seed     seed of the random mix (default: the time)
--rate     operations per second (default 60)
`

async function main(): Promise<0 | 1> {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '10' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000_000) },
      rate: { type: 'string', default: '60' },
      help: { type: 'boolean', default: false },
    },
  })
  const [minutes, seed, rate] = [values.minutes, values.seed, values.rate].map(Number) as [
    number,
    number,
    number,
  ]
  if (values.help || !(minutes > 0) || !Number.isSafeInteger(seed) || !(rate > 0)) {
    process.stdout.write(HELP)
    return values.help ? 0 : 1
  }
  say(`seed ${seed}`)
  const report = await soak({ seconds: minutes * 60, seed, rate, progress: say })
  print(report)
  return report.faults.length === 0 ? 0 : 1
}

function print({ ledger, courses, disturbances, faults }: SoakReport): void {
  const rows = [...ledger.operations].map(([operation, outcomes]) => [
    operation,
    String([...outcomes.values()].reduce((sum, each) => sum + each, 0)),
    [...outcomes].map(([outcome, times]) => `${times} ${outcome}`).join(', '),
  ])
  process.stdout.write(`\n${formatTable(['what', 'times', 'outcomes'], rows)}\n\n`)
  process.stdout.write(
    `${Object.entries(disturbances)
      .map(([what, times]) => `${times} ${what}`)
      .join(', ')}\n\n`,
  )
  const figures = (courses ?? []).map(({ name, flat, ...numbers }) => [
    name,
    ...[numbers.first, numbers.last, numbers.most, numbers.bound].map((value) => value.toFixed(0)),
    flat ? 'flat' : 'GROWS',
  ])
  process.stdout.write(
    courses === undefined
      ? 'too short to tell whether memory is flat\n'
      : `${formatTable(['', 'first third', 'last third', 'most', 'bound', ''], figures)}\n`,
  )
  for (const fault of faults) process.stdout.write(`FAIL  ${fault}\n`)
  process.stdout.write(faults.length === 0 ? 'pass\n' : 'fail\n')
}

/** The longest run (ms). */
const LONGEST = 24 * 60 * 60_000

await runProgram(() => main().finally(closeAll), LONGEST)
