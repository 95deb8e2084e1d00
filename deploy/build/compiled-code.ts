import { type ChildProcess, spawn } from 'node:child_process'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'

/** Enough for the usual code to be in the majority: on a machine under load, one run in five differs. A run takes half a second. */
export const ENOUGH_RUNS = 25

/**
 * Adds V8's compiled code to a bundle, one `.cache` file per script. The first run creates certificate and tokens; each of the
 * further `runs` compiles a start and one request. V8's hash seed is fixed, so runs give the same bytes. A rare event, such as a
 * new network interface, can still differ, so the most frequent result is taken.
 */
export async function addCompiledCode(bundle: string, runs = 1): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-bundle-'))
  const device = createServer((_, response) => response.end('{}')).listen(0, '127.0.0.1')
  try {
    await once(device, 'listening')
    const { port } = device.address() as AddressInfo
    await writeFile(join(folder, 'password'), 'none\n', { mode: 0o600 })
    const config = join(folder, 'postern.yaml')
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
    const grants = await runOnce(bundle, config, [], 'SIGTERM', Array(GRANTS).fill(PASSWORD_GRANT))
    const { access_token: token } = JSON.parse(grants[0] ?? '') as { access_token: string }
    const found = new Map<string, { code: CompiledCode; times: number }>()
    for (let run = 0; run < runs; run++) {
      const output = join(folder, `code-${run}`)
      await mkdir(output)
      const hook = `data:text/javascript,${encodeURIComponent(saving(output))}`
      await runOnce(bundle, config, [...DETERMINISTIC, '--import', hook], SAVE, [
        { path: '/', headers: { Authorization: `Bearer ${token}` } },
      ])
      const code = await readFolder(output)
      const key = digestOf(code)
      found.set(key, { code, times: (found.get(key)?.times ?? 0) + 1 })
    }
    const [mostFrequent] = [...found.values()].sort((a, b) => b.times - a.times)
    for (const [name, content] of mostFrequent?.code ?? []) await writeFile(join(bundle, name), content)
  } finally {
    device.close()
    await rm(folder, { recursive: true })
  }
}

/** The signal at which the sidecar of the second run saves its compiled code and ends. */
const SAVE = 'SIGUSR2'

/** The content of the `.cache` files, by name. */
type CompiledCode = ReadonlyMap<string, Buffer>

async function readFolder(folder: string): Promise<CompiledCode> {
  const names = (await readdir(folder)).sort()
  return new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name))] as const)),
  )
}

function digestOf(code: CompiledCode): string {
  return hash('sha256', Buffer.concat([...code].flatMap(([name, content]) => [Buffer.from(name), content])))
}

/**
 * The seed of V8's hash tables, and a heap so large that no garbage is collected. A collection marks functions with their age, and the
 * optimizer with when it looked at them, and both are part of the code. V8 takes code only with the flags of its making, so these are taken back before it is saved.
 */
const DETERMINISTIC = [
  '--random-seed=1',
  '--min-semi-space-size=256',
  '--max-semi-space-size=256',
  '--initial-old-space-size=2048',
  '--no-profile-guided-optimization',
]

/** The longest time of a timer (ms): 24 days. */
const NEVER = 2 ** 31 - 1

/** Runs in the sidecar, beside `entry.mjs`, which fills the map. */
function saving(folder: string): string {
  return `
    import { hash } from 'node:crypto'
    import { writeFileSync } from 'node:fs'
    import { setFlagsFromString } from 'node:v8'
    // On a slow machine more timers would fire, and their code would be compiled.
    for (const name of ['setTimeout', 'setInterval']) {
      const set = globalThis[name]
      globalThis[name] = (callback, time, ...args) => set(callback, time > 50 ? ${NEVER} : time, ...args)
    }
    const scripts = globalThis[Symbol.for('postern.scripts')] = new Map()
    process.on('${SAVE}', () => {
      for (const flag of ['min-semi-space-size', 'max-semi-space-size', 'initial-old-space-size']) setFlagsFromString('--' + flag + '=0')
      setFlagsFromString('--profile-guided-optimization')
      for (const [name, { script, text }] of scripts) {
        const data = script.createCachedData()
        const digests = [text, data].map((each) => hash('sha256', each, 'buffer'))
        writeFileSync(${JSON.stringify(folder)} + '/' + name + '.cache', Buffer.concat([...digests, data]))
      }
      process.exit(0)
    })
  `
}

interface TestRequest {
  readonly method?: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly form?: string
}

const PASSWORD_GRANT: TestRequest = {
  method: 'POST',
  path: '/oauth/token',
  headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
  form: 'grant_type=password&password=none',
}

/** Several grants: with one, the random order of its tokens would decide which functions run. */
const GRANTS = 16

/** Starts the sidecar of the bundle, sends it requests, and ends it. Returns the bodies of the responses, which must be 200s. */
async function runOnce(
  bundle: string,
  config: string,
  hooks: readonly string[],
  end: NodeJS.Signals,
  requests: readonly TestRequest[],
): Promise<readonly string[]> {
  const args = [...hooks, join(bundle, 'postern.mjs'), 'serve', '--config', config]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], env: {} })
  const exited = once(child, 'exit')
  try {
    const url = await publicUrl(child)
    const responses: string[] = []
    for (const each of requests) responses.push(await send(url, each))
    child.kill(end)
    const [code] = await exited
    if (code !== 0) throw new Error(`the sidecar of the bundle ended with ${code}`)
    return responses
  } finally {
    child.kill()
  }
}

/** The address of the public listener, from the log. Reads the log to its end: the sidecar would wait for a full pipe. */
function publicUrl({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error('the log of the sidecar is not connected')
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  createInterface(stdout)
    .on('line', (line) => {
      const { public: url } = JSON.parse(line) as { public?: string }
      if (url !== undefined) resolve(url)
    })
    .on('close', () => reject(new Error('the sidecar of the bundle does not listen')))
  return promise
}

/** Resolves when the connection is closed. */
async function send(url: string, { method = 'GET', path, headers, form }: TestRequest): Promise<string> {
  const outgoing = request(`${url}${path}`, { method, headers, rejectUnauthorized: false, agent: false })
  const closed = once(outgoing, 'close')
  outgoing.end(form)
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  const body = await text(response)
  if (response.statusCode !== 200)
    throw new Error(`the sidecar of the bundle responds ${response.statusCode}: ${body}`)
  await closed
  return body
}
