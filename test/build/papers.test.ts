import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  copyFileSync,
  cpSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { writePapers } from '../../deploy/build/papers.ts'
import { releaseOptions } from '../../deploy/build/release-options.ts'
import { checkKey } from '../../deploy/build/signature.ts'
import { sumLines, sumsIn } from '../../deploy/build/sums.ts'
import { readVendor } from '../../deploy/build/vendor.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { shellBlock } from '../support/pages.ts'
import { needs, type Run, run } from '../support/tools.ts'
import { makeReleaseKey, SOURCE, signersIn, VENDOR } from './release-key.ts'

const ROOT = join(import.meta.dirname, '../..')
const VERIFY = shellBlock('docs/installing.md', 'ssh-keygen -Y verify')
const PROGRAMS = ['postern-linux-x64.gz', 'postern_1.0.0_amd64.deb', 'postern.cdx.json']
const LISTED = [...PROGRAMS, 'VENDOR', 'VERSION', 'postern.intoto.json']

interface Release {
  readonly folder: string
  readonly printed: string
}

/** A release with made-up programs. */
async function makeRelease(key?: string, version = '2.0.0'): Promise<Release> {
  const folder = temporaryDirectory()
  for (const name of PROGRAMS) writeFileSync(join(folder, name), `${name} of ${version}`)
  return { folder, printed: await writePapers(folder, { version, source: SOURCE, vendor: VENDOR, key }) }
}

/** Types the printed commands in the folder of a download. */
function verify(folder: string, signers: string): Promise<Run> {
  writeFileSync(join(folder, 'signers'), signers)
  return run('sh', ['-c', VERIFY], { cwd: folder })
}

describe('a signed release', () => {
  it('H331 is verified by the printed commands, which show its version, commit and date', async () => {
    const { folder, printed } = await makeRelease(await makeReleaseKey())
    const verified = await verify(folder, signersIn(printed))
    expect(verified).toMatchObject({ code: 0, stderr: '' })
    expect(verified.stdout).toMatch(/^Good "postern-release" signature for vendor@example.com /)
    for (const name of LISTED) expect(verified.stdout).toContain(`\n${name}: OK\n`)
    expect(verified.stdout).toMatch(
      new RegExp(
        `\nversion: 2.0.0\ncommit: ${SOURCE.commit}\ndate: 2023-11-14T22:13:20Z\nnode: ${process.versions.node}\n$`,
      ),
    )
    expect(readdirSync(folder).sort()).toEqual([...LISTED, 'SHA256SUMS', 'SHA256SUMS.sig', 'signers'].sort())
  })

  it.each([...LISTED, 'SHA256SUMS', 'SHA256SUMS.sig'])(
    'H331 does not verify with another %s',
    async (name) => {
      const { folder, printed } = await makeRelease(await makeReleaseKey())
      appendFileSync(join(folder, name), name === 'SHA256SUMS.sig' ? 'QUFB\n' : ' ')
      if (name === 'SHA256SUMS.sig') {
        const text = readFileSync(join(folder, name), 'utf8')
        const at = text.indexOf('\n', 200) - 5
        const other = text[at] === 'A' ? 'B' : 'A'
        writeFileSync(join(folder, name), `${text.slice(0, at)}${other}${text.slice(at + 1)}`)
      }
      const { code, stdout } = await verify(folder, signersIn(printed))
      expect(code).not.toBe(0)
      expect(stdout).not.toContain('commit: ')
    },
  )

  it('H331 does not verify when a changed file is in a changed list', async () => {
    const { folder, printed } = await makeRelease(await makeReleaseKey())
    appendFileSync(join(folder, 'postern-linux-x64.gz'), ' ')
    const forged = await makeRelease()
    copyFileSync(join(forged.folder, 'SHA256SUMS'), join(folder, 'SHA256SUMS'))
    expect(await verify(folder, signersIn(printed))).toMatchObject({ code: 255 })
  })

  it('H331 does not verify with another key, also in the name of the vendor', async () => {
    const { printed } = await makeRelease(await makeReleaseKey())
    const other = await makeRelease(await makeReleaseKey())
    const { code, stdout } = await verify(other.folder, signersIn(printed))
    expect(code).not.toBe(0)
    expect(stdout).not.toContain('OK')
  })

  it('H331 does not verify with a signature that the key made for another purpose', async () => {
    const key = await makeReleaseKey()
    const { folder, printed } = await makeRelease(key)
    rmSync(join(folder, 'SHA256SUMS.sig'))
    await run('ssh-keygen', ['-Y', 'sign', '-f', key, '-n', 'file', 'SHA256SUMS'], { cwd: folder })
    const { code, stdout } = await verify(folder, signersIn(printed))
    expect(code).not.toBe(0)
    expect(stdout).not.toContain('OK')
  })

  it('H331 an older release shows its own version, and cannot borrow that of a newer one', async () => {
    const key = await makeReleaseKey()
    const [old, current] = [await makeRelease(key, '1.0.0'), await makeRelease(key, '2.0.0')]
    const verified = await verify(old.folder, signersIn(current.printed))
    expect(verified.code).toBe(0)
    expect(verified.stdout).toContain('\nversion: 1.0.0\n')

    const mixed = join(temporaryDirectory(), 'mixed')
    cpSync(old.folder, mixed, { recursive: true })
    copyFileSync(join(current.folder, 'VERSION'), join(mixed, 'VERSION'))
    expect((await verify(mixed, signersIn(current.printed))).code).not.toBe(0)
    for (const name of ['SHA256SUMS', 'SHA256SUMS.sig'])
      copyFileSync(join(current.folder, name), join(mixed, name))
    const result = await verify(mixed, signersIn(current.printed))
    expect(result.code).not.toBe(0)
    expect(result.stdout).not.toContain('version: ')
  })

  it('is signed by a key in the SSH agent, of which the release has the public half', async () => {
    for (const tool of ['ssh-agent', 'ssh-add']) needs(tool)
    const key = await makeReleaseKey()
    const socket = join(temporaryDirectory(), 'agent')
    const agent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: ['ignore', 'pipe', 'ignore'] })
    closeLater(() => void agent.kill())
    await once(agent.stdout, 'data')
    const env = { ...process.env, SSH_AUTH_SOCK: socket }
    expect((await run('ssh-add', ['-q', key], { env })).code).toBe(0)
    rmSync(key)
    const before = process.env.SSH_AUTH_SOCK
    process.env.SSH_AUTH_SOCK = socket
    try {
      const { folder, printed } = await makeRelease(`${key}.pub`)
      expect((await verify(folder, signersIn(printed))).code).toBe(0)
    } finally {
      if (before === undefined) delete process.env.SSH_AUTH_SOCK
      else process.env.SSH_AUTH_SOCK = before
    }
  })

  it('is not made of changed files', async () => {
    const key = await makeReleaseKey()
    const papers = { version: '2.0.0', source: { ...SOURCE, changed: true }, key }
    await expect(writePapers(temporaryDirectory(), papers)).rejects.toThrow('the checkout has changed files')
  })
})

it('H332 a release without a key says that it is unsigned, and does not verify', async () => {
  const { folder, printed } = await makeRelease()
  expect(printed).toContain('THIS RELEASE IS UNSIGNED')
  expect((await verify(folder, signersIn(`a@b namespaces="x" y`))).code).not.toBe(0)
})

it('H333 the provenance is a statement of in-toto about every file, and the signed list has it', async () => {
  const { folder } = await makeRelease()
  const statement = JSON.parse(readFileSync(join(folder, 'postern.intoto.json'), 'utf8'))
  const digests = sumsIn(await sumLines(folder))
    .filter(({ name }) => name !== 'postern.intoto.json')
    .map(({ name, sha256 }) => ({ name, digest: { sha256 } }))
  expect(statement).toMatchObject({
    _type: 'https://in-toto.io/Statement/v1',
    subject: digests,
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        externalParameters: { command: 'npm run release', version: '2.0.0', signed: false, vendor: VENDOR },
      },
      runDetails: { builder: { id: VENDOR.download, version: { node: process.versions.node } } },
    },
  })
  const { resolvedDependencies } = statement.predicate.buildDefinition
  const lock = (await run('sha256sum', ['package-lock.json'], { cwd: ROOT })).stdout.slice(0, 64)
  expect(resolvedDependencies).toEqual([
    { name: 'source', digest: { gitCommit: SOURCE.commit }, annotations: { changed: false } },
    { name: 'package-lock.json', digest: { sha256: lock } },
    {
      name: 'deploy/build/runtimes/package-lock.json',
      digest: { sha256: expect.stringMatching(/^\w{64}$/) },
    },
    ...['arm64', 'x64'].map((processor) => ({
      name: `node-linux-${processor}`,
      uri: `pkg:npm/node-linux-${processor}@${process.versions.node}`,
      digest: { sha512: expect.stringMatching(/^[0-9a-f]{128}$/) },
    })),
  ])
  expect(readFileSync(join(folder, 'SHA256SUMS'), 'utf8')).toMatch(/^\w{64} {2}postern\.intoto\.json$/m)
})

describe('npm run release', () => {
  const release = (args: readonly string[], env = process.env): Promise<Run> =>
    run(
      process.execPath,
      [join(ROOT, 'deploy/build/release.ts'), join(temporaryDirectory(), 'out'), ...args],
      {
        env,
      },
    )

  it('says why it makes nothing, in a line, and exits with 1', async () => {
    const { code, stdout, stderr } = await release(['--sign', '/no/such/key'])
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(/^release: cannot read the key \/no\/such\/key: ENOENT.*\n$/)
  })

  const options = (...args: readonly string[]) => releaseOptions([...args], ROOT, ROOT)
  it.each<readonly [given: string, judge: () => unknown, message: string]>([
    ['--sign FILE', () => checkKey(join(ROOT, 'package.json')), 'is no key of ssh-keygen'],
    ['--apt DIR', () => options('--apt', '/srv/apt'), '--apt takes --gpg KEY'],
    ['--gpg KEY', () => options('--gpg', 'me'), 'add --apt DIR'],
    [
      '--vendor FILE',
      () => readVendor('/no/such/vendor'),
      'cannot read the vendor file /no/such/vendor: ENOENT',
    ],
    ['--unknown', () => options('--unknown', 'x'), "Unknown option '--unknown'"],
  ])('refuses %s', async (given, judge, message) => {
    if (given.startsWith('--sign')) needs('ssh-keygen')
    await expect((async () => judge())()).rejects.toThrow(message)
  })

  it('names the npm that it takes before it builds, where npm is older', async () => {
    const PATH = temporaryDirectory()
    const npm = `#!/bin/sh\nif [ "$1" = --version ]; then echo 9.2.0; else echo 'Unknown command: "sbom"' >&2; exit 1; fi\n`
    writeFileSync(join(PATH, 'npm'), npm, { mode: 0o755 })
    const { code, stdout, stderr } = await release([], { PATH: `${PATH}:${process.env.PATH}` })
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(
      /^release: npm sbom failed with npm 9\.2\.0 \(Unknown command: "sbom"\): .*npm 10\.2 or later/,
    )
  })

  it("names Debian's package where a program is missing", async () => {
    const git = (await run('sh', ['-c', 'command -v git'])).stdout.trim()
    const PATH = temporaryDirectory()
    writeFileSync(join(PATH, 'git'), `#!/bin/sh\nexec '${git}' "$@"\n`, { mode: 0o755 })
    const key = join(PATH, 'key')
    writeFileSync(key, '')
    const signed = await release(['--sign', key], { PATH })
    expect(signed.stderr).toBe("release: ssh-keygen is missing: install Debian's package openssh-client\n")
    const repository = await release(['--apt', PATH, '--gpg', 'me'], { PATH })
    expect(repository.stderr).toBe("release: apt-ftparchive is missing: install Debian's package apt-utils\n")
  })
})
