import { beforeAll, describe, expect, it } from 'vitest'
import { isInstalled, needs } from '../support/tools.ts'
import { keptCases, type Setting } from './case.ts'
import { faultsTogether, playRound } from './round.ts'
import { CLEARTEXT, createScenes, ENCRYPTED, type Scenes, type Target } from './target.ts'
import { targets } from './targets.ts'

/** The same cases each time. */
const SEED = 20_261

/** Started once for all: a sidecar is a process. */
const scenes: Scenes[] = []

beforeAll(async () => {
  scenes.push(createScenes(CLEARTEXT), createScenes(ENCRYPTED))
  await Promise.all([
    ...scenes.map((each) => each.scripted()),
    ...(isInstalled('nginx') ? scenes.map((each) => each.nginx()) : []),
  ])
})

const alike = (one: Setting, other: Setting): boolean =>
  one.transport === other.transport && one.parser === other.parser

/** What only a deadline ends is left to longer runs. */
const impatient = (target: Target): Target => ({
  ...target,
  cases: target.cases.map((item) => (item.ending === 'open' ? { ...item, ending: 'end' } : item)),
})

function targetOf(name: string): Target {
  const target = targets.find((each) => each.name === name)
  if (target === undefined) throw new Error(`no target ${name}`)
  return target
}

/** Cases for each turn: what a busy machine can play in some hundred milliseconds, over TLS less than in cleartext. */
const COUNTS: Readonly<Record<Setting['transport'], number>> = { http1: 100, h2: 40 }

describe('a short part of the fuzzing', () => {
  const turns = targets.flatMap(({ name, settings }) => settings.map((setting) => ({ name, ...setting })))
  it.each(
    turns
      .filter((turn) => [CLEARTEXT, ENCRYPTED].some((setting) => alike(turn, setting)))
      .filter(({ name, transport }) => name !== 'differential' || transport === 'http1'),
  )(
    'C20 C12 C24 whatever comes, every answer keeps the contract: $name, $transport',
    async ({ name, ...setting }) => {
      if (name === 'differential') needs('nginx')
      const scene = scenes.find((each) => alike(each.setting, setting))
      if (scene === undefined) throw new Error('no such scene')
      const { failure, played } = await playRound(scene, {
        target: impatient(targetOf(name)),
        seed: SEED,
        count: COUNTS[setting.transport],
      })
      expect(failure).toBeUndefined()
      expect(played).toBeGreaterThan(0)
    },
  )
})

describe('what the fuzzer once found', () => {
  it.each(keptCases())('stays mended: %s', async (_name, { target, setting, cases }) => {
    if (target === 'differential') needs('nginx')
    const scene = scenes.find((each) => alike(each.setting, setting)) ?? createScenes(setting)
    expect(await faultsTogether(scene, await targetOf(target).open(scene), cases)).toEqual([])
  })
})

it('C24 when all have gone nothing is left behind', async () => {
  const scripted = await Promise.all(scenes.map((each) => each.scripted()))
  for (const { device } of scripted) device.hangUp()
  expect((await Promise.all(scripted.map(({ bed }) => bed.leftBehind()))).flat()).toEqual([])
})
