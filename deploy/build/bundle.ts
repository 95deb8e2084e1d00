import '../../src/node-version.cjs'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import type { OutputChunk, Plugin, rolldown as Rolldown } from 'rolldown'
import { loadPageFiles } from '../../src/admin/page-files.ts'
import { VERSION } from '../../src/version.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Where the source names the file of the worker. */
const WORKER = /new URL\(`\.\/crypt-worker.*, import\.meta\.url\)/

/** The source finds the worker, package.json and the live page by their paths. The bundle contains them as text. */
const ownFiles = (worker: string): Plugin => ({
  name: 'own files',
  transform(code, id) {
    if (id.endsWith('/src/version.ts')) return `export const VERSION = ${JSON.stringify(VERSION)}`
    if (id.endsWith('/src/admin/page-files.ts')) return pageFiles()
    if (id.endsWith('/src/node-version.cjs')) return '' // it is the start of postern.mjs
    if (!id.endsWith('/src/password/crypt-workers.ts')) return null
    if (!WORKER.test(code)) throw new Error(`crypt-workers.ts does not contain ${WORKER}`)
    return code.replace(WORKER, () => `new URL(${JSON.stringify(worker)})`)
  },
})

/** `src/admin/page-files.ts` with the contents of the files in place of their paths. */
function pageFiles(): string {
  const files = [...loadPageFiles()].map(([name, { type, body, etag }]) => [
    name,
    type,
    body.toString(),
    etag,
  ])
  return `const files = ${JSON.stringify(files)}
export const loadPageFiles = () =>
  new Map(files.map(([name, type, text, etag]) => [name, { type, body: Buffer.from(text), etag }]))`
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

/**
 * Loads rolldown. An npm that runs on an older Node.js, such as that of Debian 12, silently skips its native part. The error of rolldown
 * then advises to remove the lock file, which pins our dependencies: ours says what helps.
 */
async function loadRolldown(): Promise<typeof Rolldown> {
  try {
    return (await import('rolldown')).rolldown
  } catch (cause) {
    const advice = 'run "npm ci" again, with an npm that runs on Node.js 20.19 or later ("node --version")'
    throw new Error(`rolldown cannot be loaded: ${advice}`, { cause })
  }
}

/** The file from which the others are loaded. */
const MAIN = 'main.cjs'

const MINIFY = { compress: true, mangle: { keepNames: true }, codegen: { removeWhitespace: true } }

/** The worker as a `data:` URL, because the executable has no files. */
async function worker(
  rolldown: typeof Rolldown,
): Promise<{ readonly url: string; readonly chunks: readonly OutputChunk[] }> {
  const bundle = await rolldown({ cwd: ROOT, input: 'src/password/crypt-worker.ts', platform: 'node' })
  const { output } = await bundle.generate({ format: 'esm', comments: false, minify: MINIFY })
  await bundle.close()
  const code = Buffer.from(output[0].code).toString('base64')
  return { url: `data:text/javascript;base64,${code}`, chunks: [output[0]] }
}

/**
 * Bundles the program and its packages into a folder, as `main.cjs` and the files that it loads when they are needed. Resolves to the
 * licences of the packages. The format is CommonJS, because `import` of a Node module reads each of its exports: for `node:http` that
 * loads `fetch`, which takes some megabytes, and Postern does not use it. The executable could not load an `import()` either.
 */
export async function makeProgram(folder: string): Promise<string> {
  const rolldown = await loadRolldown()
  const crypt = await worker(rolldown)
  const program = await rolldown({
    cwd: ROOT,
    input: { main: 'src/main.ts' },
    platform: 'node',
    // `debug` takes it if it is there, and it is there only for development.
    external: ['supports-color'],
    plugins: [ownFiles(crypt.url)],
  })
  const { output } = await program.write({
    dir: folder,
    format: 'cjs',
    dynamicImportInCjs: false,
    entryFileNames: MAIN,
    chunkFileNames: '[name].cjs',
    comments: false,
    minify: MINIFY,
  })
  await program.close()
  const chunks = output.filter((file): file is OutputChunk => file.type === 'chunk')
  return licences([...chunks, ...crypt.chunks])
}

/**
 * Writes the program and its packages as a few files into a folder: `postern.mjs`, which Node starts, and what it loads. The machine
 * that runs them needs neither npm nor node_modules. Removes what was in the folder.
 */
export async function makeBundle(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true })
  const texts = await makeProgram(folder)
  const check = await readFile(join(ROOT, 'src', 'node-version.cjs'), 'utf8')
  await writeFile(join(folder, 'postern.mjs'), `${check}import('./${MAIN}')\n`)
  await writeFile(join(folder, 'LICENSES.txt'), texts)
}

if (import.meta.main) await makeBundle(resolve(process.argv[2] ?? join(ROOT, 'dist', 'bundle')))
