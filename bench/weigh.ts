import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { makeBundle } from '../deploy/build/bundle.ts'
import { temporaryFolder } from './child.ts'
import { startNodeDevice } from './device.ts'
import { formatTable, rounded } from './format.ts'
import { type Program, sourceProgram } from './program.ts'
import { runProgram } from './run-program.ts'
import { compareWithBudget, readBudget } from './weigh/budget.ts'
import { weighHops } from './weigh/hops.ts'
import { startIdle, weighStart } from './weigh/process-weight.ts'
import { weighRequests } from './weigh/request-weight.ts'
import { weighSource } from './weigh/source-weight.ts'

const HELP = `npm run weigh -- [options]

Weighs Postern, in about two minutes: source, packages, the way of a request, what V8 allocates for one, start and
idle time. Prints each figure beside its bound in bench/weigh/budget.json, and exits with 1 if one is above it.

  --quick   without the start and the idle minute
  --list    names the functions that each request runs
  --json    prints the figures as JSON
  --help    this
`

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** Many times its duration on an idle machine (ms). */
const TIME_LIMIT = 600_000

async function main(): Promise<0 | 1> {
  const off = { type: 'boolean', default: false } as const
  const { values } = parseArgs({ options: { quick: off, list: off, json: off, help: off } })
  if (values.help) {
    process.stdout.write(HELP)
    return 0
  }
  const { port } = await startNodeDevice(undefined)
  const [device, program] = [`http://127.0.0.1:${port}`, await bundleProgram()]
  const weighIdle = values.quick ? undefined : await startIdle(program, device)
  const figures = {
    ...weighSource(ROOT),
    ...(await weighHops(device, (kind, ran) => {
      if (!values.list) return
      process.stdout.write(
        `${kind}\n${ran
          .map(({ file, name, calls }) => `  ${file} ${name} ${calls}\n`)
          .sort()
          .join('')}`,
      )
    })),
    ...(await weighRequests(program, device)),
    ...(weighIdle && { ...(await weighStart(program, device)), ...(await weighIdle()) }),
  }
  const weighed = compareWithBudget(figures, readBudget())
  if (values.json) process.stdout.write(`${JSON.stringify(figures)}\n`)
  else {
    const rows = weighed.map(({ name, value, bound, verdict }) => [
      name,
      rounded(value),
      rounded(bound),
      verdict,
    ])
    process.stdout.write(`${formatTable(['', 'weighs', 'bound', ''], rows)}\n`)
  }
  return weighed.some(({ verdict }) => verdict === 'TOO HEAVY') ? 1 : 0
}

/** The program in a few files, run by this Node without further flags: it weighs what the executable does. */
async function bundleProgram(): Promise<Program> {
  const folder = await temporaryFolder()
  await makeBundle(folder)
  return { ...sourceProgram(), name: 'the bundle', command: [process.execPath, join(folder, 'postern.mjs')] }
}

await runProgram(main, TIME_LIMIT)
