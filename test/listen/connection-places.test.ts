import { expect, it, onTestFinished } from 'vitest'
import { createConnectionPlaces } from '../../src/listen/connection-places.ts'
import { Account, type Holder, type Holding } from '../../src/memory/account.ts'
import { stillClock } from '../support/clock.ts'

interface Bench {
  /** Opens connections, and fails unless each gets a place. */
  open(key: string, count: number, state?: Partial<Holder>): Holding[]
  mayOpen(key: string): boolean
  /** The clients whose connections lost their places. */
  readonly lost: readonly string[]
  readonly account: Account
  advance(ms: number): void
  release(holding: Holding): void
}

function bench(most: number): Bench {
  const clock = stillClock()
  const lost: string[] = []
  const account = new Account({ limit: 1e9, clock, onStage() {}, onShed() {} })
  onTestFinished(() => account.close())
  let taken = 0
  const places = createConnectionPlaces({
    limits: { maxConnections: most },
    clock,
    onTaken: () => (taken += 1),
  })
  const mayOpen = (key: string): boolean => {
    const before = taken
    const may = places.mayTake(account.client(key, key === 'proxy'))
    expect(taken - before).toBe(lost.length - before)
    return may
  }
  return {
    lost,
    account,
    mayOpen,
    advance: (ms) => clock.advance(ms),
    release: places.release,
    open: (key, count, state = {}) =>
      Array.from({ length: count }, () => {
        expect(mayOpen(key)).toBe(true)
        const cut = (): void => void lost.push(key)
        const holder = { working: false, atDevice: false, cutUnread: () => 0, cut, ...state }
        const holding = account.open(account.client(key, key === 'proxy'), holder)
        places.take(holding)
        return holding
      }),
  }
}

it('H268 the client with most connections loses places to others, until they have as many', () => {
  const { open, mayOpen, lost } = bench(10)
  open('greedy', 10)
  open('modest', 5)
  expect(lost).toEqual(Array(5).fill('greedy'))
  expect(mayOpen('modest')).toBe(false)
  expect(mayOpen('greedy')).toBe(false)
})

it('H268 a connection without work goes first, and none with a request at the device', () => {
  const { open, mayOpen, lost } = bench(6)
  open('greedy', 3, { working: true, atDevice: true })
  open('second', 3, { working: true, atDevice: true })
  expect(mayOpen('modest')).toBe(false)
  const idle = bench(3)
  idle.open('greedy', 1, { working: true })
  idle.open('greedy', 1, { working: true, cut: () => expect.fail('it works, and another does not') })
  idle.open('greedy', 1)
  idle.open('modest', 1)
  expect(idle.lost).toEqual(['greedy'])
  expect(lost).toEqual([])
})

it('H268 where every client has one connection, one that holds nothing gets a place that is a second old and without work', () => {
  const { open, mayOpen, advance, lost } = bench(3)
  open('works', 1, { working: true })
  open('first', 1)
  open('second', 1)
  expect(mayOpen('new')).toBe(false)
  advance(1_000)
  open('new', 1)
  expect(mayOpen('new')).toBe(false)
  expect(lost).toEqual(['first'])
})

it('H268 a client with a live grant goes before one without', () => {
  const { open, account, lost } = bench(2)
  for (const { client } of open('granted', 1)) client.grant = 'grant'
  open('other', 1)
  const spare = account.open(account.client('back', false), {
    working: true,
    atDevice: false,
    cutUnread: () => 0,
    cut() {},
  })
  spare.client.grant = 'another grant'
  open('back', 1)
  expect(lost).toEqual(['other'])
})

it('H268 a trusted proxy loses no place, and gets one of a client that has most', () => {
  const { open, mayOpen, lost } = bench(6)
  open('proxy', 4)
  open('greedy', 2)
  expect(mayOpen('proxy')).toBe(true)
  expect(lost).toEqual(['greedy'])
})

it('H268 a connection that closes gives its place back once', () => {
  const { open, mayOpen, release } = bench(2)
  const [first] = open('a', 2)
  expect(mayOpen('a')).toBe(false)
  if (first === undefined) throw new Error('no connection')
  release(first)
  release(first)
  open('a', 1)
  expect(mayOpen('a')).toBe(false)
})
