import { beforeAll, describe, expect, it } from 'vitest'
import { statusOf } from '../support/http2-frames.ts'
import { isInstalled, needs } from '../support/tools.ts'
import { keptCases, type Setting } from './case.ts'
import { faultsTogether, playRound } from './round.ts'
import { CLEARTEXT, createScenes, ENCRYPTED, type Scenes, type Target } from './target.ts'
import { targets } from './targets.ts'

/** Fixed, so that every run plays the same cases. */
const SEED = 20_261

/** Shared by all tests, because each sidecar is a process. */
const scenes: Scenes[] = []

beforeAll(async () => {
  scenes.push(createScenes(CLEARTEXT), createScenes(ENCRYPTED))
  await Promise.all([
    ...scenes.map((each) => each.scripted()),
    ...(isInstalled('nginx') ? scenes.map((each) => each.nginx()) : []),
  ])
})

const isSameSetting = (one: Setting, other: Setting): boolean =>
  one.transport === other.transport && one.parser === other.parser

/** Ends the connections that only a deadline would end: `npm run fuzz` covers those. */
const withoutDeadlines = (target: Target): Target => ({
  ...target,
  cases: target.cases.map((item) => (item.ending === 'open' ? { ...item, ending: 'end' } : item)),
})

function targetOf(name: string): Target {
  const target = targets.find((each) => each.name === name)
  if (target === undefined) throw new Error(`no target ${name}`)
  return target
}

/** Cases per test: what a busy machine plays in a few hundred milliseconds, fewer over TLS. */
const COUNTS: Readonly<Record<Setting['transport'], number>> = { http1: 100, h2: 40 }

describe('a short fuzzing run', () => {
  const turns = targets.flatMap(({ name, settings }) => settings.map((setting) => ({ name, ...setting })))
  it.each(
    turns
      .filter((turn) => [CLEARTEXT, ENCRYPTED].some((setting) => isSameSetting(turn, setting)))
      .filter(({ name, transport }) => name !== 'differential' || transport === 'http1'),
  )('C20 C12 C24 every response keeps the contract: $name, $transport', async ({ name, ...setting }) => {
    if (name === 'differential') needs('nginx')
    const scene = scenes.find((each) => isSameSetting(each.setting, setting))
    if (scene === undefined) throw new Error('no scene for this setting')
    const { failure, played } = await playRound(scene, {
      target: withoutDeadlines(targetOf(name)),
      seed: SEED,
      count: COUNTS[setting.transport],
    })
    expect(failure).toBeUndefined()
    expect(played).toBeGreaterThan(0)
  })
})

describe('a saved failure of the fuzzer', () => {
  it.each(keptCases())('stays fixed: %s', async (_name, { target, setting, cases }) => {
    if (target === 'differential') needs('nginx')
    const scene = scenes.find((each) => isSameSetting(each.setting, setting)) ?? createScenes(setting)
    expect(await faultsTogether(scene, await targetOf(target).open(scene), cases)).toEqual([])
  })
})

it('C24 no connection, exchange or socket remains after all clients have left', async () => {
  const scripted = await Promise.all(scenes.map((each) => each.scripted()))
  for (const { device } of scripted) device.hangUp()
  expect((await Promise.all(scripted.map(({ bed }) => bed.leftBehind()))).flat()).toEqual([])
})

it.each([
  ['an indexed status', [0x88]],
  ['after a short table size update', [0x20, 0x88]],
  ['after a table size update in two bytes', [0x3f, 0x45, 0x88]],
  ['after two updates in three bytes', [0x20, 0x3f, 0xe1, 0x1f, 0x88]],
])('the fuzzer reads the status of a header block: %s', (_what, bytes) => {
  expect(statusOf(Buffer.from(bytes))).toBe(200)
})
