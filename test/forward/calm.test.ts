import fc from 'fast-check'
import { expect, it, vi } from 'vitest'
import { createBreaker } from '../../src/device/breaker.ts'
import { DeviceFault } from '../../src/device/failure.ts'
import type { ResponseHandler } from '../../src/device/request.ts'
import { createPlaces } from '../../src/forward/learner.ts'
import { createUpstream, type UpstreamDependencies } from '../../src/forward/upstream.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { admitted, PLAIN } from '../support/admitted.ts'
import { stillClock } from '../support/clock.ts'
import { requestHead } from '../support/exchange.ts'
import { unhurried } from './pace.ts'

const HEAD = { status: 200, reason: 'OK', fields: [], remembered: false, framing: 0 } as const

/** A device behind learned places. `always`: the learner is told of every request. */
function startUpstream(always: boolean) {
  const clock = stillClock()
  const { queue, learner } = createPlaces({
    ...{ min: 1, max: 8, waiting: 64, maxWait: 60_000, clock },
    onChange() {},
    onCeiling() {},
  })
  if (learner === undefined) throw new Error('there is nothing to learn')
  if (always) Object.defineProperty(learner.calm, 'most', { get: () => 0, set() {} })
  /** The requests at the device, in the order in which they came. */
  const atDevice: ResponseHandler[] = []
  let reuses = true
  const borrow = () => ({
    connection: {
      send(_request: unknown, handler: ResponseHandler) {
        atDevice.push(handler)
        handler.sent?.(reuses)
      },
      abort() {},
    },
    release() {},
  })
  const upstream = createUpstream({
    ...{ route: '', queue, learner, clock, ...unhurried(60_000, clock) },
    connections: {
      ...{ borrow, tolerant: false, version: '1.1' },
      each: (tell: (handler: ResponseHandler) => void) => atDevice.forEach(tell),
    },
    fields: { request: PLAIN, response: { origin: '', rewrite: false, replaced: [], ...PLAIN.response } },
    breaker: createBreaker(clock),
    maxBody: Number.POSITIVE_INFINITY,
    upgrading: { count: 0 },
    events: { responded() {}, relayed() {}, failed() {} },
  } as unknown as UpstreamDependencies) // all that such a request needs
  const take = (at: number): ResponseHandler | undefined => atDevice.splice(at % atDevice.length, 1)[0]
  return {
    ...{ clock, queue, learner, atDevice },
    ask(target: string, method = 'GET'): void {
      upstream(admitted(requestHead({ target, method })), {
        ended() {},
        onBug: expect.fail,
        refuses: () => true,
      })
    },
    /** The device answers a request, by its place in the order. */
    answer(at: number): void {
      const handler = take(at)
      handler?.head(HEAD, clock.monotonic())
      handler?.end()
    },
    fail(at: number): void {
      take(at)?.failed(new DeviceFault('http_response_timeout'), 'silent')
    },
    /** The device dropped an idle connection, and the request is sent again. */
    drop(at: number): void {
      take(at)?.failed(new DeviceFault('connection_terminated'), 'stale')
    },
    open(isOpen: boolean): void {
      reuses = isOpen
    },
  }
}

type Upstream = ReturnType<typeof startUpstream>

/** What a client, a device or the time does. */
const steps = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.record({ does: fc.constant('ask'), by: fc.nat(2) }) },
    { weight: 8, arbitrary: fc.record({ does: fc.constant('answer'), by: fc.nat(7) }) },
    {
      weight: 5,
      arbitrary: fc.record({ does: fc.constant('wait'), by: fc.constantFrom(1, 5, 12, 60, 600) }),
    },
    { weight: 2, arbitrary: fc.record({ does: fc.constant('round'), by: fc.integer({ min: 1, max: 6 }) }) },
    fc.record({ does: fc.constantFrom('fail', 'drop', 'refused', 'reset', 'forget'), by: fc.nat(7) }),
  ),
  { minLength: 1, maxLength: 150 },
)

async function play({ clock, learner, ...device }: Upstream, does: string, by: number): Promise<void> {
  switch (does) {
    case 'ask':
      return device.ask(['/', '/a?b', '/c'][by] ?? '/')
    case 'wait':
      return clock.advance(by)
    case 'round':
      // As many as the device gets at once, over and over.
      for (let i = 0; i < 40; i += 1) {
        while (device.atDevice.length < by && device.queue.waiting === 0) {
          const before = device.atDevice.length
          device.ask('/')
          if (device.atDevice.length === before) break
        }
        await clock.advance(4)
        while (device.atDevice.length > 0) device.answer(0)
      }
      return
    case 'refused':
    case 'reset':
      return learner[does]()
    case 'forget':
      return learner.law.forget()
    default:
      if (device.atDevice.length > 0) device[does as 'answer' | 'fail' | 'drop'](by)
  }
}

it('C25 learns the same from the requests that it is told of late, or not at all', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      const both = [startUpstream(false), startUpstream(true)]
      for (const { does, by } of all) {
        for (const each of both) await play(each, does, by)
        await nextTurn()
        const [calm, told] = both.map(({ queue, learner, atDevice }) => ({
          ...{ places: queue.places, inside: queue.inside, atDevice: atDevice.length },
          ...{
            ceiling: learner.law.ceiling,
            outage: learner.law.outage,
            answers: learner.law.answers,
          },
        }))
        expect(calm).toEqual(told)
      }
    }),
    { numRuns: 150 },
  )
})

it('C25 asks nothing of the bound while one place is free and the device carries the others', async () => {
  const device = startUpstream(false)
  const { learner, clock } = device
  device.ask('/')
  device.answer(0)
  const asked = (['sent', 'answered', 'left'] as const).map((event) => vi.spyOn(learner, event))
  for (let i = 0; i < 100; i += 1) {
    device.ask('/')
    await clock.advance(10)
    device.answer(0)
  }
  expect(asked.map(({ mock }) => mock.calls.length)).toEqual([0, 0, 0])
  // The 11th millisecond is no longer the network's.
  device.ask('/')
  await clock.advance(11)
  device.answer(0)
  expect(asked.map(({ mock }) => mock.calls.length)).toEqual([1, 1, 1])
  // Two at once have all places.
  device.ask('/')
  device.ask('/')
  expect(asked.map(({ mock }) => mock.calls.length)).toEqual([3, 1, 1])
})

it('H264 a POST that was sent twice comes to the device once, and leaves it once', () => {
  const device = startUpstream(false)
  const changing = vi.spyOn(device.learner, 'changing')
  device.ask('/', 'POST')
  device.atDevice[0]?.sent?.(false)
  expect(changing.mock.calls).toEqual([[1]])
  device.answer(0)
  expect(changing.mock.calls).toEqual([[1], [-1]])
})
