import '../src/node-version.cjs'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { type OutputChunk, type Plugin, rolldown } from 'rolldown'
import { VERSION } from '../src/version.ts'
import { slimPackages } from './slim-packages.ts'

// `npm run bundle [FOLDER]` makes what the unit and the image run: the program and its packages in a few files
// (`dist/postern.mjs` and the files that it loads). The machine that runs them needs neither npm nor node_modules.

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const OUT = resolve(process.argv[2] ?? join(ROOT, 'dist'))

/** The source finds the worker and package.json by their paths beside itself. The bundle has other paths. */
const ownFiles: Plugin = {
  name: 'own files',
  transform(code, id) {
    if (id.endsWith('/src/version.ts')) return `export const VERSION = ${JSON.stringify(VERSION)}`
    if (id.endsWith('/src/node-version.cjs')) return '' // it is the start of postern.mjs
    if (!id.endsWith('/src/password/crypt-workers.ts')) return null
    const bundled = code.replace('./crypt-worker.ts', './crypt-worker.cjs')
    if (bundled === code)
      throw new Error('crypt-workers.ts does not contain ./crypt-worker.ts, which the bundle replaces')
    return bundled
  },
  // `#!` is a syntax error inside a function.
  renderChunk: (code) => code.replace(/^#!.*\n/, ''),
  // V8 keeps a text of ASCII in half the memory and need not decode it.
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type === 'chunk') file.code = file.code.replace(/[^\0-\x7f]/g, escaped)
    }
  },
}

/** Makes each file the text of a function, which `entry.mjs` calls. Wrapping it at every start would copy the text. */
const wrapped: Plugin = {
  name: 'wrapped',
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type !== 'chunk') continue
      file.code = `(function (exports, require, module, __filename, __dirname) {${file.code}\n})`
    }
  },
}

/** An escape for strings, templates and regular expressions: only they hold characters beyond ASCII. */
function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}

async function licences(chunks: readonly OutputChunk[]): Promise<string> {
  const folders = new Set(
    chunks
      .flatMap(({ moduleIds }) => moduleIds)
      .map((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0])
      .filter((folder) => folder !== undefined),
  )
  const texts = await Promise.all(
    [...folders].sort().map(async (folder) => {
      const file = (await readdir(folder)).find((name) => /^licen[cs]e/i.test(name))
      const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
      const text = file === undefined ? '' : `\n${await readFile(join(folder, file), 'utf8')}`
      return `${name} ${version}: ${license}\n${text}`
    }),
  )
  return texts.join(`\n${'-'.repeat(80)}\n`)
}

/** Runs in a sidecar of the bundle. Writes the code that V8 compiled for each file. */
const COMPILE = `
  import { hash } from 'node:crypto'
  import { writeFileSync } from 'node:fs'
  const scripts = globalThis[Symbol.for('postern.scripts')] = new Map()
  process.on('exit', () => {
    for (const [file, { script, source }] of scripts) {
      const data = script.createCachedData()
      const digests = [source, data].map((each) => hash('sha256', each, 'buffer'))
      writeFileSync(file + '.cache', Buffer.concat([...digests, data]))
    }
  })
`

interface Question {
  readonly method?: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly form?: string
}

/** Starts the sidecar of the bundle, sends it one request, and stops it. Returns the body of the response, which must be a 200. */
async function runOnce(config: string, hooks: readonly string[], question: Question): Promise<string> {
  const args = [...hooks, join(OUT, 'postern.mjs'), 'serve', '--config', config]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], env: {} })
  const exited = once(child, 'exit')
  let answer: string | undefined
  try {
    for await (const line of createInterface(child.stdout)) {
      const { public: url } = JSON.parse(line) as { public?: string }
      if (url === undefined) continue
      answer = await send(url, question)
      child.kill()
    }
  } finally {
    child.kill()
  }
  const [code] = await exited
  if (code !== 0 || answer === undefined) throw new Error(`the sidecar of the bundle ended with ${code}`)
  return answer
}

async function send(url: string, { method = 'GET', path, headers, form }: Question): Promise<string> {
  const asking = request(`${url}${path}`, { method, headers, rejectUnauthorized: false, agent: false })
  asking.end(form)
  const [response] = (await once(asking, 'response')) as [IncomingMessage]
  const body = await text(response)
  if (response.statusCode !== 200)
    throw new Error(`the sidecar of the bundle responds ${response.statusCode}: ${body}`)
  return body
}

/**
 * Starts the sidecar twice, so that V8 compiles the functions that run between a start and the first response of the device.
 * The second run uses the certificate and the tokens of the first.
 */
async function precompile(): Promise<void> {
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
    const grant = await runOnce(config, [], {
      method: 'POST',
      path: '/oauth/token',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      form: 'grant_type=password&password=none',
    })
    const { access_token: token } = JSON.parse(grant) as { access_token: string }
    const hook = `data:text/javascript,${encodeURIComponent(COMPILE)}`
    await runOnce(config, ['--import', hook], { path: '/', headers: { Authorization: `Bearer ${token}` } })
  } finally {
    device.close()
    await rm(folder, { recursive: true })
  }
}

/** Bundles a program into OUT. */
async function write(
  name: string,
  file: string,
  plugins: readonly Plugin[],
): Promise<readonly OutputChunk[]> {
  const bundle = await rolldown({
    cwd: ROOT,
    input: { [name]: file },
    platform: 'node',
    plugins: [...plugins],
  })
  const { output } = await bundle.write({
    dir: OUT,
    format: 'cjs',
    entryFileNames: '[name].cjs',
    chunkFileNames: '[name].cjs',
    comments: false,
    minify: { compress: true, mangle: { keepNames: true }, codegen: { removeWhitespace: true } },
  })
  await bundle.close()
  return output.filter((file): file is OutputChunk => file.type === 'chunk')
}

await rm(OUT, { recursive: true, force: true })
// CommonJS, because `import` of a Node module reads each of its exports. For `node:http` that loads `fetch`, which takes 20 ms
// and some megabytes, and Postern does not use it.
const chunks = [
  ...(await write('main', 'src/main.ts', [ownFiles, slimPackages, wrapped])),
  ...(await write('crypt-worker', 'src/password/crypt-worker.ts', [ownFiles])),
]
const entry = ['src/node-version.cjs', 'deploy/entry.mjs'].map((file) => readFile(join(ROOT, file), 'utf8'))
await writeFile(join(OUT, 'postern.mjs'), (await Promise.all(entry)).join('\n'))
await writeFile(join(OUT, 'LICENSES.txt'), await licences(chunks))
await precompile()
