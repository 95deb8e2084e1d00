import { beforeEach, expect, it } from 'vitest'
import { ISSUE, REFRESH } from '../../src/fleet/scripts.ts'
import type { Script, StoreReply } from '../../src/fleet/shared-store.ts'
import { open } from '../store/opened.ts'
import { startRedis } from '../support/redis.ts'
import { needs } from '../support/tools.ts'
import { DAY, HOUR, SECOND } from './support.ts'

beforeEach(() => needs('redis-server'))

const GRACE = 10 * SECOND
const GRANT = 'beefbeefbeefbeef'

/** The script at a server whose clock was set back. */
function at(back: number, { name, source }: Script): Script {
  return { name, source: source.replace('time[1] * 1000', `time[1] * 1000 - ${back}`) }
}

it.each([
  ['running on', 0, ['replayed', 'sealed']],
  ['set back by a day', DAY, ['reused', GRANT]],
])('C6 a spent refresh token at a server with its clock %s', async (_, back, expected) => {
  const { port } = await startRedis()
  const { store } = await open(`valkey://127.0.0.1:${port}`)
  const run = (script: Script, ...args: readonly (string | number)[]): Promise<StoreReply> =>
    store.run(script, [`${store.prefix}state`], [store.prefix, ...args])
  const found = { name: 'state', source: "redis.call('HSET', KEYS[1], 'epoch', '1')" } as const
  await run(found)
  await run(ISSUE, '1', GRANT, '10.0.0.1', 'access', HOUR, 'first', DAY, 100)
  const rotated = await run(REFRESH, 'first', 'access2', HOUR, 100, 'second', DAY, GRACE, 'sealed')
  expect(rotated).toEqual(expect.arrayContaining(['refreshed', GRANT]))
  const again = await run(at(back, REFRESH), 'first', 'access3', HOUR, 100, 'third', DAY, GRACE, 'another')
  expect(again).toEqual(expected)
})

it('C6 a retry with a refresh token that an earlier version spent gets the same response', async () => {
  const { port } = await startRedis()
  const { store } = await open(`valkey://127.0.0.1:${port}`)
  const run = (script: Script, ...args: readonly (string | number)[]): Promise<StoreReply> =>
    store.run(script, [`${store.prefix}state`], [store.prefix, ...args])
  await run({ name: 'state', source: "redis.call('HSET', KEYS[1], 'epoch', '1')" })
  await run(ISSUE, '1', GRANT, '10.0.0.1', 'access', HOUR, 'first', DAY, 100)
  await run(REFRESH, 'first', 'access2', HOUR, 100, 'second', DAY, GRACE, 'sealed')
  await run({
    name: 'state',
    source: "redis.call('SET', ARGV[1] .. 'r:first', 'sealed by an earlier version')",
  })
  const again = await run(REFRESH, 'first', 'access3', HOUR, 100, 'third', DAY, GRACE, 'another')
  expect(again).toEqual(['replayed', 'sealed by an earlier version'])
})
