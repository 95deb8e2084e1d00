import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { runTool } from './run-tool.ts'
import type { Source } from './source.ts'
import { type Sum, sumsIn } from './sums.ts'
import type { Vendor } from './vendor.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const RUNTIMES_LOCK = 'deploy/build/runtimes/package-lock.json'
const LOCKS = ['package-lock.json', RUNTIMES_LOCK]

/** What the options of a release say about its bytes and its papers. Neither keys nor paths of the machine that made it. */
export interface Parameters {
  readonly version: string
  readonly vendor?: Vendor | undefined
  readonly signed: boolean
}

/**
 * An in-toto statement with SLSA's predicate `provenance/v1` about the files of a release: commit, lock files, runtimes, builder,
 * parameters, and the digest of each file. It has no time and no random number: the same commit, vendor and tools give the same text.
 */
export async function makeProvenance(
  sums: readonly Sum[],
  source: Source,
  { version, vendor, signed }: Parameters,
): Promise<string> {
  const statement = {
    _type: 'https://in-toto.io/Statement/v1',
    subject: sums.map(described),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:postern:npm-run-release:1',
        externalParameters: {
          command: 'npm run release',
          version,
          signed,
          vendor: vendor ?? null,
          sourceDateEpoch: process.env.SOURCE_DATE_EPOCH ?? null,
        },
        resolvedDependencies: [
          { name: 'source', digest: { gitCommit: source.commit }, annotations: { changed: source.changed } },
          ...sumsIn(await runTool('sha256sum', LOCKS, ROOT)).map(described),
          ...(await runtimes()),
        ],
      },
      runDetails: {
        // Who vouches for the build: SLSA asks for an address, also of a release without a vendor.
        builder: {
          id: vendor?.download ?? 'urn:postern:checkout:whoever-ran-it',
          version: { node: process.versions.node, platform: `${process.platform}-${process.arch}` },
        },
      },
    },
  }
  return `${JSON.stringify(statement, null, 2)}\n`
}

/** A file as in-toto describes one. */
function described({ name, sha256 }: Sum): object {
  return { name, digest: { sha256 } }
}

/** The npm packages with the Node.js of the executables, as the lock file pins them. */
async function runtimes(): Promise<readonly object[]> {
  const lock = JSON.parse(await readFile(join(ROOT, RUNTIMES_LOCK), 'utf8'))
  return Object.entries<{ version: string; integrity: string }>(lock.packages)
    .filter(([path]) => path !== '')
    .map(([path, { version, integrity }]) => {
      const name = path.replace('node_modules/', '')
      const [algorithm = '', digest = ''] = integrity.split(/-(.*)/)
      const hex = Buffer.from(digest, 'base64').toString('hex')
      return { name, uri: `pkg:npm/${name}@${version}`, digest: { [algorithm]: hex } }
    })
}
