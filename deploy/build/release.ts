import '../../src/node-version.cjs'
import { execFile } from 'node:child_process'
import { createReadStream, createWriteStream } from 'node:fs'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createGzip } from 'node:zlib'
import { VERSION } from '../../src/version.ts'
import { checkRepositoryTools, makeRepository } from './apt-repository.ts'
import { makeDebianPackage } from './debian.ts'
import { makeExecutable, PROCESSORS } from './executable.ts'
import { imageFile } from './image-file.ts'
import { CHANGED, writePapers } from './papers.ts'
import { HELP, type ReleaseOptions, releaseOptions } from './release-options.ts'
import { checkRuntime } from './runtimes.ts'
import { makeSbom } from './sbom.ts'
import { checkKey } from './signature.ts'
import { readSource } from './source.ts'
import { readVendor } from './vendor.ts'

// `npm run release [FOLDER]` makes in dist/, or the folder, what is published. The same commit gives the same programs on every Linux
// machine with the same binutils, under every signature.

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

async function compress(file: string): Promise<void> {
  await pipeline(createReadStream(file), createGzip({ level: 9 }), createWriteStream(`${file}.gz`))
}

async function release(options: ReleaseOptions): Promise<void> {
  const { folder, sign, apt, gpg } = options
  // Before the minutes that the build takes: what keeps the release from being finished.
  await checkRuntime()
  const source = await readSource()
  const vendor = options.vendor === undefined ? undefined : await readVendor(options.vendor)
  if (sign !== undefined) await checkKey(sign)
  if (sign !== undefined && source.changed) throw new Error(CHANGED)
  if (gpg !== undefined) await checkRepositoryTools(gpg)
  const { time } = source
  const sbom = await makeSbom({ time, vendor })

  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  say(`Postern ${VERSION}`)
  await cp(join(ROOT, 'CHANGELOG.md'), join(folder, 'CHANGELOG.md'))
  for (const processor of PROCESSORS) {
    const executable = join(folder, `postern-linux-${processor}`)
    say(executable)
    const { licences, missing } = await makeExecutable(processor, executable)
    await writeFile(join(folder, 'LICENSES.txt'), licences)
    if (missing !== undefined) say(`it keeps its symbols, 34 MB: ${missing} is not installed`)
    await compress(executable)
    say(await makeDebianPackage({ executable, processor, version: VERSION, licences, time, folder, vendor }))
  }
  say('the npm package')
  await promisify(execFile)('npm', ['pack', '--silent', `--pack-destination=${folder}`], { cwd: ROOT })
  await writeFile(join(folder, 'postern.cdx.json'), sbom)
  await writeFile(join(folder, 'Dockerfile'), await imageFile({ source, vendor }))
  const verdict = await writePapers(folder, { version: VERSION, source, vendor, key: sign })
  say(await readFile(join(folder, 'SHA256SUMS'), 'utf8'))
  if (apt !== undefined && gpg !== undefined) {
    say(`the repository for apt, ${apt}:`)
    say((await makeRepository({ folder: apt, release: folder, key: gpg, vendor })).join('\n'))
    say(`Publish its key at another place: gpg --export ${gpg} > postern.gpg`)
  }
  say(verdict)
}

try {
  const options = releaseOptions(process.argv.slice(2), join(ROOT, 'dist'), process.env.INIT_CWD ?? ROOT)
  if (options === undefined) say(HELP)
  else await release(options)
} catch (error) {
  process.stderr.write(`release: ${(error as Error).message}\n`)
  process.exitCode = 1
}
