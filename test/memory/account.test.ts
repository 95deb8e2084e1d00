import fc from 'fast-check'
import { expect, it, onTestFinished } from 'vitest'
import { Account, type Holder, type Holding, type Shed, type Stage } from '../../src/memory/account.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'

const LIMIT = 1_000

interface Bench {
  readonly account: Account
  readonly clock: MovableClock
  readonly stages: (Stage | undefined)[]
  readonly shed: string[]
  /** Lets the account look. */
  look(): void
  hold(key: string, bytes: number, holder?: Partial<Holder>): Holding
}

function bench(): Bench {
  const clock = stillClock()
  const stages: (Stage | undefined)[] = []
  const shed: string[] = []
  const account = new Account({
    limit: LIMIT,
    clock,
    onStage: (stage) => stages.push(stage),
    onShed: (stage: Stage, what: Shed) => shed.push(`${stage} ${what}`),
  })
  onTestFinished(() => account.close())
  return {
    account,
    clock,
    stages,
    shed,
    look: () => account.measured(0),
    hold(key, bytes, holder = {}) {
      const whole = { working: true, atDevice: false, cutUnread: () => 0, cut() {}, ...holder }
      const holding = account.open(account.client(key, false), whole)
      holding.set('requests', bytes)
      return holding
    },
  }
}

it('H244 what is held is summed up over all clients, by client and by kind, and is given back', () => {
  const { account, hold } = bench()
  const one = hold('a', 100)
  const two = hold('a', 50)
  two.set('bodies', 7)
  two.add('bodies', 3)
  expect([account.total, one.client.bytes, account.sums.requests, account.sums.bodies]).toEqual([
    160, 160, 150, 10,
  ])
  two.close()
  two.add('bodies', 99)
  expect([account.total, one.client.bytes, account.sums.bodies]).toEqual([100, 100, 0])
  one.close()
  expect(account.total).toBe(0)
  expect(account.client('a', false).holdings.size).toBe(0)
})

it('H245 a client above its share gets nothing more, and one that holds little does', () => {
  const { account, hold, shed } = bench()
  const greedy = hold('greedy', 800)
  const modest = hold('modest', 20)
  expect(account.mayHold(greedy.client, 10, 'stream')).toBe(false)
  expect(account.mayHold(modest.client, 10, 'stream')).toBe(true)
  expect(account.mayHold(account.client('new', false), 10, 'connection')).toBe(true)
  expect(shed).toEqual(['shares stream'])
})

const works = fc.array(
  fc.record({
    does: fc.constantFrom('take', 'take', 'take', 'take', 'take', 'give back', 'look', 'measure', 'turn'),
    by: fc.nat(3),
    bytes: fc.integer({ min: 1, max: 400 }),
  }),
  { maxLength: 60 },
)

it('H245 a request is refused for memory exactly if its client may not hold it, whenever the account last looked', async () => {
  await fc.assert(
    fc.asyncProperty(works, async (all) => {
      const { account, hold } = bench()
      const holdings = ['a', 'a', 'b', 'c'].map((key) => hold(key, 0))
      for (const { does, by, bytes } of all) {
        const holding = holdings[by] ?? expect.fail()
        if (does === 'take') {
          const may = account.mayHold(holding.client, bytes, 'request')
          expect(holding.take(bytes, 0)).toBe(may)
        } else if (does === 'give back') holding.set('requests', 0)
        else if (does === 'turn') await nextTurn()
        else account.measured(does === 'look' ? 0 : bytes / 400)
      }
    }),
  )
})

it('H245 whoever holds most loses first, what is not at the device before what is, until the others have room', () => {
  const { account, hold, look } = bench()
  const cut: string[] = []
  const cutting = (name: string) => ({ cut: () => void cut.push(name) })
  hold('greedy', 300, { ...cutting('at the device'), atDevice: true })
  for (const name of ['first', 'second', 'third', 'fourth', 'fifth']) hold('greedy', 120, cutting(name))
  const modest = hold('modest', 50, cutting('modest'))
  look()
  expect(account.total).toBeLessThanOrEqual(0.8 * LIMIT)
  expect(cut).toEqual(['first', 'second'])
  expect(modest.bytes).toBe(50)
})

it('H245 connections without work of clients above the share close after a second, those of others stay', async () => {
  const { clock, hold, look, shed } = bench()
  const cut: string[] = []
  hold('greedy', 700, { cut: () => void cut.push('busy') })
  hold('greedy', 50, { working: false, cut: () => void cut.push('idle') })
  hold('modest', 20, { working: false, cut: () => void cut.push('modest') })
  look()
  await clock.advance(999)
  look()
  expect(cut).toEqual([])
  await clock.advance(1)
  look()
  expect(cut).toEqual(['idle'])
  expect(shed).toEqual(['idle connection'])
})

it('H245 answers that nobody reads are given up from their stage on', () => {
  const { hold, look, shed } = bench()
  const holding = hold('a', 650, { cutUnread: () => 2 })
  look()
  expect(shed).toEqual([])
  holding.set('requests', 720)
  look()
  expect(shed).toEqual(['answers answer', 'answers answer'])
})

it('H245 new HTTP/2 connections are offered fewer streams as the account fills, at least eight', () => {
  const { account, hold } = bench()
  const offered = [0, 500, 725, 790, 900].map((bytes) => {
    const holding = hold('a', bytes)
    const streams = account.streamsOffered(100)
    holding.close()
    return streams
  })
  expect(offered).toEqual([100, 100, 50, 8, 8])
})

it('H245 a connection that is offered all of its streams counts as no load that was shed', () => {
  const { account, hold, shed } = bench()
  hold('a', 790)
  expect(account.streamsOffered(8)).toBe(8)
  expect(shed).toEqual([])
  expect(account.streamsOffered(9)).toBe(8)
  expect(shed).toEqual(['streams streams'])
})

it('H246 at the end clients with a live grant share first, and a client that holds nothing may come to log in', () => {
  const { account, hold } = bench()
  const granted = hold('granted', 60)
  granted.client.grant = 'grant'
  for (let i = 0; i < 90; i += 1) hold(`other ${i}`, 10)
  expect(account.mayHold(granted.client, 100, 'request')).toBe(true)
  expect(account.mayHold(account.client('other 1', false), 100, 'connection')).toBe(false)
  expect(account.mayHold(account.client('new', false), 30, 'connection')).toBe(true)
  account.grantsEnded(new Set(['grant']))
  expect(account.mayHold(granted.client, 100, 'request')).toBe(false)
})

it('H246 a client with a grant is known when it comes back, until the grant ends', () => {
  const { account, hold } = bench()
  const holding = hold('a', 10)
  holding.client.grant = 'grant'
  holding.close()
  expect(account.client('a', false).grant).toBe('grant')
  account.grantsEnded(new Set(['grant']))
  expect(account.client('a', false).grant).toBeUndefined()
})

it('H245 a trusted proxy is not judged: the clients behind it are', () => {
  const { account, hold } = bench()
  const proxy = account.open(account.client('proxy', true), hold('spare', 0).holder)
  proxy.set('connections', 500)
  const greedy = hold('behind', 400)
  expect(account.mayHold(proxy.client, 100, 'connection')).toBe(true)
  expect(account.mayHold(greedy.client, 100, 'stream')).toBe(false)
})

it('H247 if the memory of the process is fuller than the account says, shares shrink to what it allows', () => {
  const { account, hold, stages } = bench()
  const greedy = hold('greedy', 300)
  const modest = hold('modest', 10)
  account.measured(0.85)
  expect(stages).toEqual(['shares'])
  expect(account.mayHold(greedy.client, 10, 'stream')).toBe(false)
  expect(account.mayHold(modest.client, 10, 'stream')).toBe(true)
  account.measured(0)
  expect(stages).toEqual(['shares', undefined])
  expect(account.mayHold(greedy.client, 10, 'stream')).toBe(true)
})

it('H245 a client that reaches the limit within one turn is relieved at its end', async () => {
  const { hold, stages } = bench()
  hold('a', 960)
  await nextTurn()
  expect(stages).toEqual(['grants', undefined])
})
