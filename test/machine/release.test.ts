import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { VERSION } from '../../src/version.ts'
import { makeGpgKey, makeReleaseKey, signersIn, VENDOR } from '../build/release-key.ts'
import { downloadAndTry, putBeforeDevice } from '../pages/five-minutes.ts'
import { prepareSite, type Site, type SiteOptions } from '../process/serve.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { replaceIn, shellBlock } from '../support/pages.ts'
import { PASSWORD } from '../support/sidecar.ts'
import { needs, run } from '../support/tools.ts'
import { cloneOfHead } from './clone.ts'
import { executableFor, PROCESSOR } from './made-once.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Milliseconds: two runtimes are fetched, and four files of 100 MB compressed. It takes three minutes of two free cores. */
const TIMEOUT = 30 * 60_000

let dist: string
let program: string
let repository: string
let signers: string

/** Makes the release by the commands of docs/releasing.md, in a clone. */
async function release(): Promise<void> {
  for (const tool of ['git', 'npm', 'dpkg-deb', 'gpg', 'apt-ftparchive']) needs(tool)
  const [key, vendor, home] = [
    await makeReleaseKey(),
    join(temporaryDirectory(), 'vendor'),
    await makeGpgKey('apt@example.com'),
  ]
  writeFileSync(vendor, JSON.stringify(VENDOR))
  repository = join(temporaryDirectory(), 'apt')
  const command = [
    ['~/.ssh/postern-release', key],
    ['~/vendor.yaml', vendor],
    ['~/postern-apt', repository],
  ].reduce(
    (text, [from = '', to = '']) => replaceIn(text, from, to),
    shellBlock('docs/releasing.md', '--sign'),
  )
  const clone = await cloneOfHead()
  const made = await run(
    'sh',
    ['-ec', replaceIn(shellBlock('docs/releasing.md', 'npm ci'), 'npm run release\n', command)],
    {
      cwd: clone,
      env: { PATH: process.env.PATH, HOME: process.env.HOME ?? temporaryDirectory(), GNUPGHOME: home },
      timeout: TIMEOUT,
    },
  )
  if (made.code !== 0) throw new Error(made.stdout + made.stderr)
  signers = signersIn(made.stdout)
  dist = join(clone, 'dist')
  program = join(dist, `postern-linux-${PROCESSOR}`)
}

const digestOf = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex')

describe('a release', () => {
  beforeAll(release, TIMEOUT)

  it('has every file that docs/releasing.md lists, and no other', () => {
    const page = readFileSync(join(ROOT, 'docs/releasing.md'), 'utf8')
    const [, table = ''] = /\n\| file \| what it is \|\n((?:\|.*\n)+)/.exec(page) ?? []
    const cells = [...table.matchAll(/^\| (.*?) \|/gm)].map(([, cell = '']) => cell)
    const named = cells.flatMap((cell) => [...cell.matchAll(/`([\w.-]+)\/?`/g)].map(([, name = '']) => name))
    const compressed = named.filter((name) => name.startsWith('postern-linux-')).map((name) => `${name}.gz`)
    const listed = [...named.filter((name) => name !== '.gz'), ...compressed]
    expect(readdirSync(dist).toSorted()).toEqual(listed.toSorted())
  })

  it('SHA256SUMS is right for sha256sum, and the compressed programs are the programs', async () => {
    expect(
      (await run('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: dist })).code,
    ).toBe(0)
    for (const name of ['postern-linux-x64', 'postern-linux-arm64']) {
      const unpacked = await run('sh', ['-c', `gunzip -c ${name}.gz | cmp - ${name}`], { cwd: dist })
      expect(unpacked).toEqual({ code: 0, stdout: '', stderr: '' })
    }
  })

  it('the bill of materials names every package whose licence ships, and Node.js', () => {
    const bom = JSON.parse(readFileSync(join(dist, 'postern.cdx.json'), 'utf8'))
    expect(bom).toMatchObject({
      bomFormat: 'CycloneDX',
      metadata: { component: { name: 'postern', version: VERSION } },
    })
    const components: string[] = bom.components.map(
      ({ group, name, version }: { group?: string; name: string; version: string }) =>
        `${group === undefined ? '' : `${group}/`}${name} ${version}`,
    )
    const licences = readFileSync(join(dist, 'LICENSES.txt'), 'utf8')
    const shipped = [...licences.matchAll(/^(@?[a-z][\w./-]* \d+\.\d+\.\d+[\w.-]*): /gm)].map(
      ([, name]) => name,
    )
    expect(shipped.length).toBeGreaterThan(10)
    expect(components).toEqual(expect.arrayContaining(shipped))
    expect(components).toContain(`node ${process.versions.node}`)
  })

  it.each(['x64', 'arm64'] as const)(
    'the same source in another folder gives the same program for %s',
    async (processor) => {
      const another = await executableFor(processor)
      expect(digestOf(another)).toBe(digestOf(join(dist, `postern-linux-${processor}`)))
    },
    TIMEOUT,
  )

  it('is downloaded, checked and run by the commands of the pages', async () => {
    const { folder, temporary } = await downloadAndTry(dist, signers)
    expect(readdirSync(temporary)).toEqual([])
    await putBeforeDevice(folder, './postern')
  })

  it('the repository has the two packages, and gpg finds its signature good', async () => {
    expect(readdirSync(join(repository, 'pool/main'))).toEqual(
      ['amd64', 'arm64'].map((architecture) => `postern_${VERSION}_${architecture}.deb`),
    )
    const verified = await run('gpg', ['--verify', join(repository, 'dists/stable/InRelease')])
    expect([verified.code, verified.stderr]).toEqual([0, expect.stringContaining('Good signature')])
  })

  it('the program needs no Node.js, and runs from any folder', async () => {
    const cwd = temporaryDirectory()
    const { code, stdout, stderr } = await run(program, ['--version'], { cwd, env: { PATH: '/nowhere' } })
    expect([code, stdout, stderr]).toEqual([0, `${VERSION}\n`, ''])
  })

  const packed = (options: SiteOptions = {}): Promise<Site> =>
    prepareSite({ ...options, command: () => [program] })

  it('the program serves with all files in a folder of the operator, and keeps its tokens', async () => {
    const site = await packed({ transport: 'tls', config: { listen: { tls: 'auto' } } })
    const first = await site.serve()
    const { access_token } = await first.grant()
    expect(await first.use(access_token)).toBe(200)
    await first.stop()
    expect(await first.stderr).toBe('')
    expect(existsSync(join(site.stateDir, 'tokens.db'))).toBe(true)
    const second = await site.serve()
    expect(await second.use(access_token)).toBe(200)
    await second.stop()
  })

  it('the program verifies hashes that need a thread, if threads are allowed', async () => {
    const { hashSync } = await import('bcryptjs')
    const site = await packed({ password: hashSync(PASSWORD, 4) })
    const refused = site.launch()
    expect((await refused.exit).code).toBe(2)
    expect(await refused.stderr).toContain('add --allow-worker to NODE_OPTIONS')
    const sidecar = await site.serve({ env: { NODE_OPTIONS: '--allow-worker' } })
    expect((await sidecar.login('wrong')).status).toBe(400)
    await sidecar.grant()
    await sidecar.stop()
    expect(await sidecar.stderr).toBe('')
  })

  it('init, check and serve work one after the other in a new folder', async () => {
    const { device } = await packed()
    const cwd = join(temporaryDirectory(), 'a new folder')
    mkdirSync(cwd)
    writeFileSync(join(cwd, 'secret'), `${PASSWORD}\n`, { mode: 0o600 })
    const postern = (...args: string[]) => run(program, args, { cwd, env: {} })
    const init = await postern('init', '--url', device.url, '--password-file', 'secret')
    expect([init.code, init.stderr]).toEqual([0, expect.stringMatching(/^ok +device: \S+ answered 200\n$/)])
    const check = await postern(
      'check',
      '--config',
      'postern.yaml',
      '--set',
      'listen.address=127.0.0.1:0',
      '--quiet',
    )
    // Of the password in plain text, which the test gave.
    expect(check).toMatchObject({ code: 0, stderr: '' })
    expect(check.stdout.match(/^\w+ \S+/gm)).toEqual(['WARNING password.file:'])
  })
})
