import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { contentOf, maintainerOf, type PackageFile } from './debian/content.ts'
import type { Processor } from './executable.ts'
import { wrapped } from './markdown.ts'
import { NOBODY, type Vendor } from './vendor.ts'

const run = promisify(execFile)
const CONTROL = new URL('../debian/control', import.meta.url)

/** Debian's names of the processors. */
const ARCHITECTURES: Readonly<Record<Processor, string>> = { x64: 'amd64', arm64: 'arm64' }

export interface DebianPackage {
  /** The path of the single executable of `processor`. */
  readonly executable: string
  readonly processor: Processor
  /** The version of Postern, as in package.json. */
  readonly version: string
  /** The licences of the npm packages in the executable. */
  readonly licences: string
  /** The time of every file in the package (s since 1970). */
  readonly time: number
  /** The folder for the result. */
  readonly folder: string
  /** The content of `/etc/postern/postern.yaml`. Default: `deploy/postern.yaml`. */
  readonly configuration?: string
  /** `xz`, the default, takes a minute and makes two thirds of the size. `gzip`, at its fastest, is for tests. */
  readonly compression?: 'xz' | 'gzip'
  /** Who answers for the package. */
  readonly vendor?: Vendor | undefined
}

/**
 * Makes the Debian package of an executable, and resolves to its path. The same input and the same version of dpkg give the same
 * bytes. Fails without `dpkg-deb`, which every Debian has, and which the package `dpkg` of other systems contains.
 */
export async function makeDebianPackage(options: DebianPackage): Promise<string> {
  const architecture = ARCHITECTURES[options.processor]
  // Debian sorts a tilde before the end: 1.0.0~rc.1 is older than 1.0.0.
  const version = options.version.replace('-', '~')
  const { vendor } = options
  const executable = await readFile(options.executable)
  const files = await contentOf({ ...options, version, executable })
  const control = (await readFile(CONTROL, 'utf8'))
    .replace('@VERSION@', version)
    .replace('@ARCHITECTURE@', architecture)
    .replace('@INSTALLED_SIZE@', String(installedSize(files)))
    .replace('@MAINTAINER@', () => maintainerOf(vendor))
    .replace('@HOMEPAGE@', () => (vendor === undefined ? '' : `Homepage: ${vendor.download}\n`))
    .replace('@CONTACT@', () => contact(vendor))
  const result = join(options.folder, `postern_${version}_${architecture}.deb`)
  const tree = await mkdtemp(join(tmpdir(), 'postern-debian-'))
  try {
    await writeFiles(tree, [...files, { path: 'DEBIAN/control', content: control }])
    const compression = options.compression === 'gzip' ? ['-Zgzip', '-z1'] : ['-Zxz']
    const flags = ['--root-owner-group', ...compression, '--build', tree, result]
    const env = { ...process.env, SOURCE_DATE_EPOCH: String(options.time) }
    await run('dpkg-deb', flags, { env }).catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'ENOENT' ? new Error('dpkg-deb is missing: install the package dpkg') : error
    })
  } finally {
    await rm(tree, { recursive: true })
  }
  return result
}

/** The last paragraph of the description, in the form of a control file: lines of at most 80 columns, for lintian. */
function contact(vendor: Vendor | undefined): string {
  const sentences =
    vendor === undefined
      ? [`This package was ${NOBODY}: report weaknesses there.`]
      : [
          `Made by ${vendor.name}. Security contact: ${vendor.security_contact}`,
          `Support: ${vendor.support_period}`,
        ]
  return sentences.flatMap((sentence) => wrapped(sentence, 79).map((line) => ` ${line}`)).join('\n')
}

/** In KiB, as Debian Policy 5.6.20 counts: each file takes whole ones. */
function installedSize(files: readonly PackageFile[]): number {
  return files.reduce((sum, { content }) => sum + Math.ceil(Buffer.byteLength(content) / 1024), 0)
}

/** Writes files with modes that do not depend on the umask. */
async function writeFiles(tree: string, files: readonly PackageFile[]): Promise<void> {
  await chmod(tree, 0o755)
  for (const { path, content, mode = 0o644 } of files) {
    const file = join(tree, path)
    await mkdir(dirname(file), { recursive: true })
    for (let folder = dirname(file); folder !== tree; folder = dirname(folder)) await chmod(folder, 0o755)
    await writeFile(file, content)
    await chmod(file, mode)
  }
}
