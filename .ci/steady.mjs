// What .ci/steady runs: see there.
import { spawn } from 'node:child_process'
import { randomInt, randomUUID } from 'node:crypto'
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'

/** The longest stop of a process, and the longest time between two (ms). */
const LONGEST_STOP = 1_000
const LONGEST_PAUSE = 500
/** Processes that tests stop themselves bear this in their environment: what continues them breaks the test. */
const STOPPED_BY_TEST = 'STOPPED_BY_TEST=1'
/** Such processes that overwrite their environment. */
const STOPPED_BY_NAME = new Set(['redis-server', 'valkey-server'])
/** The program of a terminal. It takes a stopped process below it for one that its user has suspended, and stops itself until it is continued. */
const TERMINAL = 'script'
/** How long what is left after a run may take to end by itself (ms). */
const GRACE = 2_000

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    workers: { type: 'string', default: '2' },
    busy: { type: 'string', default: String(availableParallelism()) },
    project: { type: 'string', default: 'test' },
    exclude: { type: 'string', multiple: true, default: [] },
  },
})
const [runs, ...paths] = positionals
const numbers = [runs, values.seed, values.workers, values.busy].map(Number)
if (!numbers.every((number) => Number.isSafeInteger(number) && number >= 0) || numbers[0] === 0) {
  console.error(
    '.ci/steady RUNS [PATHS] [--seed N] [--workers N] [--busy N] [--project NAME] [--exclude GLOB]',
  )
  process.exit(2)
}
const [count = 1, seed = 0, workers = 2, busyPrograms = 1] = numbers

/** In the environment of all that is started, to find what outlives its parent. */
const MARK = `STEADY_RUN=${randomUUID()}`
const [markName = '', markValue] = MARK.split('=')
const environment = { ...process.env, [markName]: markValue }
const folder = mkdtempSync(join(tmpdir(), 'postern-steady-'))
const ending = new AbortController()

/** Mulberry32: from 0 to 1. */
function createRandom(state) {
  let present = state
  return () => {
    present = (present + 0x6d2b79f5) | 0
    let mixed = Math.imul(present ^ (present >>> 15), 1 | present)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A process as of now; undefined if it has ended. Its start distinguishes it from a later one with the same id. */
function lookUp(pid) {
  try {
    const [, rest = ''] = /\(.*\) (.*)/s.exec(readFileSync(`/proc/${pid}/stat`, 'latin1')) ?? []
    const fields = rest.split(' ')
    // Node calls its main thread otherwise, so the name in `stat` is not that of the process.
    const name = basename(readFileSync(`/proc/${pid}/cmdline`, 'latin1').split(/[\0 ]/, 1)[0])
    return { pid, name, isOver: fields[0] === 'Z', parent: Number(fields[1]), start: fields[19] }
  } catch {
    return undefined
  }
}

function allProcesses() {
  const ids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return ids.map((id) => lookUp(Number(id))).filter((found) => found !== undefined && !found.isOver)
}

/** The children of a process, their children, and so on. */
function descendantsOf(pid, all = allProcesses()) {
  return all
    .filter(({ parent }) => parent === pid)
    .flatMap((child) => [child, ...descendantsOf(child.pid, all)])
}

/** No program of a terminal, nor below one. */
function isOnNoTerminal(of) {
  for (let each = of; each !== undefined; each = lookUp(each.parent)) if (each.name === TERMINAL) return false
  return true
}

/** Whether a process has this in its environment. */
function bears(pid, variable) {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(variable)
  } catch {
    return false
  }
}

/** What this program has started and is still there, whoever its parent is by now. */
function leftOver() {
  return allProcesses().filter(({ pid }) => bears(pid, MARK))
}

const isStoppedByTest = ({ pid, name }) => STOPPED_BY_NAME.has(name) || bears(pid, STOPPED_BY_TEST)

function signal({ pid, start }, name) {
  if (lookUp(pid)?.start !== start) return
  try {
    process.kill(pid, name)
  } catch {
    // It has just ended.
  }
}

/** Stops a process below `root`, half of the time with all below it, and continues them; again and again. */
async function disturb(root, random, over) {
  while (!over.aborted) {
    await pause(random() * LONGEST_PAUSE, undefined, { signal: over }).catch(() => {})
    const [choice, alone, time] = [random(), random() < 0.5, random() * LONGEST_STOP]
    const below = over.aborted ? [] : descendantsOf(root).filter(isOnNoTerminal)
    const chosen = below[Math.floor(choice * below.length)]
    if (chosen === undefined) continue
    const tree = alone ? [chosen] : [chosen, ...descendantsOf(chosen.pid).filter(isOnNoTerminal)]
    const stopped = tree.filter((each) => !isStoppedByTest(each))
    for (const each of stopped) signal(each, 'SIGSTOP')
    await pause(time, undefined, { signal: over }).catch(() => {})
    for (const each of stopped) signal(each, 'SIGCONT')
  }
}

/** Starts programs that keep a core busy each, until `over` or until this process is gone. */
function keepBusy(over) {
  const loop = 'const { ppid } = process; while (process.ppid === ppid) for (let i = 0; i < 1e8; i += 1);'
  for (let i = 0; i < busyPrograms; i += 1) {
    const busy = spawn(process.execPath, ['-e', loop], { stdio: 'ignore', env: environment })
    over.addEventListener('abort', () => busy.kill('SIGKILL'))
  }
}

/** Ends what a run has left, among it `known`: some programs overwrite their environment. It gets the chance to end by itself. */
async function endRest(known) {
  const left = () => [...known.filter(({ pid, start }) => lookUp(pid)?.start === start), ...leftOver()]
  for (const name of ['SIGTERM', 'SIGKILL']) {
    const rest = left()
    if (rest.length === 0) return
    for (const each of rest) {
      signal(each, 'SIGCONT')
      signal(each, name)
    }
    for (let waited = 0; waited < GRACE && left().length > 0; waited += 50) await pause(50)
  }
}

/** Runs the tests once. Returns the reason of each failure by the test. */
async function run(number, random) {
  const report = join(folder, `${number}.json`)
  const log = openSync(join(folder, `${number}.log`), 'w')
  const over = new AbortController()
  const vitest = spawn(
    process.execPath,
    [
      'node_modules/vitest/vitest.mjs',
      ...[
        'run',
        `--project=${values.project}`,
        `--maxWorkers=${workers}`,
        // The files of a worker share their modules.
        '--sequence.shuffle.files',
        `--sequence.seed=${seed + number}`,
        '--reporter=default',
        '--reporter=json',
        `--outputFile.json=${report}`,
      ],
      ...values.exclude.flatMap((glob) => ['--exclude', glob]),
      ...paths,
    ],
    // A process group of its own: this program ends it, not the terminal.
    { stdio: ['ignore', log, log], env: environment, detached: true },
  )
  closeSync(log)
  const ended = new Promise((resolve) => {
    vitest.once('exit', resolve)
  })
  keepBusy(over.signal)
  const disturbed = Array.from({ length: workers }, () => disturb(vitest.pid, random, over.signal))
  const interrupted = new Promise((resolve) => {
    ending.signal.addEventListener('abort', resolve)
  })
  const code = await Promise.race([ended, interrupted])
  const below = descendantsOf(vitest.pid)
  over.abort()
  await Promise.all(disturbed)
  await endRest(below)
  return ending.signal.aborted ? { passed: 0, failures: new Map() } : outcomeOf(report, number, code)
}

function outcomeOf(report, number, code) {
  const failures = new Map()
  let passed = 0
  try {
    const { numPassedTests, testResults } = JSON.parse(readFileSync(report, 'utf8'))
    passed = numPassedTests
    for (const { name, status, message, assertionResults } of testResults) {
      const file = name.replace(`${process.cwd()}/`, '')
      const failed = assertionResults.filter((test) => test.status === 'failed')
      for (const test of failed) failures.set(`${file} > ${test.fullName}`, test.failureMessages.join('\n'))
      if (status === 'failed' && failed.length === 0) failures.set(file, message)
    }
  } catch {
    // Vitest left no report. The end of its output says why.
  }
  if (code !== 0 && failures.size === 0)
    failures.set(
      'outside of the tests',
      readFileSync(join(folder, `${number}.log`), 'utf8')
        .trimEnd()
        .slice(-2_000),
    )
  return { passed, failures }
}

for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => ending.abort())

console.log(`seed ${seed}, ${count} runs, ${workers} workers beside ${busyPrograms} busy programs`)
const random = createRandom(seed)
const often = new Map()
for (let number = 1; number <= count && !ending.signal.aborted; number += 1) {
  const start = Date.now()
  const { passed, failures } = await run(number, random)
  if (ending.signal.aborted) break
  const time = Math.round((Date.now() - start) / 1000)
  console.log(`run ${number} of ${count}: ${passed} passed, ${failures.size} failed, ${time} s`)
  for (const [test, reason] of failures) {
    often.set(test, (often.get(test) ?? 0) + 1)
    console.log(`FAILED ${test}\n${reason.split('\n', 12).join('\n').slice(0, 2_000)}\n`)
  }
}
rmSync(folder, { recursive: true, force: true })
if (often.size > 0) {
  console.log('\nhow often  test')
  for (const [test, times] of [...often].sort(([, one], [, other]) => other - one))
    console.log(`${`${times} of ${count}`.padEnd(9)}  ${test}`)
}
process.exitCode = ending.signal.aborted ? 130 : often.size > 0 ? 1 : 0
