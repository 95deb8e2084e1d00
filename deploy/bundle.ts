import { existsSync } from 'node:fs'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { type OutputChunk, type Plugin, rolldown } from 'rolldown'

// `node deploy/bundle.ts [FOLDER]` makes what the unit and the image run: the program and all that it needs in a few
// files (`dist/postern.mjs` and what it loads), so that neither npm nor node_modules are there where it runs.

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const OUT = resolve(process.argv[2] ?? join(ROOT, 'dist'))

/**
 * CommonJS, because `import`ing a module of Node's touches every export of it: that of `node:http` loads the whole of
 * `fetch`, 20 ms and some megabytes that nobody here uses.
 */
const ENTRY = `process.getBuiltinModule('node:module').createRequire(import.meta.url)('./main.cjs')
`

/** Names the files of the bundle where the source names its own. */
const workerFile: Plugin = {
  name: 'the file of the worker',
  transform(code, id) {
    if (!id.endsWith('/src/password/crypt-workers.ts')) return null
    const bundled = code.replace('./crypt-worker.ts', './crypt-worker.cjs')
    if (bundled === code)
      throw new Error('crypt-workers.ts names its worker otherwise than the bundle expects')
    return bundled
  },
}

/** Of undici we use `Client` alone; its index would bring fetch, WebSocket, caches and mocks as well. */
const undiciClient: Plugin = {
  name: 'the client of undici',
  resolveId: (name) => (name === 'undici' ? '\0undici' : null),
  load: (id) =>
    id === '\0undici' ? `export { default as Client } from 'undici/lib/dispatcher/client.js'` : null,
}

/** `commander` loads it for subcommands that are programs of their own, which ours are not. */
const CHILD_PROCESS = 'node:child_process'

const childProcess: Plugin = {
  name: 'child processes on demand',
  resolveId: (name) => (name === CHILD_PROCESS ? '\0child_process' : null),
  load: (id) =>
    id === '\0child_process'
      ? `module.exports = new Proxy({}, { get: (_, name) => process.getBuiltinModule('${CHILD_PROCESS}')[name] })`
      : null,
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

if (existsSync(OUT)) await rm(OUT, { recursive: true })
const bundle = await rolldown({
  cwd: ROOT,
  input: { main: 'src/main.ts', 'crypt-worker': 'src/password/crypt-worker.ts' },
  platform: 'node',
  plugins: [workerFile, undiciClient, childProcess],
})
const { output } = await bundle.write({
  dir: OUT,
  format: 'cjs',
  entryFileNames: '[name].cjs',
  chunkFileNames: '[name].cjs',
  comments: false,
})
await bundle.close()
await writeFile(join(OUT, 'postern.mjs'), ENTRY)
await writeFile(
  join(OUT, 'LICENSES.txt'),
  await licences(output.filter((file): file is OutputChunk => file.type === 'chunk')),
)
