import { readdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { bashCompletion } from '../commands/bash-completion.ts'
import { describedCommands } from '../commands/described-commands.ts'
import { manPage } from '../commands/man-page.ts'
import { NOBODY, type Vendor } from '../vendor.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** A file in a package. `path` has no slash at its start. The default of `mode` is 0644. */
export interface PackageFile {
  readonly path: string
  readonly content: string | Buffer
  readonly mode?: number
}

export interface Contents {
  readonly executable: Buffer
  readonly version: string
  readonly licences: string
  readonly time: number
  readonly configuration?: string
  readonly vendor?: Vendor | undefined
}

const DOCUMENTS = 'usr/share/doc/postern'

/** The files of a package, and its scripts in `DEBIAN/`, but for `DEBIAN/control`. */
export async function contentOf(contents: Contents): Promise<readonly PackageFile[]> {
  const { executable, version, licences, time, configuration, vendor } = contents
  const commands = describedCommands()
  return [
    { path: 'usr/bin/postern', content: executable, mode: 0o755 },
    { path: 'etc/postern/postern.yaml', content: configuration ?? (await read('deploy/postern.yaml')) },
    { path: 'usr/lib/systemd/system/postern.service', content: await unit('postern.service') },
    {
      path: 'usr/lib/systemd/system/postern-device@.service',
      content: await unit('postern-device@.service'),
    },
    {
      path: 'usr/lib/systemd/system/postern-devices.slice',
      content: await unit('postern-devices.slice'),
    },
    { path: 'usr/lib/systemd/system/postern.socket', content: await unit('postern.socket') },
    { path: 'usr/share/man/man1/postern.1.gz', content: compress(manPage(commands, { version, time })) },
    { path: 'usr/share/bash-completion/completions/postern', content: bashCompletion(commands) },
    { path: 'usr/share/lintian/overrides/postern', content: await read('deploy/debian/lintian-overrides') },
    { path: `${DOCUMENTS}/copyright`, content: await copyright(licences) },
    { path: `${DOCUMENTS}/changelog.gz`, content: compress(changelog(version, time, maintainerOf(vendor))) },
    { path: `${DOCUMENTS}/NEWS.md.gz`, content: compress(await read('CHANGELOG.md')) },
    ...(await documents()),
    { path: 'DEBIAN/conffiles', content: await read('deploy/debian/conffiles') },
    { path: 'DEBIAN/postinst', content: await read('deploy/debian/postinst'), mode: 0o755 },
    { path: 'DEBIAN/prerm', content: await read('deploy/debian/prerm'), mode: 0o755 },
    { path: 'DEBIAN/postrm', content: await read('deploy/debian/postrm'), mode: 0o755 },
  ]
}

function read(path: string): Promise<string> {
  return readFile(join(ROOT, path), 'utf8')
}

/** A unit without its first line, which says where an administrator puts the file. */
async function unit(name: string): Promise<string> {
  return (await read(`deploy/${name}`)).replace(/^# \/etc\/.*\n/, '')
}

async function documents(): Promise<readonly PackageFile[]> {
  const pages = (await readdir(join(ROOT, 'docs')))
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => `docs/${name}`)
  const examples = [
    'postern-credential.conf',
    'pam/postern-check',
    'pam/postern-check.pam',
    'pam/postern-check.socket',
    'pam/postern-check@.service',
    'postern.rules.yml',
    'prometheus.yml',
    'grafana/postern.json',
    'grafana/provisioning.yaml',
    'fleet/users.acl.template',
  ]
  const wanted = [
    ...[...pages, 'deploy/configuration.md', 'deploy/old-firmware.md'].map((from) => ({
      from,
      to: DOCUMENTS,
    })),
    ...['postern.schema.json', ...examples].map((name) => ({
      from: `deploy/${name}`,
      to: `${DOCUMENTS}/examples`,
    })),
  ]
  return Promise.all(
    wanted.map(async ({ from, to }) => ({
      path: `${to}/${from.replace(/^.*\//, '')}`,
      content: await read(from),
    })),
  )
}

/** Who maintains a package, in the form of a control file. Debian asks for an address, also of a release without a vendor. */
export function maintainerOf(vendor: Vendor | undefined): string {
  return vendor?.maintainer ?? `${NOBODY[0]?.toUpperCase()}${NOBODY.slice(1)} <nobody@localhost>`
}

/** Gzip without a time and a name. */
function compress(text: string): Buffer {
  return gzipSync(text, { level: 9 })
}

/** The log of the packaging, which has one entry: NEWS.md tells the changes of the program. */
function changelog(version: string, time: number, maintainer: string): string {
  const [day, date, month, year, clock] = new Date(time * 1000).toUTCString().split(/,? /)
  return `postern (${version}) stable; urgency=medium

  * Made from Postern ${version}. NEWS.md.gz tells what has changed.

 -- ${maintainer}  ${day}, ${date} ${month} ${year} ${clock} +0000
`
}

/** The licences of all that is in the executable. Debian has the text of Postern's own. */
async function copyright(licences: string): Promise<string> {
  const rule = `\n${'-'.repeat(80)}\n`
  const own = `Postern
Copyright The Postern authors
License: Apache-2.0

On Debian systems, the full text of the Apache License 2.0 is in
/usr/share/common-licenses/Apache-2.0.

The executable contains Node.js and npm packages. Their licences follow.
`
  return [own, await readFile(join(nodePackage(), 'LICENSE'), 'utf8'), licences].join(rule)
}

/** The folder of the npm package with the Node.js that runs this. It has the version that is in the executables. */
function nodePackage(): string {
  const inNode = createRequire(createRequire(import.meta.url).resolve('node/package.json'))
  return dirname(inNode.resolve(`node-${process.platform}-${process.arch}/package.json`))
}
