import '../../src/node-version.cjs'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createGzip } from 'node:zlib'
import { VERSION } from '../../src/version.ts'
import { makeBundle } from './bundle.ts'
import { makeDebianPackage, timeOfSource } from './debian.ts'
import { makeExecutable, PROCESSORS } from './executable.ts'
import { checkRuntime, makeSbom } from './sbom.ts'

// `npm run release [FOLDER]` makes in dist/, or the folder, what is published. The same commit gives the same bytes on every Linux machine with the same kind
// of processor. (The other kind's executable starts without compiled code, which only that processor can make.)

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const DIST = resolve(process.argv[2] ?? join(ROOT, 'dist'))
const BUNDLE = join(DIST, 'bundle')

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

async function compress(file: string): Promise<void> {
  await pipeline(createReadStream(file), createGzip({ level: 9 }), createWriteStream(`${file}.gz`))
}

/** The lines that `sha256sum --check` reads. */
async function sums(): Promise<string> {
  const files = (await readdir(DIST, { withFileTypes: true })).filter((entry) => entry.isFile())
  const lines = files.map(async ({ name }) => {
    const hash = createHash('sha256')
    await pipeline(createReadStream(join(DIST, name)), hash)
    return `${hash.digest('hex')}  ${name}\n`
  })
  return (await Promise.all(lines)).sort((a, b) => (a.slice(66) < b.slice(66) ? -1 : 1)).join('')
}

await checkRuntime()
await rm(DIST, { recursive: true, force: true })
await mkdir(DIST, { recursive: true })
say(`Postern ${VERSION}: the bundle`)
await makeBundle(BUNDLE)
await cp(join(BUNDLE, 'LICENSES.txt'), join(DIST, 'LICENSES.txt'))
const licences = await readFile(join(DIST, 'LICENSES.txt'), 'utf8')
const time = await timeOfSource()
for (const processor of PROCESSORS) {
  const file = join(DIST, `postern-linux-${processor}`)
  say(file)
  await makeExecutable(BUNDLE, processor, file)
  await compress(file)
  say(
    await makeDebianPackage({ executable: file, processor, version: VERSION, licences, time, folder: DIST }),
  )
}
say('the npm package')
await promisify(execFile)('npm', ['pack', '--silent', `--pack-destination=${DIST}`], { cwd: ROOT })
await writeFile(join(DIST, 'postern.cdx.json'), await makeSbom())
const listed = await sums()
await writeFile(join(DIST, 'SHA256SUMS'), listed)
say(listed)
