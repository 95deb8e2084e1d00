import { join } from 'node:path'
import type { Source } from '../../deploy/build/source.ts'
import type { Vendor } from '../../deploy/build/vendor.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { needs, run } from '../support/tools.ts'

/** A vendor whose address is the one in the printed commands. */
export const VENDOR: Vendor = {
  name: 'Example Devices',
  maintainer: 'Ann Example <vendor@example.com>',
  security_contact: 'security@example.com',
  support_period: 'until 2031-12-31',
  download: 'https://downloads.example.com/postern',
}

/** A commit that a made-up release is from. */
export const SOURCE: Source = { commit: 'c0ffee'.padEnd(40, '0'), changed: false, time: 1_700_000_000 }

/** Makes a key of ssh-keygen without a passphrase, and resolves to the path of its private half. */
export async function makeReleaseKey(): Promise<string> {
  needs('ssh-keygen')
  const key = join(temporaryDirectory(), 'release-key')
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key])
  return key
}

/** Makes a home of gpg with a key for that address, which `GNUPGHOME` names until the test ends. */
export async function makeGpgKey(address: string): Promise<string> {
  const home = temporaryDirectory()
  process.env.GNUPGHOME = home
  closeLater(async () => {
    await run('gpgconf', ['--homedir', home, '--kill', 'all'])
    if (process.env.GNUPGHOME === home) delete process.env.GNUPGHOME
  })
  const args = [
    '--batch',
    '--quiet',
    '--passphrase',
    '',
    '--quick-generate-key',
    address,
    'ed25519',
    'sign',
    'never',
  ]
  const made = await run('gpg', args)
  if (made.code !== 0) throw new Error(made.stderr)
  return home
}

/** The line for the file `signers` in what a release prints at its end. */
export function signersIn(printed: string): string {
  const line = /^\S+ namespaces=.*$/m.exec(printed)?.[0]
  if (line === undefined) throw new Error(`no line for signers in: ${printed}`)
  return `${line}\n`
}
