import { cp, mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { runTool } from './run-tool.ts'
import type { Vendor } from './vendor.ts'

/** Debian's names of the processors that have a package. */
const ARCHITECTURES = ['amd64', 'arm64'] as const

export interface Repository {
  /** A new folder, or a repository that the packages are added to. */
  readonly folder: string
  /** The folder with the Debian packages of the release. */
  readonly release: string
  /** The key of `--gpg`, as gpg finds it: a fingerprint, a mail address. */
  readonly key: string
  readonly vendor?: Vendor | undefined
}

/** Throws unless `apt-ftparchive` and gpg are there, and gpg has the private key. */
export async function checkRepositoryTools(key: string): Promise<void> {
  await runTool('apt-ftparchive', ['--version', '-q'], undefined, { quiet: true })
  const args = ['--batch', '--list-secret-keys', '--', key]
  await runTool('gpg', args, undefined, { quiet: true }).catch((error: Error) => {
    if (error.message.includes('missing')) throw error
    throw new Error(`gpg has no private key ${key}: see gpg --list-secret-keys`)
  })
}

/**
 * Puts the packages of a release into a repository for apt, and signs its list: suite `stable`, component `main`. Packages of earlier
 * releases stay. Resolves to the names of the packages that apt is offered.
 */
export async function makeRepository({ folder, release, key, vendor }: Repository): Promise<string[]> {
  const [pool, suite] = ['pool/main', 'dists/stable']
  await mkdir(join(folder, pool), { recursive: true })
  const packages = (await readdir(release)).filter((name) => name.endsWith('.deb'))
  for (const name of packages) await cp(join(release, name), join(folder, pool, name))
  await rm(join(folder, suite), { recursive: true, force: true })
  for (const architecture of ARCHITECTURES) {
    const lists = `${suite}/main/binary-${architecture}`
    await mkdir(join(folder, lists), { recursive: true })
    const text = await runTool('apt-ftparchive', ['--arch', architecture, 'packages', pool], folder)
    await writeFile(join(folder, lists, 'Packages'), text)
    await writeFile(join(folder, lists, 'Packages.gz'), gzipSync(text, { level: 9 }))
  }
  const fields = {
    Origin: vendor?.name ?? 'Postern',
    Label: 'Postern',
    Suite: 'stable',
    Codename: 'stable',
    Components: 'main',
    Architectures: ARCHITECTURES.join(' '),
  }
  const settings = Object.entries(fields).flatMap(([name, value]) => [
    '-o',
    `APT::FTPArchive::Release::${name}=${value}`,
  ])
  const list = await runTool('apt-ftparchive', [...settings, 'release', suite], folder)
  await writeFile(join(folder, suite, 'Release'), list)
  const gpg = (...args: string[]) =>
    runTool('gpg', ['--batch', '--yes', '--local-user', key, ...args, 'Release'], join(folder, suite))
  await gpg('--output', 'InRelease', '--clearsign')
  await gpg('--output', 'Release.gpg', '--armor', '--detach-sign')
  return (await readdir(join(folder, pool))).sort()
}
