import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { makeProvenance } from './provenance.ts'
import { NAMESPACE, sign } from './signature.ts'
import type { Source } from './source.ts'
import { sumLines, sumsIn } from './sums.ts'
import { type Vendor, vendorText } from './vendor.ts'

export interface Papers {
  readonly version: string
  readonly source: Source
  readonly vendor?: Vendor | undefined
  /** The key of `--sign`. Without one the release is unsigned. */
  readonly key?: string | undefined
}

/**
 * Writes what is said about a release beside its programs, into their folder: `VERSION`, `VENDOR`, the provenance of all files so far,
 * `SHA256SUMS` of all of them, the provenance too, and with a key `SHA256SUMS.sig`. So one signature covers everything. Resolves to
 * what the vendor must know: how users verify the release, or that they cannot.
 */
export async function writePapers(folder: string, { version, source, vendor, key }: Papers): Promise<string> {
  const { commit, changed, time } = source
  if (changed && key !== undefined) throw new Error(CHANGED)
  const date = new Date(time * 1000).toISOString().replace('.000', '')
  const from = changed ? `${commit} with changed files` : commit
  await writeFile(
    join(folder, 'VERSION'),
    `version: ${version}\ncommit: ${from}\ndate: ${date}\nnode: ${process.versions.node}\n`,
  )
  await writeFile(join(folder, 'VENDOR'), vendorText(vendor))
  const parameters = { version, vendor, signed: key !== undefined }
  const provenance = await makeProvenance(sumsIn(await sumLines(folder)), source, parameters)
  await writeFile(join(folder, 'postern.intoto.json'), provenance)
  const list = join(folder, 'SHA256SUMS')
  await writeFile(list, await sumLines(folder))
  return key === undefined ? UNSIGNED : signersLine(await sign(list, key), vendor)
}

/** Why a release is not signed: the signature would vouch for a commit that has other files. */
export const CHANGED = 'the checkout has changed files: commit them, or make the release without --sign'

const UNSIGNED = `
*** THIS RELEASE IS UNSIGNED. ***
Whoever changes a file can change SHA256SUMS with it, so nobody can tell that these files are yours.
Sign it: npm run release -- --sign KEY (docs/releasing.md).
`

function signersLine(publicKey: string, vendor: Vendor | undefined): string {
  const identity = /<(.*)>/.exec(vendor?.maintainer ?? '')?.[1] ?? 'vendor'
  return `
SHA256SUMS is signed. Publish this line as the file "signers", at another place than the release:
${identity} namespaces="${NAMESPACE}" ${publicKey}
Then users verify with
ssh-keygen -Y verify -f signers -I ${identity} -n ${NAMESPACE} -s SHA256SUMS.sig < SHA256SUMS
`
}
