import '../../src/node-version.cjs'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import type { OutputChunk, Plugin, rolldown as Rolldown } from 'rolldown'
import { loadPageFiles } from '../../src/admin/page-files.ts'
import { VERSION } from '../../src/version.ts'
import { addCompiledCode } from './compiled-code.ts'
import { slimPackages } from './slim-packages.ts'

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
  // `#!` is a syntax error inside a function.
  renderChunk: (code) => code.replace(/^#!.*\n/, ''),
  // V8 keeps a text of ASCII in half the memory and need not decode it.
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type === 'chunk') file.code = file.code.replace(/[^\0-\x7f]/g, escaped)
    }
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

/** Makes each file the text of a function, which `entry.mjs` calls. Wrapping it at every start would copy the text. */
const wrapped: Plugin = {
  name: 'wrapped',
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type !== 'chunk') continue
      file.code = `(function (exports, require, module, __filename) {${file.code}\n})`
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

/**
 * Loads rolldown. Without a word, npm leaves out its native part when npm itself runs on an older Node.js, such as that of Debian 12.
 * rolldown's own error then advises to remove the lock file.
 */
async function loadRolldown(): Promise<typeof Rolldown> {
  try {
    return (await import('rolldown')).rolldown
  } catch (cause) {
    const advice = 'run "npm ci" again, with an npm that runs on Node.js 20.19 or later ("node --version")'
    throw new Error(`rolldown is not whole: ${advice}`, { cause })
  }
}

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
 * Writes the program and its packages as a few files into a folder: `postern.mjs`, which Node starts, and what it loads. The machine
 * that runs them needs neither npm nor node_modules. Removes what was in the folder.
 */
export async function makeBundle(folder: string): Promise<void> {
  const rolldown = await loadRolldown()
  await rm(folder, { recursive: true, force: true })
  const crypt = await worker(rolldown)
  const bundle = await rolldown({
    cwd: ROOT,
    input: { main: 'src/main.ts' },
    platform: 'node',
    plugins: [ownFiles(crypt.url), slimPackages, wrapped],
  })
  // CommonJS, because `import` of a Node module reads each of its exports. For `node:http` that loads `fetch`, which takes 20 ms
  // and some megabytes, and Postern does not use it.
  const { output } = await bundle.write({
    dir: folder,
    format: 'cjs',
    entryFileNames: '[name].cjs',
    chunkFileNames: '[name].cjs',
    comments: false,
    minify: MINIFY,
  })
  await bundle.close()
  const chunks = output.filter((file): file is OutputChunk => file.type === 'chunk')
  const entry = ['src/node-version.cjs', 'deploy/build/entry.mjs'].map((file) =>
    readFile(join(ROOT, file), 'utf8'),
  )
  await writeFile(join(folder, 'postern.mjs'), (await Promise.all(entry)).join('\n'))
  await writeFile(join(folder, 'LICENSES.txt'), await licences([...chunks, ...crypt.chunks]))
  await addCompiledCode(folder)
}

if (import.meta.main) await makeBundle(resolve(process.argv[2] ?? join(ROOT, 'dist', 'bundle')))
