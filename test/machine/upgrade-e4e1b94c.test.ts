import { beforeAll, describe, it } from 'vitest'
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
import { canUpgrade, needsUpgrade, prepareUpgrade, type Upgrade } from './upgrading.ts'

let upgrade: Upgrade

describe('An upgrade from e4e1b94c', () => {
  beforeAll(async () => {
    if (canUpgrade('e4e1b94c')) upgrade = await prepareUpgrade('e4e1b94c')
  }, 900_000)

  it('begins with configurations that have every key of then', async () => {
    needsUpgrade('e4e1b94c')
    await expectEveryKey('e4e1b94c', upgrade)
  })

  it('H340 is preceded by a check that says what will behave differently', async () => {
    needsUpgrade('e4e1b94c')
    await expectChanges(upgrade)
  })

  it('H339 logs out none of 10,000 tokens while clients poll, and keeps the certificate', async () => {
    needsUpgrade('e4e1b94c')
    await logInAll(upgrade)
    await logInWithBrowser(upgrade)
    await upgradeUnderPolls(upgrade)
  })

  it('H339 sends a browser to the login page once, because its session was in memory', async () => {
    needsUpgrade('e4e1b94c')
    await logInWithBrowser(upgrade)
  })

  it('H339 refuses no key, and has the line to write for each in its former spelling', async () => {
    needsUpgrade('e4e1b94c')
    await expectAllRead('e4e1b94c', upgrade)
  })

  it('H341 back, the token file is set aside with one line, and everyone logs in again; H342 forward again, it is found', async () => {
    needsUpgrade('e4e1b94c')
    await goBackAndForward(upgrade)
  })

  it('H339 H341 of two processes with a shared store fails no request, there and back', async () => {
    needsUpgrade('e4e1b94c')
    await upgradeFleet(upgrade)
  })
})
