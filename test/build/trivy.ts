import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDirectory } from '../support/certificate.ts'
import { needs, needsForeign, needsLibrary, run } from '../support/tools.ts'

const MAKER = join(import.meta.dirname, 'advisories.go')

/** Keeps what Go has compiled between runs. */
const GOCACHE = join(import.meta.dirname, '../../node_modules/.cache/postern-go')

/** Where Debian has the libraries of Go. */
const GOPATH = '/usr/share/gocode'

/** A made-up advisory about a package of npm or a source package of Debian 12. */
export interface Advisory {
  readonly ecosystem: 'npm' | 'debian 12'
  readonly name: string
  /** The first version that it does not concern. */
  readonly fixed: string
}

/** Runs a command of Trivy offline, with a database of made-up advisories alone. Resolves to the names of the packages that it finds. */
export async function scan(
  command: string,
  cwd: string,
  advisories: readonly Advisory[],
): Promise<readonly string[]> {
  const env = {
    ...process.env,
    TRIVY_CACHE_DIR: await makeDatabase(advisories),
    TRIVY_SKIP_DB_UPDATE: 'true',
    TRIVY_SKIP_JAVA_DB_UPDATE: 'true',
    TRIVY_OFFLINE_SCAN: 'true',
    TRIVY_NO_PROGRESS: 'true',
    TRIVY_FORMAT: 'json',
  }
  const { code, stdout, stderr } = await run('sh', ['-c', command], { cwd, env, timeout: 600_000 })
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${stderr}${stdout}`)
  interface Result {
    readonly Vulnerabilities?: readonly { readonly PkgName: string }[]
  }
  const { Results: results = [] }: { Results?: readonly Result[] } = JSON.parse(stdout)
  return results.flatMap(({ Vulnerabilities = [] }) => Vulnerabilities.map(({ PkgName }) => PkgName)).sort()
}

/** Resolves to a cache folder of Trivy with a database of these advisories. */
async function makeDatabase(advisories: readonly Advisory[]): Promise<string> {
  needsForeign('trivy')
  needs('go')
  needsLibrary('go.etcd.io/bbolt', ['ls', join(GOPATH, 'src/go.etcd.io/bbolt')])
  const cache = temporaryDirectory()
  mkdirSync(join(cache, 'db'))
  const [id, year] = ['CVE-2099-0001', '2099-01-01T00:00:00Z']
  const entries = [
    ['vulnerability', id, JSON.stringify({ Title: 'made up', Severity: 'HIGH' })],
    ['data-source', 'npm::made up', JSON.stringify({ ID: 'ghsa', Name: 'made up' })],
    ...advisories.map(({ ecosystem, name, fixed }) =>
      ecosystem === 'npm'
        ? ['npm::made up', name, id, JSON.stringify({ VulnerableVersions: [`<${fixed}`] })]
        : [ecosystem, name, id, JSON.stringify({ FixedVersion: fixed })],
    ),
  ]
  const made = await run('go', ['run', MAKER, join(cache, 'db/trivy.db')], {
    input: JSON.stringify(entries),
    timeout: 600_000,
    env: { ...process.env, GO111MODULE: 'off', GOPATH, GOCACHE },
  })
  if (made.code !== 0) throw new Error(made.stderr)
  const metadata = { Version: 2, NextUpdate: year, UpdatedAt: year, DownloadedAt: year }
  writeFileSync(join(cache, 'db/metadata.json'), JSON.stringify(metadata))
  return cache
}
