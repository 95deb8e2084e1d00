import { beforeAll, describe, it } from 'vitest'
import { isInstalled } from '../support/tools.ts'
import { needsMachine } from './machine.ts'
import {
  expectAllRead,
  expectChanges,
  expectEveryKey,
  goBackAndForward,
  logInAll,
  logInWithBrowser,
  upgradeFleet,
  upgradeUnderPolls,
} from './upgrade-steps.ts'
import { prepareUpgrade, UPGRADE_TOOLS, type Upgrade } from './upgrading.ts'

let upgrade: Upgrade

describe('An upgrade from e4e1b94c', () => {
  beforeAll(async () => {
    if (process.getuid?.() === 0 && ['mmdebstrap', ...UPGRADE_TOOLS].every(isInstalled))
      upgrade = await prepareUpgrade('e4e1b94c')
  }, 900_000)

  it('begins with configurations that have every key of then', async () => {
    needsMachine(...UPGRADE_TOOLS)
    await expectEveryKey('e4e1b94c', upgrade)
  })

  it('H392 is preceded by a check that says what will behave differently', async () => {
    needsMachine(...UPGRADE_TOOLS)
    await expectChanges(upgrade)
  })

  it('H391 logs out none of 10,000 tokens while clients poll, and keeps the certificate', async () => {
    needsMachine(...UPGRADE_TOOLS)
    await logInAll(upgrade)
    await logInWithBrowser(upgrade)
    await upgradeUnderPolls(upgrade)
  })

  it('H391 sends a browser to the login page once, because its session was in memory', async () => {
    needsMachine(...UPGRADE_TOOLS)
    await logInWithBrowser(upgrade)
  })

  it('H391 refuses no key, and has the line to write for each in its former spelling', async () => {
    needsMachine(...UPGRADE_TOOLS)
    await expectAllRead('e4e1b94c', upgrade)
  })

  it('H393 back, the token file is set aside with one line, and everyone logs in again; H394 forward again, it is found', async () => {
    needsMachine(...UPGRADE_TOOLS)
    await goBackAndForward(upgrade)
  })

  it('H391 H393 of two processes with a shared store fails no request, there and back', async () => {
    needsMachine(...UPGRADE_TOOLS)
    await upgradeFleet(upgrade)
  })
})
