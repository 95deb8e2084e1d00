import { beforeAll, describe, it } from 'vitest'
import {
  expectAllRead,
  expectChanges,
  expectEveryKey,
  goBackAndForward,
  logInAll,
  upgradeFleet,
  upgradeUnderPolls,
} from './upgrade-steps.ts'
import { canUpgrade, needsUpgrade, prepareUpgrade, type Upgrade } from './upgrading.ts'

let upgrade: Upgrade

describe('An upgrade from 27b4877', () => {
  beforeAll(async () => {
    if (canUpgrade('27b4877')) upgrade = await prepareUpgrade('27b4877')
  }, 900_000)

  it('begins with configurations that have every key of then', async () => {
    needsUpgrade('27b4877')
    await expectEveryKey('27b4877', upgrade)
  })

  it('H340 is preceded by a check that says what will behave differently', async () => {
    needsUpgrade('27b4877')
    await expectChanges(upgrade)
  })

  it('H339 logs out none of 10,000 tokens while clients poll, and keeps the certificate', async () => {
    needsUpgrade('27b4877')
    await logInAll(upgrade)
    await upgradeUnderPolls(upgrade)
  })

  it('H339 refuses no key, and has the line to write for each in its former spelling', async () => {
    needsUpgrade('27b4877')
    await expectAllRead('27b4877', upgrade)
  })

  it('H341 back, the token file is set aside with one line, and everyone logs in again; H342 forward again, it is found', async () => {
    needsUpgrade('27b4877')
    await goBackAndForward(upgrade)
  })

  it('H339 H341 of two processes with a shared store fails no request, there and back', async () => {
    needsUpgrade('27b4877')
    await upgradeFleet(upgrade)
  })
})
