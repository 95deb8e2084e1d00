import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type OutputChunk, type Plugin, rolldown } from 'rolldown'
import { VERSION } from '../src/version.ts'
import { slimPackages } from './slim-packages.ts'

// `node deploy/bundle.ts [FOLDER]` makes what the unit and the image run: the program and all that it needs in a few
// files (`dist/postern.mjs` and what it loads), so that neither npm nor node_modules are there where it runs.

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const OUT = resolve(process.argv[2] ?? join(ROOT, 'dist'))

/** Where the source looks beside itself, for the worker and for the version, the bundle has files of other names. */
const ownFiles: Plugin = {
  name: 'own files',
  transform(code, id) {
    if (id.endsWith('/src/version.ts')) return `export const VERSION = ${JSON.stringify(VERSION)}`
    if (!id.endsWith('/src/password/crypt-workers.ts')) return null
    const bundled = code.replace('./crypt-worker.ts', './crypt-worker.cjs')
    if (bundled === code)
      throw new Error('crypt-workers.ts names its worker otherwise than the bundle expects')
    return bundled
  },
  // What starts a file for a shell is no JavaScript inside a function.
  renderChunk: (code) => code.replace(/^#!.*\n/, ''),
  // A text of ASCII alone takes V8 half the space, and no time to decode.
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type === 'chunk') file.code = file.code.replace(/[^\0-\x7f]/g, escaped)
    }
  },
}

/** In a string, a template or a regular expression, where alone other characters than ASCII stand. */
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

/** Runs in a sidecar of the bundle: waits until it has answered once, stops it, and keeps what V8 compiled for that. */
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

/** Starts the sidecar once, in front of nothing, so that V8 compiles what a start needs. */
async function precompile(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-bundle-'))
  try {
    await writeFile(join(folder, 'password'), 'none\n', { mode: 0o600 })
    const settings = {
      'upstream.url': 'http://127.0.0.1:9',
      'password.file': join(folder, 'password'),
      'listen.address': '127.0.0.1:0',
      'listen.tls': 'off',
      'admin.address': '127.0.0.1:0',
      state_dir: join(folder, 'state'),
    }
    const sets = Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`])
    const hook = `data:text/javascript,${encodeURIComponent(COMPILE)}`
    const child = spawn(process.execPath, ['--import', hook, join(OUT, 'postern.mjs'), 'serve', ...sets], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {},
    })
    const exited = once(child, 'exit')
    try {
      for await (const line of createInterface(child.stdout)) {
        const { public: url } = JSON.parse(line) as { public?: string }
        if (url === undefined) continue
        await (await fetch(url)).text()
        child.kill()
      }
    } finally {
      child.kill()
    }
    const [code] = await exited
    if (code !== 0) throw new Error(`the sidecar of the bundle ended with ${code}`)
  } finally {
    await rm(folder, { recursive: true })
  }
}

await rm(OUT, { recursive: true, force: true })
// CommonJS, because `import`ing a module of Node's touches every export of it: that of `node:http` loads the whole of
// `fetch`, 20 ms and some megabytes that nobody here uses.
const bundle = await rolldown({
  cwd: ROOT,
  input: { main: 'src/main.ts', 'crypt-worker': 'src/password/crypt-worker.ts' },
  platform: 'node',
  plugins: [ownFiles, slimPackages],
})
const { output } = await bundle.write({
  dir: OUT,
  format: 'cjs',
  entryFileNames: '[name].cjs',
  chunkFileNames: '[name].cjs',
  comments: false,
  minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
})
await bundle.close()
await copyFile(join(ROOT, 'deploy/entry.mjs'), join(OUT, 'postern.mjs'))
await writeFile(
  join(OUT, 'LICENSES.txt'),
  await licences(output.filter((file): file is OutputChunk => file.type === 'chunk')),
)
await precompile()
