import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { createInterface, type Interface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'

/** For each script of the bundle, where the functions begin (offsets) that a start and one request call. */
export type CalledFunctions = Readonly<Record<string, readonly number[]>>

/** A rare event, such as a new network interface, calls more functions in one of the runs. */
const RUNS = 2

/**
 * Adds V8's compiled code to a bundle, one `.cache` file per script, with the functions that a start and one request call. The same
 * bundle gives the same bytes. The code of functions that ran would differ: V8 notes in it what they compared and when it looked at
 * them to optimize. So sidecars only tell which functions they call, and another process compiles these without calling them.
 */
export async function addCompiledCode(bundle: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-bundle-'))
  const device = createServer((_, response) => response.end('{}')).listen(0, '127.0.0.1')
  try {
    await once(device, 'listening')
    const { port } = device.address() as AddressInfo
    await writeFile(join(folder, 'password'), 'none\n', { mode: 0o600 })
    // Alone in its folder: the sidecar watches that folder.
    await mkdir(join(folder, 'config'))
    const config = join(folder, 'config', 'postern.yaml')
    await writeFile(
      config,
      `
listen:
  address: 127.0.0.1:0
admin:
  address: 127.0.0.1:0
upstream:
  url: http://127.0.0.1:${port}
password:
  file: ${join(folder, 'password')}
state_dir: ${join(folder, 'state')}
`,
    )
    const token = await inSidecar(bundle, config, [], createTokens)
    const runs: CalledFunctions[] = []
    for (let run = 0; run < RUNS; run++) runs.push(await listFunctions(bundle, config, token))
    const list = join(folder, 'called-functions.json')
    await writeFile(list, JSON.stringify(inEach(runs)))
    await promisify(execFile)(process.execPath, [...DETERMINISTIC, COMPILER, bundle, list], { env: {} })
  } finally {
    device.close()
    await rm(folder, { recursive: true })
  }
}

/** Runs in a sidecar. At the signal it logs `called`. */
const LISTER = join(import.meta.dirname, 'called-functions.ts')
const LIST = 'SIGUSR2'

const COMPILER = join(import.meta.dirname, 'compile-functions.ts')

/** The code contains hashes of V8, which otherwise begin with a random number. */
const DETERMINISTIC = ['--random-seed=1']

/** The functions that a start and one request with the token call. */
function listFunctions(bundle: string, config: string, token: string): Promise<CalledFunctions> {
  return inSidecar(bundle, config, ['--import', LISTER], async (sidecar) => {
    await sidecar.send({ path: '/', headers: { Authorization: `Bearer ${token}` } })
    return await sidecar.calledFunctions()
  })
}

/** The functions that are in each of the lists, in ascending order. */
function inEach([first = {}, ...others]: readonly CalledFunctions[]): CalledFunctions {
  const names = Object.keys(first).sort()
  const called = names.map((name) => {
    const starts = first[name] ?? []
    const always = starts.filter((start) => others.every((other) => other[name]?.includes(start)))
    return [name, [...new Set(always)].sort((a, b) => a - b)]
  })
  return Object.fromEntries(called)
}

interface TestRequest {
  readonly method?: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly form?: string
}

interface Sidecar {
  /** The body of the response, which must be a 200. All requests use one connection, which stays open. */
  send(request: TestRequest): Promise<string>
  /** The functions that were called up to now. */
  calledFunctions(): Promise<CalledFunctions>
}

/** Several grants: with one, the random order of its tokens would decide which functions the next sidecar calls. */
const GRANTS = 16

/**
 * The token of the first grant. The last ones may be of one millisecond: then the random order in which they are restored would decide whether
 * the last one is the most recent, and so whether its use moves it in the table.
 */
async function createTokens({ send }: Sidecar): Promise<string> {
  let token: string | undefined
  for (let grant = 0; grant < GRANTS; grant++) {
    const body = await send({
      method: 'POST',
      path: '/oauth/token',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      form: 'grant_type=password&password=none',
    })
    token ??= (JSON.parse(body) as { access_token: string }).access_token
  }
  return token ?? ''
}

/** Starts the sidecar of the bundle, uses it, and stops it. */
async function inSidecar<Result>(
  bundle: string,
  config: string,
  hooks: readonly string[],
  use: (sidecar: Sidecar) => Promise<Result>,
): Promise<Result> {
  const args = [...hooks, join(bundle, 'postern.mjs'), 'serve', '--config', config]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], env: {} })
  const exited = once(child, 'exit')
  const log = createInterface(child.stdout)
  const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false })
  try {
    const url = await logged<string>(log, 'public')
    const result = await use({
      send: (each) => send(agent, url, each),
      calledFunctions() {
        const called = logged<CalledFunctions>(log, 'called')
        child.kill(LIST)
        return called
      },
    })
    agent.destroy()
    child.kill()
    const [code] = await exited
    if (code !== 0) throw new Error(`the sidecar of the bundle ended with ${code}`)
    return result
  } finally {
    agent.destroy()
    child.kill()
  }
}

/** The value of a key in the first line of the log that has it. */
function logged<Value>(log: Interface, key: string): Promise<Value> {
  const { promise, resolve, reject } = Promise.withResolvers<Value>()
  log.on('line', (line) => {
    const { [key]: value } = JSON.parse(line) as Record<string, Value>
    if (value !== undefined) resolve(value)
  })
  log.on('close', () => reject(new Error(`the sidecar of the bundle ended and did not log ${key}`)))
  return promise
}

async function send(
  agent: Agent,
  url: string,
  { method = 'GET', path, headers, form }: TestRequest,
): Promise<string> {
  const outgoing = request(`${url}${path}`, { method, headers, agent })
  outgoing.end(form)
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  const body = await text(response)
  if (response.statusCode !== 200)
    throw new Error(`the sidecar of the bundle responds ${response.statusCode}: ${body}`)
  return body
}
