import { appendFileSync, cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { checkRepositoryTools, makeRepository } from '../../deploy/build/apt-repository.ts'
import { makeDebianPackage } from '../../deploy/build/debian.ts'
import { makeGpgKey, VENDOR } from '../build/release-key.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { replaceIn, shellBlock } from '../support/pages.ts'
import { needs, run } from '../support/tools.ts'
import { bootMachine, minimalDebian, needsMachine } from './machine.ts'
import { executableFor, PROCESSOR } from './made-once.ts'

const INSTALL = replaceIn(
  shellBlock('docs/installing.md', 'signed-by'),
  'https://downloads.example.com/postern-apt',
  'file:/srv/apt',
)

const exportKey = async (address: string, file: string): Promise<void> => {
  await run('gpg', ['--batch', '--yes', '--output', file, '--export', address])
}

it('H335 apt on a bare Debian installs from the signed repository, and refuses one that another key signed or that was changed', async () => {
  needsMachine('systemd-nspawn', 'nsenter')
  for (const tool of ['gpg', 'gpgconf', 'apt-ftparchive']) needs(tool)
  const root = await minimalDebian()
  const [release, folder] = [temporaryDirectory(), join(root, 'srv/apt')]
  const executable = await executableFor()
  const parts = {
    executable,
    processor: PROCESSOR,
    licences: '',
    time: 1_700_000_000,
    folder: release,
  } as const
  await makeDebianPackage({ ...parts, version: '1.0.0', compression: 'gzip', vendor: VENDOR })

  await makeGpgKey('other@example.com')
  await exportKey('other@example.com', join(root, 'root/other.gpg'))
  await makeGpgKey('apt@example.com')
  await exportKey('apt@example.com', join(root, 'root/postern.gpg'))
  await expect(checkRepositoryTools('nobody@example.com')).rejects.toThrow(
    'no private key nobody@example.com',
  )
  await checkRepositoryTools('apt@example.com')
  await makeRepository({ folder, release, key: 'apt@example.com', vendor: VENDOR })
  const machine = await bootMachine(root)

  // Another key than the one that signed.
  const stranger = await machine.run(replaceIn(INSTALL, ' postern.gpg ', ' other.gpg '))
  expect(stranger.code).not.toBe(0)
  expect(stranger.stdout + stranger.stderr).toContain('NO_PUBKEY')

  // A list that was changed after it was signed.
  const pristine = join(temporaryDirectory(), 'apt')
  cpSync(folder, pristine, { recursive: true })
  const inRelease = join(folder, 'dists/stable/InRelease')
  writeFileSync(inRelease, readFileSync(inRelease, 'utf8').replace('Label: Postern', 'Label: Postfix'))
  const changed = await machine.run(INSTALL)
  expect(changed.code).not.toBe(0)
  expect(changed.stdout + changed.stderr).toContain('BADSIG')
  cpSync(pristine, folder, { recursive: true })

  // A package that was changed after its digest was listed.
  const file = join(folder, 'pool/main', `postern_1.0.0_${PROCESSOR === 'x64' ? 'amd64' : 'arm64'}.deb`)
  appendFileSync(file, ' ')
  const forged = await machine.run(INSTALL)
  expect(forged.code).not.toBe(0)
  cpSync(pristine, folder, { recursive: true })

  const installed = await machine.run(INSTALL)
  expect([installed.code, installed.stdout + installed.stderr]).toEqual([
    0,
    expect.stringContaining('postern (1.0.0)'),
  ])
  expect((await machine.run('postern --version')).code).toBe(0)
  expect((await machine.run('apt-cache show postern')).stdout).toContain(`Maintainer: ${VENDOR.maintainer}`)

  // The next release stays beside the first, and apt takes it.
  await makeDebianPackage({ ...parts, version: '1.0.1', compression: 'gzip', vendor: VENDOR })
  await makeRepository({ folder, release, key: 'apt@example.com', vendor: VENDOR })
  expect((await machine.run(INSTALL)).stdout).toContain('postern (1.0.1)')
  expect((await machine.run('apt-cache madison postern')).stdout).toMatch(/1\.0\.1[\s\S]*1\.0\.0/)
}, 900_000)
