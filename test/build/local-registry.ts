import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { closeLater } from '../support/cleanup.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** An entry of `packages` in package-lock.json. */
interface Locked {
  readonly version: string
  readonly dev?: boolean
  /** The author's reason not to use this version any more: npm prints it as a warning. */
  readonly deprecated?: string
  readonly hasInstallScript?: boolean
}

interface Held extends Locked {
  readonly name: string
  readonly folder: string
}

/** The packages that Postern needs at run time, as installed in this checkout. */
function heldPackages(): readonly Held[] {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Readonly<Record<string, Locked>>
  }
  return Object.entries(lock.packages).flatMap(([path, locked]) => {
    if (path === '' || locked.dev === true) return []
    return [{ ...locked, name: path.replace(/^.*node_modules\//, ''), folder: join(ROOT, path) }]
  })
}

/**
 * Serves the run-time packages of this checkout as an npm registry on loopback, so that `npm install` can resolve, download and
 * check them as it does on an operator's machine, and a test needs no network. Returns its URL.
 */
export async function startLocalRegistry(): Promise<string> {
  const held = heldPackages()
  const server = createServer(({ url = '' }, response) => {
    const [name = '', tarball] = decodeURIComponent(url.slice(1)).split('/-/')
    const found = held.filter((each) => each.name === name)
    const wanted = found.find(({ version }) => `${version}.tgz` === tarball)
    if (wanted !== undefined) sendFolder(wanted.folder, response)
    else if (found.length > 0 && tarball === undefined) response.end(JSON.stringify(packument(name, found)))
    else response.writeHead(404).end()
  })

  /** What a registry tells about a package: the manifest of each version, and where its files are. */
  function packument(name: string, versions: readonly Held[]): object {
    return {
      name,
      'dist-tags': { latest: versions[0]?.version },
      versions: Object.fromEntries(
        versions.map(({ folder, version, deprecated, hasInstallScript }) => {
          const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
          const dist = { tarball: `${address()}${name}/-/${version}.tgz` }
          return [version, { ...manifest, deprecated, hasInstallScript, dist }]
        }),
      ),
    }
  }

  const address = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closeLater(() => {
    server.close()
    server.closeAllConnections()
  })
  return address()
}

/** Half of the files of the packages: no program reads them, and to unpack them takes as long as to unpack the programs. */
const UNREAD = ['*.map', '*.md', '*.ts', '*.cts', '*.mts']

/** Sends an archive of a package: npm leaves out the first part of each path in it. */
function sendFolder(folder: string, response: ServerResponse): void {
  const left = ['./node_modules', ...UNREAD].flatMap((pattern) => ['--exclude', pattern])
  spawn('tar', ['-c', ...left, '-C', folder, '.'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  }).stdout.pipe(response)
}
