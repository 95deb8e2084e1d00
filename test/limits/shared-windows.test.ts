import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createSharedWindows } from '../../src/fleet/windows.ts'
import type { LimitDecision } from '../../src/http/admission.ts'
import { createWindowTable, type WindowPolicy, type WindowTable } from '../../src/limits/window-table.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'
import { type ModelServer, type ModelStore, type Question, startModelServer } from './model-server.ts'

interface Sidecar {
  readonly windows: WindowTable
  readonly store: ModelStore
  /** The requests that were counted locally. */
  readonly fallbacks: unknown[]
}

const NAME = '{p}:w:api:'

function startSidecar(
  server: ModelServer,
  clock: MovableClock,
  {
    policy = { requests: 3, window: 1000 },
    maxKeys = 1000,
  }: { policy?: WindowPolicy; maxKeys?: number } = {},
): Sidecar {
  const store = server.connect()
  const fallbacks: unknown[] = []
  const windows = createSharedWindows(policy, {
    store,
    endpoint: 'api',
    clock,
    maxKeys,
    onFallback: (_, error) => fallbacks.push(error),
    onAnswer: () => {},
    onLost: () => {
      throw new Error('no window was lost')
    },
  })
  return { windows, store, fallbacks }
}

/** Counts several requests of one turn of the event loop. */
function countAll({ windows }: Sidecar, key: string, times: number): Promise<LimitDecision[]> {
  return Promise.all(Array.from({ length: times }, () => windows.count(key)))
}

const admitted = (decisions: readonly LimitDecision[]): number =>
  decisions.filter((decision) => decision.admitted).length

const wait = (...times: readonly number[]) =>
  fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(...times) })

/** The first window closes in the instant in which another client takes its place. */
const CLOSING_WHILE_FULL = [
  { kind: 'count', key: 'a' },
  { kind: 'wait', ms: 99 },
  { kind: 'count', key: 'b' },
  { kind: 'wait', ms: 1 },
  { kind: 'count', key: 'f' },
  { kind: 'count', key: 'a' },
] as const

it('C14 C17 H138 one sidecar alone decides as with a table of its own, for any sequence', async () => {
  const count = fc.record({ kind: fc.constant('count' as const), key: fc.constantFrom(...'abcdef') })
  const steps = fc.array(fc.oneof({ weight: 5, arbitrary: count }, wait(0, 1, 37, 99, 101, 250)), {
    maxLength: 100,
  })
  await fc.assert(
    fc.asyncProperty(
      steps,
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 7 }),
      async (taken, requests, maxKeys) => {
        const clock = stillClock()
        const policy = { requests, window: 100 }
        const sidecar = startSidecar(startModelServer(clock, 0), clock, { policy, maxKeys })
        const local = createWindowTable(policy, { clock, maxKeys })
        for (const step of taken) {
          if (step.kind === 'wait') {
            await clock.advance(step.ms)
            continue
          }
          const expected = local.count(step.key)
          const decision = await sidecar.windows.count(step.key)
          // A request at the very instant of the close: on the server, the window lives through that millisecond. The table opens
          // the next one or, if another client has taken its place meanwhile, counts in the overflow window.
          const isNext = expected.closesIn === policy.window || (expected.overflow && !decision.overflow)
          if (isNext && decision.closesIn <= 1) return
          expect(decision).toMatchObject({ ...expected, closesIn: expect.any(Number) })
          expect(decision.closesIn).toBeGreaterThanOrEqual(expected.closesIn)
          expect(decision.closesIn).toBeLessThanOrEqual(expected.closesIn + 1)
          expect(sidecar.windows.size).toBeLessThanOrEqual(maxKeys)
        }
      },
    ),
    { numRuns: 200, examples: [[[...CLOSING_WHILE_FULL], 2, 1]] },
  )
})

type Step =
  | { readonly kind: 'count'; readonly by: number; readonly key: string; readonly times: number }
  | { readonly kind: 'run' | 'reply'; readonly by: number }
  | { readonly kind: 'wait'; readonly ms: number }

/** The window opens in the middle of a millisecond of the server, and lives until the end of its last one. */
const ASKED_BEFORE_THE_CLOSE: readonly Step[] = [
  { kind: 'count', by: 1, key: 'a', times: 1 },
  { kind: 'run', by: 1 },
  { kind: 'reply', by: 1 },
  { kind: 'wait', ms: 99.5 },
  { kind: 'count', by: 1, key: 'a', times: 1 },
]

/** Questions and answers travel as slowly as a test likes, in order. */
async function play(steps: readonly Step[], requests: number): Promise<void> {
  const clock = stillClock()
  const server = startModelServer(clock)
  const policy = { requests, window: 100 }
  const sidecars = [0, 1, 2].map(() => startSidecar(server, clock, { policy }))
  const [asked, run]: [Question[][], Question[][]] = [[], []]
  for (const { store } of sidecars) {
    store.mode = 'wait'
    asked.push(store.waiting)
    run.push([])
  }
  const decisions: LimitDecision[] = []

  function count({ by, key, times }: Step & { kind: 'count' }): void {
    for (let i = 0; i < times; i += 1) {
      const decision = sidecars[by]?.windows.count(key)
      if (decision instanceof Promise) void decision.then((late) => decisions.push(late))
      else if (decision !== undefined) {
        const window = server.open(`${NAME}${requests}:100:${key}`)
        expect(window?.count, 'refused at once only while the window is open and used up').toBe(requests)
        expect(decision).toMatchObject({ admitted: false, remaining: 0 })
        const closesAt = (window?.closesAt ?? 0) + 1 - 12_345.6
        expect(clock.monotonic() + decision.closesIn).toBeGreaterThanOrEqual(
          Math.min(closesAt, clock.monotonic() + 99),
        )
        decisions.push(decision)
      }
    }
  }

  function carry(by: number): void {
    const question = asked[by]?.shift()
    question?.run()
    if (question !== undefined) run[by]?.push(question)
  }

  for (const step of steps) {
    if (step.kind === 'wait') await clock.advance(step.ms)
    else if (step.kind === 'count') count(step)
    else if (step.kind === 'run') carry(step.by)
    else run[step.by]?.shift()?.reply()
    await nextTurn()
  }
  for (const by of [0, 1, 2]) {
    while ((asked[by]?.length ?? 0) > 0) carry(by)
    for (const question of run[by] ?? []) question.reply()
  }
  await nextTurn()
  const wanted = steps.reduce((sum, step) => sum + (step.kind === 'count' ? step.times : 0), 0)
  expect(decisions).toHaveLength(wanted)
  for (const { count } of server.opened) expect(count).toBeLessThanOrEqual(requests)
  expect(admitted(decisions)).toBe(server.opened.reduce((sum, { count }) => sum + count, 0))
  for (const { closesIn, remaining } of decisions) {
    expect(closesIn).toBeGreaterThan(0)
    expect(remaining).toBeGreaterThanOrEqual(0)
  }
  expect(sidecars.flatMap(({ fallbacks }) => fallbacks)).toEqual([])
}

it('C14 H138 H140 three sidecars pass what the server counted, however slowly questions and answers travel', async () => {
  const by = fc.integer({ min: 0, max: 2 })
  const step: fc.Arbitrary<Step> = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('count' as const),
        by,
        key: fc.constantFrom('a', 'b'),
        times: fc.integer({ min: 1, max: 4 }),
      }),
    },
    { weight: 6, arbitrary: fc.record({ kind: fc.constantFrom('run' as const, 'reply' as const), by }) },
    { weight: 2, arbitrary: wait(0.3, 1, 20, 99.5, 100, 101) },
  )
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 5 }), play), {
    numRuns: 150,
    examples: [[[...ASKED_BEFORE_THE_CLOSE], 1]],
  })
})

it('C14 H138 the requests of one turn travel in calls of at most 256 windows, in order', async () => {
  const clock = stillClock()
  const sidecar = startSidecar(startModelServer(clock), clock)
  const one = await countAll(sidecar, 'a', 5)
  expect(one.map(({ remaining, admitted: passed }) => [passed, remaining])).toEqual([
    [true, 2],
    [true, 1],
    [true, 0],
    [false, 0],
    [false, 0],
  ])
  expect(sidecar.store.asked).toBe(1)
  await Promise.all(Array.from({ length: 600 }, (_, i) => sidecar.windows.count(`client ${i}`)))
  expect(sidecar.store.asked).toBe(1 + 3)
})

it('H140 a window that is used up costs the server nothing until it closes', async () => {
  const clock = stillClock()
  const server = startModelServer(clock)
  const [sidecar, other] = [startSidecar(server, clock), startSidecar(server, clock)]
  expect(admitted(await countAll(sidecar, 'a', 3))).toBe(3)
  for (let i = 0; i < 10_000; i += 1) {
    expect(sidecar.windows.count('a')).toMatchObject({ admitted: false, limit: 3, remaining: 0 })
  }
  expect(sidecar.store.asked).toBe(1)
  // The other sidecar learns it from the server, once.
  expect(await other.windows.count('a')).toMatchObject({ admitted: false })
  expect(other.windows.count('a')).not.toBeInstanceOf(Promise)
  await clock.advance(999)
  expect(sidecar.windows.count('a')).toMatchObject({ admitted: false, closesIn: 2 })
  await clock.advance(2)
  expect(await sidecar.windows.count('a')).toMatchObject({
    admitted: true,
    limit: 3,
    remaining: 2,
    closesIn: 1000,
  })
})

it('H140 however long question and answer travel, no refusal comes after the close and no reset before it', async () => {
  const clock = stillClock()
  const sidecar = startSidecar(startModelServer(clock), clock, { policy: { requests: 1, window: 1000 } })
  sidecar.store.mode = 'wait'
  const first = sidecar.windows.count('a')
  await nextTurn()
  const [question] = sidecar.store.waiting
  await clock.advance(50)
  question?.run()
  await clock.advance(900)
  question?.reply()
  expect(await first).toMatchObject({ admitted: true })
  const refused = await sidecar.windows.count('a')
  expect(refused.admitted).toBe(false)
  expect(refused.closesIn).toBeGreaterThanOrEqual(100)
  await clock.advance(50)
  // The sidecar cannot know whether the window is still open, so the server decides.
  sidecar.store.mode = 'answer'
  expect(await sidecar.windows.count('a')).toMatchObject({ admitted: false })
  expect(sidecar.store.asked).toBe(2)
  await clock.advance(51)
  expect(await sidecar.windows.count('a')).toMatchObject({ admitted: true })
})

it('C17 a sidecar opens at most `maxKeys` windows on the server, and one that new clients share', async () => {
  const clock = stillClock()
  const server = startModelServer(clock)
  const [sidecar, other] = [startSidecar(server, clock, { maxKeys: 2 }), startSidecar(server, clock)]
  await countAll(other, 'elsewhere', 2)
  await countAll(sidecar, 'a', 1)
  await countAll(sidecar, 'b', 1)
  const sprayed = await Promise.all(Array.from({ length: 5 }, (_, i) => sidecar.windows.count(`new ${i}`)))
  expect(admitted(sprayed)).toBe(3)
  expect(server.opened.map(({ name }) => name.split(':').at(-1))).toEqual(['elsewhere', 'a', 'b', 'overflow'])
  // The windows that are open continue.
  expect(await sidecar.windows.count('a')).toMatchObject({ admitted: true, remaining: 1 })
  const { asked } = sidecar.store
  for (let i = 0; i < 1000; i += 1)
    expect(sidecar.windows.count(`flood ${i}`)).toMatchObject({ admitted: false })
  expect(sidecar.store.asked).toBe(asked)
  await clock.advance(1001)
  expect(await sidecar.windows.count('new 0')).toMatchObject({ admitted: true, remaining: 2 })
  expect(sidecar.windows.size).toBeLessThanOrEqual(2)
})

it('C17 in a full table, a client continues in the window that another sidecar opened', async () => {
  const clock = stillClock()
  const server = startModelServer(clock)
  const [sidecar, other] = [startSidecar(server, clock, { maxKeys: 1 }), startSidecar(server, clock)]
  await countAll(other, 'client', 2)
  await countAll(sidecar, 'a', 1)
  expect(admitted(await countAll(sidecar, 'client', 4))).toBe(1)
  expect(await sidecar.windows.count('new')).toMatchObject({ admitted: true, remaining: 2 })
})

it('C17 a window that reopens blocks no place of the windows before it', async () => {
  const clock = stillClock()
  const server = startModelServer(clock)
  const sidecar = startSidecar(server, clock, { maxKeys: 3 })
  await countAll(sidecar, 'a', 1)
  await clock.advance(1)
  await countAll(sidecar, 'b', 1)
  // The question is sent before the window closes, and arrives after it.
  await clock.advance(998.5)
  sidecar.store.mode = 'wait'
  const late = sidecar.windows.count('a')
  await nextTurn()
  await clock.advance(3)
  sidecar.store.waiting[0]?.run()
  sidecar.store.waiting[0]?.reply()
  expect(await late).toMatchObject({ admitted: true, remaining: 2 })
  sidecar.store.mode = 'answer'
  await countAll(sidecar, 'c', 1)
  await countAll(sidecar, 'd', 1)
  expect(server.opened.map(({ name }) => name.split(':').at(-1))).toEqual(['a', 'b', 'a', 'c', 'd'])
})

it('H139 without an answer a sidecar counts alone, and admits no client that had used up its window', async () => {
  const clock = stillClock()
  const sidecar = startSidecar(startModelServer(clock), clock)
  await countAll(sidecar, 'used up', 3)
  await countAll(sidecar, 'a', 1)
  sidecar.store.mode = 'fail'
  expect(admitted(await countAll(sidecar, 'a', 10))).toBe(3)
  expect(sidecar.fallbacks).toHaveLength(10)
  expect(sidecar.windows.count('used up')).toMatchObject({ admitted: false })
  const { asked } = sidecar.store
  sidecar.store.up = false
  expect(sidecar.windows.count('b')).toMatchObject({ admitted: true, remaining: 2 })
  expect(sidecar.windows.count('used up')).toMatchObject({ admitted: false })
  expect(sidecar.store.asked).toBe(asked)
  expect(sidecar.fallbacks).toHaveLength(11)
  // Back: the shared window goes on where it was, and another outage gives no fresh local one.
  Object.assign(sidecar.store, { mode: 'answer', up: true })
  expect(await sidecar.windows.count('a')).toMatchObject({ admitted: true, remaining: 1 })
  sidecar.store.up = false
  expect(sidecar.windows.count('a')).toMatchObject({ admitted: false })
})

it('H139 the windows of an outage take no memory once they have closed', async () => {
  const clock = stillClock()
  const sidecar = startSidecar(startModelServer(clock), clock)
  sidecar.store.up = false
  for (let i = 0; i < 100; i += 1) sidecar.windows.count(`client ${i}`)
  expect(sidecar.windows.size).toBe(100)
  Object.assign(sidecar.store, { up: true, mode: 'fail' })
  for (let i = 0; i < 100; i += 1) await sidecar.windows.count(`client ${i}`)
  // The server may have opened these.
  expect(sidecar.windows.size).toBe(200)
  sidecar.store.mode = 'answer'
  await clock.advance(1000)
  for (let i = 0; i < 100; i += 1) await sidecar.windows.count(`new ${i}`)
  expect(sidecar.windows.size).toBe(100)
})

it('H139 a reply that is no count is no answer', async () => {
  const clock = stillClock()
  const sidecar = startSidecar(startModelServer(clock), clock)
  for (const reply of [null, 'OK', [], ['0', 5, 0], [0, 5, 0, 0, 5, 0]]) {
    sidecar.store.run = () => Promise.resolve(reply)
    expect(await sidecar.windows.count(`a ${reply}`)).toMatchObject({ admitted: true })
  }
  expect(sidecar.fallbacks).toHaveLength(5)
})

it('C13 H138 another policy opens new windows; the same keeps them; sidecars with different limits do not mix', async () => {
  const clock = stillClock()
  const server = startModelServer(clock)
  const [sidecar, other] = [startSidecar(server, clock), startSidecar(server, clock)]
  await countAll(sidecar, 'a', 3)
  sidecar.windows.applyPolicy({ requests: 3, window: 1000 })
  expect(sidecar.windows.count('a')).toMatchObject({ admitted: false })
  sidecar.windows.applyPolicy({ requests: 5, window: 2000 })
  expect(sidecar.windows.size).toBe(0)
  expect(await sidecar.windows.count('a')).toMatchObject({
    admitted: true,
    limit: 5,
    remaining: 4,
    closesIn: 2000,
  })
  expect(await other.windows.count('a')).toMatchObject({ admitted: false, limit: 3 })
  other.windows.applyPolicy({ requests: 5, window: 2000 })
  expect(await other.windows.count('a')).toMatchObject({ admitted: true, remaining: 3 })
})

it('C13 a request that waits during a reload is decided by the policy at its arrival', async () => {
  const clock = stillClock()
  const sidecar = startSidecar(startModelServer(clock), clock)
  const waiting = countAll(sidecar, 'a', 4)
  sidecar.windows.applyPolicy({ requests: 1, window: 500 })
  expect((await waiting).map(({ limit }) => limit)).toEqual([3, 3, 3, 3])
  expect(admitted(await countAll(sidecar, 'a', 4))).toBe(1)
})

it('H150 a sidecar knows which shared windows are used up, until when, and how often it refused', async () => {
  const clock = stillClock()
  const server = startModelServer(clock)
  const [one, two] = [startSidecar(server, clock), startSidecar(server, clock)]
  await countAll(two, 'a', 2)
  await countAll(one, 'b', 1)
  expect(one.windows.usedUp()).toEqual([])
  await countAll(one, 'a', 3)
  await countAll(one, 'a', 2)
  const [first, ...rest] = one.windows.usedUp()
  expect(rest).toEqual([])
  expect(first).toMatchObject({ key: 'a', refused: 4 })
  expect((first?.closesAt ?? 0) - clock.monotonic()).toBeLessThanOrEqual(1001)
  expect(two.windows.usedUp()).toEqual([])

  await clock.advance(1002)
  expect(one.windows.usedUp()).toEqual([])
  await countAll(one, 'a', 3)
  expect(one.windows.usedUp()).toMatchObject([{ key: 'a', refused: 0 }])
})

it('H150 a key with a used-up window on the server and one of this sidecar alone appears once', async () => {
  const clock = stillClock()
  const sidecar = startSidecar(startModelServer(clock), clock)
  sidecar.store.up = false
  for (let i = 0; i < 5; i += 1) void sidecar.windows.count('a')
  await clock.advance(500)
  sidecar.store.up = true
  await countAll(sidecar, 'a', 4)
  const [shown, ...rest] = sidecar.windows.usedUp()
  expect([shown, rest]).toMatchObject([{ key: 'a', refused: 3 }, []])
  expect((shown?.closesAt ?? 0) - clock.monotonic()).toBeGreaterThan(500)
})

it('H150 windows that a sidecar counts alone are among the used-up ones', () => {
  const clock = stillClock()
  const sidecar = startSidecar(startModelServer(clock), clock)
  sidecar.store.up = false
  for (let i = 0; i < 5; i += 1) void sidecar.windows.count('a')
  expect(sidecar.windows.usedUp()).toMatchObject([{ key: 'a', refused: 2 }])
})
