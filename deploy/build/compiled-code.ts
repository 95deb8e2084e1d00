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

/**
 * Adds to a bundle the code that V8 compiles between a start and the first response of the device, as a `.cache` file for each
 * file that ran. It starts the sidecar once for the certificate and tokens, which every later start finds, and then as often as
 * `runs` says, for the code. The same bundle and the same Node give the same code: the seed of V8's hash tables is fixed, and the
 * code is taken when the request is over and nothing is left to run. Something rare may still happen in a run, such as a new
 * network interface; so with several runs, the code that most of them give counts.
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
      await runOnce(bundle, config, ['--random-seed=1', '--import', hook], SAVE, [
        { path: '/', headers: { Authorization: `Bearer ${token}` } },
      ])
      const code = await readFolder(output)
      const key = digestOf(code)
      found.set(key, { code, times: (found.get(key)?.times ?? 0) + 1 })
    }
    const [usual] = [...found.values()].sort((a, b) => b.times - a.times)
    for (const [name, content] of usual?.code ?? []) await writeFile(join(bundle, name), content)
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

/** Runs in the sidecar, beside `entry.mjs`, which fills the map. */
function saving(folder: string): string {
  return `
    import { hash } from 'node:crypto'
    import { writeFileSync } from 'node:fs'
    const scripts = globalThis[Symbol.for('postern.scripts')] = new Map()
    process.on('${SAVE}', () => {
      for (const [name, { script, text }] of scripts) {
        const data = script.createCachedData()
        const digests = [text, data].map((each) => hash('sha256', each, 'buffer'))
        writeFileSync(${JSON.stringify(folder)} + '/' + name + '.cache', Buffer.concat([...digests, data]))
      }
      process.exit(0)
    })
  `
}

interface Question {
  readonly method?: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly form?: string
}

const PASSWORD_GRANT: Question = {
  method: 'POST',
  path: '/oauth/token',
  headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
  form: 'grant_type=password&password=none',
}

/** With one grant, the order in which its random tokens are restored would decide which functions run. */
const GRANTS = 16

/** Starts the sidecar of the bundle, sends it requests, and ends it. Returns the bodies of the responses, which must be 200s. */
async function runOnce(
  bundle: string,
  config: string,
  hooks: readonly string[],
  end: NodeJS.Signals,
  questions: readonly Question[],
): Promise<readonly string[]> {
  const args = [...hooks, join(bundle, 'postern.mjs'), 'serve', '--config', config]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], env: {} })
  const exited = once(child, 'exit')
  try {
    const url = await publicUrl(child)
    const responses: string[] = []
    for (const question of questions) responses.push(await send(url, question))
    child.kill(end)
    const [code] = await exited
    if (code !== 0) throw new Error(`the sidecar of the bundle ended with ${code}`)
    return responses
  } finally {
    child.kill()
  }
}

/** Reads the log until it names the address of the public listener, and discards the rest. */
async function publicUrl({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error('the log of the sidecar is not connected')
  for await (const line of createInterface(stdout)) {
    const { public: url } = JSON.parse(line) as { public?: string }
    if (url === undefined) continue
    stdout.resume()
    return url
  }
  throw new Error('the sidecar of the bundle does not listen')
}

/** Resolves when the connection is closed. */
async function send(url: string, { method = 'GET', path, headers, form }: Question): Promise<string> {
  const asking = request(`${url}${path}`, { method, headers, rejectUnauthorized: false, agent: false })
  const closed = once(asking, 'close')
  asking.end(form)
  const [response] = (await once(asking, 'response')) as [IncomingMessage]
  const body = await text(response)
  if (response.statusCode !== 200)
    throw new Error(`the sidecar of the bundle responds ${response.statusCode}: ${body}`)
  await closed
  return body
}
