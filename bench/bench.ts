import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { compareResults, TOLERANCE } from './compare.ts'
import { type Findings, FORMAT, type MeasuredFigure, type Result, readResult, verdictOf } from './figure.ts'
import { places } from './figures/d1-places.ts'
import { sharing } from './figures/d2-sharing.ts'
import { forwarding } from './figures/p1-forwarding.ts'
import { floor as floorCost } from './figures/p1f-floor.ts'
import { watched } from './figures/p1w-watched.ts'
import { refusals } from './figures/p2-refusals.ts'
import { shield } from './figures/p3-shield.ts'
import { latency } from './figures/p4-latency.ts'
import { tls } from './figures/p5-tls.ts'
import { memory } from './figures/p6-memory.ts'
import { start } from './figures/p7-start.ts'
import { growthOfTables } from './figures/p8-growth.ts'
import { bulk } from './figures/p9-bulk.ts'
import { admission } from './figures/p10-admission.ts'
import { floods } from './figures/p11-floods.ts'
import { requestCost } from './fleet/f1-request-cost.ts'
import { severalSidecars } from './fleet/f2-several-sidecars.ts'
import { storeCosts } from './fleet/f3-store-costs.ts'
import { clockTime, formatChecks, formatFindings, formatTable, rounded } from './format.ts'
import { type Figure, openLab } from './lab.ts'
import { proofFindings, proveLimits } from './limits/proof.ts'
import { currentLoad, describeMachine } from './machine.ts'
import { HELP, isRunOf, type Options, readOptions, UsageError } from './options.ts'
import { shippedProgram, sourceProgram } from './program.ts'
import { renderPage } from './report/page.ts'
import { publish } from './report/publish.ts'
import { cleaningUp, runProgram, say } from './run-program.ts'

const RESULTS = fileURLToPath(new URL('results/', import.meta.url))
const ROOT = fileURLToPath(new URL('../', import.meta.url))

/** In the order in which they are measured and reported. */
const FIGURES: readonly Figure[] = [
  ...[forwarding, floorCost, watched, refusals, shield, latency, tls, memory, start, growthOfTables, bulk],
  ...[admission, floods, places, sharing, requestCost, severalSidecars, storeCosts],
]

/** Name of the proof of the limits in `--only`. */
const LIMITS = 'limits'

/** `npm run bench`: see `--help` and bench/README.md. */
async function main(): Promise<0 | 1> {
  const known = [LIMITS, ...FIGURES.map(({ id }) => id)]
  const options = readOptions(process.argv.slice(2), known)
  if (options.help) {
    process.stdout.write(HELP)
    return 0
  }
  // Read before the run: an invalid file fails immediately, and `--out` may overwrite the same file.
  const before = options.compare === undefined ? undefined : await readEarlierResult(options.compare)
  const result = await run(options)

  process.stdout.write(`\n${formatChecks(result.figures)}\n\n`)
  await save(options.out, result)
  for (const line of await publish(ROOT, (command) => isRunOf(command, options, known), result))
    process.stdout.write(`${line}\n`)
  const regressed = before === undefined ? false : printComparison(before, result)
  const faults = result.figures.flatMap((figure) => figure.faults.map((fault) => `${figure.id}: ${fault}`))
  for (const fault of faults) process.stdout.write(`FAIL  ${fault}\n`)
  const missed = result.figures
    .flatMap(({ checks }) => checks)
    .filter((check) => verdictOf(check) === 'short')
  process.stdout.write(
    `${missed.length} thresholds missed, ${faults.length} faults; ${clockTime(result.took)} minutes, ` +
      `load average ${result.machine.loadAverage} before, ${result.loadAfter} after\n`,
  )
  return faults.length > 0 || regressed || (options.strict && missed.length > 0) ? 1 : 0
}

async function run(options: Options): Promise<Result> {
  const { only, effort, peers, nodeFlags, quick, source } = options
  const begin = performance.now()
  const at = new Date().toISOString()
  const machine = await describeMachine()
  say(`${machine.cores} × ${machine.processor}, Node ${machine.node}, load average ${machine.loadAverage}`)

  const figures: MeasuredFigure[] = []
  const add = async (
    figure: Omit<Figure, 'measure'>,
    measure: () => Promise<Partial<Findings>>,
  ): Promise<void> => {
    say(`${figure.id}  ${figure.title}`)
    const from = performance.now()
    // A figure that fails must not end the others, nor leave processes that run beside them.
    const findings = await cleaningUp(measure).catch(failed)
    const { id, title, about } = figure
    const measured = { id, title, about, ...NOTHING, ...findings, took: (performance.now() - from) / 1000 }
    figures.push(measured)
    process.stdout.write(`${formatFindings(measured)}\n`)
  }

  // Runs before processes are pinned, because it uses all cores.
  if (only === undefined || only.includes(LIMITS)) {
    await add(LIMITS_PROOF, async () => proofFindings(await proveLimits([])))
  }
  const program = source ? sourceProgram(nodeFlags) : await shippedProgram(nodeFlags)
  const lab = await openLab(effort, { peers, program, everyCapability: options.floor })
  const selected = FIGURES.filter(({ id }) => only === undefined || only.includes(id))
  for (const figure of selected) await add(figure, () => figure.measure(lab))
  return {
    format: FORMAT,
    at,
    machine,
    loadAfter: currentLoad(),
    program: program.name,
    device: lab.device.name,
    tools: lab.tools,
    pinned: lab.proxyCore !== undefined,
    rounds: effort.rounds,
    seconds: effort.seconds,
    quick,
    took: (performance.now() - begin) / 1000,
    figures,
  }
}

const LIMITS_PROOF = {
  id: LIMITS,
  title: 'Exactly the limit passes',
  about:
    'autocannon floods the sidecar over cleartext and TLS, and every response is checked against the documented limits: exactly 60 requests in 60 s pass, 30 for /oauth/token; all others get 429.',
}

const NOTHING: Findings = { checks: [], tables: [], notes: [], faults: [] }

function failed(error: unknown): Partial<Findings> {
  const why = error instanceof Error ? error.message : String(error)
  return { faults: [`could not be measured: ${why}`] }
}

async function save(name: string, result: Result): Promise<void> {
  await mkdir(RESULTS, { recursive: true })
  const file = join(RESULTS, name)
  await writeFile(`${file}.json`, `${JSON.stringify(result, null, 1)}\n`)
  await writeFile(`${file}.html`, renderPage(result))
  say(`written: ${file}.json and .html`)
}

async function readEarlierResult(file: string): Promise<Result> {
  try {
    return await readResult(file)
  } catch (error) {
    throw new UsageError(`--compare: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** Prints this run beside an earlier one. Returns whether a figure is worse. */
function printComparison(before: Result, now: Result): boolean {
  const comparisons = compareResults(before, now)
  const rows = comparisons.map(({ id, unit, regressed, ...values }) => [
    regressed ? 'WORSE' : '',
    id,
    ...[values.before, values.now, values.allowed].map(rounded),
    unit,
  ])
  const head = ['', 'figure', 'before', 'now', 'may be worse by', 'unit']
  process.stdout.write(
    `Compared with ${before.machine.commit} of ${before.at}\n\n${formatTable(head, rows)}\n\n`,
  )
  process.stdout.write(`allowed: ${TOLERANCE * 100} % plus half of the range of the rounds of each run\n`)
  if (before.quick || now.quick)
    process.stdout.write('one of them is a quick run: its figures are not reliable\n')
  return comparisons.some(({ regressed }) => regressed)
}

/** Twice the time of a run with every figure (ms). */
const TIME_LIMIT = 120 * 60_000

await runProgram(
  () =>
    main().catch((error: unknown) => {
      if (!(error instanceof UsageError)) throw error
      process.stderr.write(`${error.message}\n\n${HELP}`)
      return 1
    }),
  TIME_LIMIT,
)
