import { beforeAll, describe, expect, it } from 'vitest'
import { VERSION } from '../../src/version.ts'
import { shellBlock } from '../support/pages.ts'
import { type Cut, cutDuring } from './power-cut.ts'
import { canUpgrade, needsUpgrade, PASSWORDS, prepareUpgrade, type Upgrade } from './upgrading.ts'

// Commands that only read are left out: the disk is the same before and after them. prerm and postrm run none at an upgrade.
// Each takes half a minute, so only the first four, where most goes on, are tried at all times, and all with `POSTERN_TEST_BULK=1`.
const CUTS: readonly (readonly [when: string, cut: Cut])[] = [
  ['with half of the package unpacked', 'halfway'],
  ['when the program is replaced', { folder: 'usr/bin', file: /^postern$/, nth: 1 }],
  ['before the restart', { before: 'deb-systemd-invoke restart *' }],
  ['when the service opens its token file', { folder: 'var/lib/postern', file: /^tokens\.db/, nth: 3 }],
  ['before the package is unpacked', { before: 'dpkg-deb --fsys-tarfile *' }],
  ['before dpkg clears up', { before: 'rm -rf -- *' }],
  ['before the user is made', { before: 'adduser *' }],
  ['before the unit is enabled', { before: 'deb-systemd-helper enable postern.service' }],
  ['before the socket is noted', { before: 'deb-systemd-helper update-state postern.socket' }],
  ['before systemd reads the units', { before: 'systemctl *daemon-reload' }],
  ['when the service ends', { folder: 'var/lib/postern', file: /./, nth: 1 }],
  ['after the restart', { before: 'systemctl list-units *' }],
]

const COMPLETE = shellBlock('docs/sizing.md', 'dpkg --audit')
const FORMER = 'e4e1b94c'

let upgrade: Upgrade

/** Completes what dpkg has begun, as its manual says; what was not unpacked is installed again. */
async function complete(which: 'former' | 'present'): Promise<void> {
  const { install, type } = upgrade
  const version = which === 'former' ? '0.1.0' : VERSION
  // Where dpkg asks about the configuration, Enter keeps it.
  const audit = await type(COMPLETE, '\n')
  const state = await type(`dpkg-query -f '\${db:Status-Status} \${Version}' -W postern`)
  if (audit !== '' || state !== `installed ${version}`) await install(which)
  expect(await type('systemctl is-active postern; postern --version')).toBe(`active\n${version}\n`)
  expect(await type('dpkg --audit')).toBe('')
}

describe('A power cut', () => {
  beforeAll(async () => {
    if (canUpgrade(FORMER)) upgrade = await prepareUpgrade(FORMER)
  }, 900_000)

  it.each(process.env.POSTERN_TEST_BULK === '1' ? CUTS : CUTS.slice(0, 4))(
    'H343 %s leaves a service that starts, on the way there and back',
    async (_, cut) => {
      needsUpgrade(FORMER)
      const { beside, type } = upgrade
      expect(await beside('log-in', 'before', PASSWORDS.file, '2')).toBe(2)
      expect(await cutDuring(upgrade, 'present', cut)).toBe(true)
      expect(await type('systemctl is-active postern')).toBe('active\n')
      expect(await beside('use', 'before')).toEqual({ 200: 2 })
      await complete('present')
      expect(await beside('use', 'before')).toEqual({ 200: 2 })

      const setAside = 'ls /var/lib/postern | grep -c newer || true'
      const before = Number(await type(setAside))
      expect(await cutDuring(upgrade, 'former', cut)).toBe(true)
      expect(await type('systemctl is-active postern')).toBe('active\n')
      await complete('former')
      expect(await beside('use', 'before')).toEqual({ 401: 2 })
      expect(Number(await type(setAside))).toBe(before + 1)
    },
  )
})
