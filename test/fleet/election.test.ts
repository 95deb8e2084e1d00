import { expect, it } from 'vitest'
import { elect } from '../../src/fleet/find-primary.ts'

const view = (name: string, epoch: number) => ({ node: { host: name, port: 6379 }, name, epoch })

it.each([
  ['the latest failover decides', [view('a', 3), view('a', 3), view('b', 4)], 'b'],
  ['most of those decide that know of it', [view('a', 4), view('b', 4), view('b', 4), view('a', 3)], 'b'],
  ['a tie is decided by the name', [view('b', 4), view('a', 4)], 'a'],
])('H145 of the sentinels %s, whichever answers first', (_, views, elected) => {
  expect(elect(views)?.name).toBe(elected)
  expect(elect(views.toReversed())?.name).toBe(elected)
})
