import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { PROCESSORS, type Processor } from './executable.ts'
import { runTool } from './signature.ts'
import { digestOf } from './sums.ts'

/** What the archives of the Node.js project say about the runtimes. */
export interface NodeOrigin {
  /** The SHA-256 of `bin/node` in the archive for each processor, in hexadecimal. */
  readonly digests: ReadonlyMap<Processor, string>
  /** Whether gpg found the signature of the list good. */
  readonly signed: boolean
}

/**
 * Verifies archives of Node.js `version`, `node-v*-linux-*.tar.xz`, against the list of the Node.js project, and reads the digest of the program in
 * each. If the list is `SHASUMS256.txt.asc`, gpg must find its signature good, with a key that it has. Throws an error that names
 * the archive.
 */
export async function readNodeOrigin(
  archives: readonly string[],
  list: string,
  version: string,
): Promise<NodeOrigin> {
  const text = await readFile(list, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`cannot read the list ${list}: ${error.code}`)
  })
  const signed = text.includes('-----BEGIN PGP')
  const listed = signed ? await signedText(list) : text
  const digests = new Map<Processor, string>()
  for (const archive of archives) {
    const folder = basename(archive).replace(/\.tar\.\w+$/, '')
    const processor = PROCESSORS.find((each) => folder === `node-v${version}-linux-${each}`)
    if (processor === undefined)
      throw new Error(
        `${archive}: take node-v${version}-linux-x64.tar.xz or node-v${version}-linux-arm64.tar.xz`,
      )
    const line = `${await digestOf(archive)}  ${basename(archive)}`
    if (!listed.split(/\r?\n/).includes(line))
      throw new Error(`${archive} is not the file that ${list} names`)
    digests.set(processor, await programDigest(archive, `${folder}/bin/node`))
  }
  return { digests, signed }
}

/** What the signature covers, and nothing before or behind it. */
async function signedText(list: string): Promise<string> {
  return runTool('gpg', ['--batch', '--decrypt', '--', list]).catch((error: Error) => {
    if (error.message.includes('missing')) throw error
    throw new Error(`gpg finds no good signature of ${list}: import the keys of Node's releases first`)
  })
}

async function programDigest(archive: string, program: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-node-'))
  try {
    await runTool('tar', ['-xf', archive, '-C', folder, program])
    return await digestOf(join(folder, program))
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** What a release says about the Node.js in its executables. */
export function originText(origin: NodeOrigin | undefined): string {
  const missing = PROCESSORS.filter((processor) => !origin?.digests.has(processor))
  if (origin === undefined || missing.length === PROCESSORS.length)
    return "from npm, not compared with Node's own"
  const list = origin.signed ? 'its signed list' : 'its list, whose signature was not checked'
  const rest = missing.length === 0 ? '' : `; ${missing.join(', ')} not compared`
  return `from npm, the same as Node's own by ${list}${rest}`
}
