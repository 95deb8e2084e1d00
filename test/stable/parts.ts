import { readFileSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { Counter, Gauge, Registry } from 'prom-client'
import { vi } from 'vitest'
import type { StatusAnswer } from '../../src/admin/control-socket.ts'
import { controlSocketPath } from '../../src/admin/control-socket.ts'
import type { ProgramIo } from '../../src/commands/command.ts'
import { defineProgram } from '../../src/commands/program.ts'
import { createAccessLog } from '../../src/record/access-log.ts'
import { openLogOn } from '../../src/record/log.ts'
import { createMetrics } from '../../src/record/metrics.ts'
import { planJson, reportJson } from '../../src/verify/report.ts'
import { planOf } from '../../src/verify/run.ts'
import type { Report } from '../../src/verify/verdict.ts'
import { runInProcess } from '../process/in-process.ts'
import { prepareSite, runPostern, type Serving, type Site } from '../process/serve.ts'
import { exchangeRecord } from '../support/admitted.ts'
import { send } from '../support/client.ts'
import { stillClock } from '../support/clock.ts'
import { requestHead } from '../support/exchange.ts'
import { runOptions } from '../verify/a-run.ts'

/** The names that the program has, by the list in `names/` that promises them. */
export const PARTS: Readonly<Record<string, () => Promise<readonly string[]> | readonly string[]>> = {
  flags,
  metrics,
  'log-fields': logFields,
  'exit-codes': exitCodes,
  json: jsonPaths,
  addresses,
}

function definedProgram() {
  // Proof of the cast: only a command that runs looks at the process.
  return defineProgram({ stdout: { write: () => {} } } as unknown as ProgramIo, () => {})
}

/** Commands, their operands and their options. */
function flags(): readonly string[] {
  return definedProgram().commands.flatMap((command) => [
    `${command.name()}`,
    ...command.registeredArguments.map((operand) => {
      const name = operand.variadic ? `${operand.name()}...` : operand.name()
      return `${command.name()} ${operand.required ? `<${name}>` : `[${name}]`}`
    }),
    ...command.options.map(({ flags }) => `${command.name()} ${flags}`),
  ])
}

/** Metrics with their labels. Those of Node and of prom-client are theirs, and change with Node. */
function metrics(): readonly string[] {
  const registered = vi.spyOn(Registry.prototype, 'registerMetric')
  createMetrics({ version: '1.0.0', node: 'v26.0.0' })
  const families = registered.mock.calls.flatMap(([metric]) => {
    // What prom-client keeps of a definition, beside its declared types.
    const { name, labelNames } = metric as unknown as { readonly name: string; readonly labelNames: string[] }
    const type = metric instanceof Counter ? 'counter' : metric instanceof Gauge ? 'gauge' : 'histogram'
    return name.startsWith('postern_')
      ? `${name}${labelNames.length === 0 ? '' : `{${labelNames}}`} ${type}`
      : []
  })
  registered.mockRestore()
  return families
}

/** The fields of the lines `request`. Each `"field":` that the code writes has to be in a real line. */
function logFields(): readonly string[] {
  const lines: string[] = []
  const rules = { access: true }
  const stream = { write: (line: string) => lines.push(line) }
  const log = createAccessLog(openLogOn('info', stream), stillClock(), { config: { log: rules } })
  const head = requestHead({ target: '/page?a=1' })
  const refusal = { kind: 'overloaded' } as never
  log.write(exchangeRecord({ head, grant: 'monitor.0123456789abcdef', refusal, wouldRefuse: refusal }), 0)
  log.write(exchangeRecord({ head, outcome: 'aborted', endedFor: refusal }), 0)
  log.close()
  const seen = lines.flatMap((line) => Object.keys(JSON.parse(line)))
  const source = readFileSync(new URL('../../src/record/access-log.ts', import.meta.url), 'utf8')
  const written = [...source.matchAll(/[{,]"(\w+)":/g)].map(([, field = '']) => field)
  return unique([...seen, ...written])
}

/** A sidecar that has done something of everything. */
async function usedSidecar(): Promise<{
  readonly site: Site
  readonly sidecar: Serving
  readonly id: string
}> {
  const site = await prepareSite()
  const sidecar = await site.serveHere()
  const { access_token: token } = await sidecar.grant()
  await sidecar.use(token)
  await sidecar.request({ path: '/refused' })
  const { request_id } = await sidecar.waitForLog('request', ({ path }) => path === '/refused')
  return { site, sidecar, id: String(request_id) }
}

/** The exit code of each command for what can happen to it. */
async function exitCodes(): Promise<readonly string[]> {
  const codes: string[] = []
  const note = async (words: string, run: Promise<{ readonly code: number | null }>): Promise<void> => {
    codes.push(`${words}: ${(await run).code}`)
  }
  for (const { name } of definedProgram().commands.map((command) => ({ name: command.name() }))) {
    await note(`${name} --help`, runInProcess([name, '--help']))
    await note(`${name} with an unknown option`, runInProcess([name, '--no-such-option']))
  }
  const { site, sidecar, id } = await usedSidecar()
  await note('check', site.postern('check'))
  const here = ['--set', `admin.address=${new URL(sidecar.adminUrl).host}`]
  await note('healthy', site.postern('healthy', ...here))
  await note('healthy --ready', site.postern('healthy', ...here, '--ready'))
  await note('status', site.postern('status'))
  await note('explain', site.postern('explain'))
  await note('explain ID', site.postern('explain', id))
  await note('explain of an unknown id', site.postern('explain', 'no-such-id'))
  await note('issue --for 1h', site.postern('issue', '--for', '1h'))
  await note('issue --for a time that is too long', site.postern('issue', '--for', '1000d'))
  await note('retry', site.postern('retry'))
  await note('revoke of no grant', site.postern('revoke', '--grant', 'no-such-grant'))
  await note('revoke --all', site.postern('revoke', '--all'))
  await note('revoke of nothing that is named', site.postern('revoke'))
  await note('serve on a state folder in use', runPostern(['serve', '--config', site.configFile]))
  await note('serve, stopped by SIGTERM', sidecar.stop())
  await note('healthy without a sidecar', site.postern('healthy', ...here))
  for (const words of ['status', 'explain', 'issue --for 1h', 'revoke --all', 'retry']) {
    const [command = '', ...args] = words.split(' ')
    await note(`${words} without a sidecar`, site.postern(command, ...args))
  }
  const verify = ['verify', sidecar.url, '--password-file', site.passwordFile]
  await note('verify --dry-run', runInProcess([...verify, '--dry-run']))
  await note('verify of a server that does not respond', runInProcess(verify))
  await note('hash-password without a password', runInProcess(['hash-password']))
  await note('propose of a file that is missing', runInProcess(['propose', '/no/such/file']))
  site.configure({ no_such_key: 1 })
  for (const command of ['serve', 'check', 'status'])
    await note(`${command} with an unknown key`, site.postern(command))
  return codes
}

/** What `alarms`, `quirks`, `unfinished` and `waiting` of `status --json` hold when something is wrong. The compiler wants each of their fields. */
const TROUBLED: Pick<Required<StatusAnswer>, 'alarms' | 'quirks' | 'unfinished' | 'waiting'> = {
  alarms: [
    {
      name: 'DeviceDown' as never,
      key: '',
      level: 'warning',
      what: '',
      since: null,
      meaning: '',
      remedy: '',
    },
  ],
  quirks: [{ route: null, kind: 'tolerant', since: 0, malformed: { request: '', fault: '', bytes: '' } }],
  unfinished: [{ grant: '', client: '', startedAt: 0 }],
  waiting: [{ key: '', address: '' }],
}

/** A report of `verify --json` with one of everything. A run that gets so far takes minutes. */
const REPORT: Report = {
  url: '',
  version: '',
  startedAt: '',
  seconds: 0,
  requests: 0,
  result: 'broken',
  promises: [
    {
      id: 'C9',
      sentence: '',
      clause: '',
      result: 'broken',
      departures: [{ sent: '', came: '', wanted: '', clause: '' }],
      notes: [''],
    },
  ],
  floods: [
    {
      endpoint: 'api',
      connections: 1,
      seconds: 1,
      passed: 1,
      refusals: { responses: 1, p50: 1, p99: 1, max: 1 },
      beside: { responses: 1, p50: 1, p99: 1, max: 1 },
    },
  ],
  tokens: '',
}

/** The paths in the documents of `--json`, from real runs. */
async function jsonPaths(): Promise<readonly string[]> {
  const { site, id } = await usedSidecar()
  const documents = async (name: string, ...args: readonly string[]): Promise<readonly string[]> => {
    const { stdout } = await site.postern(args[0] ?? '', ...args.slice(1), '--json')
    return pathsOf(JSON.parse(stdout), name)
  }
  return unique([
    ...(await documents('issue', 'issue', '--for', '1h', '--label', 'probe')),
    ...(await documents('status', 'status')),
    ...pathsOf(TROUBLED, 'status'),
    ...(await documents('explain', 'explain')),
    ...(await documents('explain ID', 'explain', id)),
    // The keys of the configuration are a list of their own.
    ...(await documents('check', 'check')).filter((path) => !path.startsWith('check.configuration.')),
    ...pathsOf(JSON.parse(reportJson(REPORT)), 'verify'),
    ...pathsOf(JSON.parse(planJson(planOf(runOptions('https://device.example', 'x')))), 'verify --dry-run'),
  ])
}

/** Each path in a document: `.key` of an object, `[]` of a list. */
function pathsOf(value: unknown, path: string): readonly string[] {
  if (Array.isArray(value)) return unique(value.flatMap((each) => pathsOf(each, `${path}[]`)))
  if (typeof value !== 'object' || value === null) return [path]
  return [
    ...(path.includes('.') ? [path] : []),
    ...Object.entries(value).flatMap(([key, each]) => pathsOf(each, `${path}.${key}`)),
  ]
}

/** The addresses of the admin listener, and the control socket: where it is, who reaches it, and what it answers. */
async function addresses(): Promise<readonly string[]> {
  const { site, sidecar } = await usedSidecar()
  const at = (path: string) => send({ transport: 'http1', url: sidecar.adminUrl, path })
  const { pages } = JSON.parse((await at('/no-such-page')).text) as { readonly pages: readonly string[] }
  const answers = await Promise.all(
    [...pages, '/page/alerts'].map(async (path) => `admin GET ${path}: ${(await at(path)).status}`),
  )
  const socket = controlSocketPath(site.stateDir)
  const source = readFileSync(new URL('../../src/admin/control-socket.ts', import.meta.url), 'utf8')
  const commands = [...source.matchAll(/\['((?:GET|POST) \/\w+)'/g)].map(([, request = '']) => request)
  return [
    ...answers,
    `control socket: state_dir/${basename(socket)}, mode ${(statSync(socket).mode & 0o777).toString(8)}`,
    ...commands.map((request) => `control socket: ${request}`),
  ]
}

function unique(names: readonly string[]): readonly string[] {
  return [...new Set(names)]
}
