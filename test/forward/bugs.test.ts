import { expect, it, vi } from 'vitest'
import { createBreaker } from '../../src/device/breaker.ts'
import type { Connection } from '../../src/device/connections.ts'
import type { ResponseHandler } from '../../src/device/request.ts'
import { forwardToDevice } from '../../src/forward/round-trip.ts'
import type { RoundTripEnd, RoundTripService } from '../../src/forward/round-trip-service.ts'
import { HoldingClient } from '../../src/forward/signed-in-request.ts'
import { createUpstream, type UpstreamDependencies } from '../../src/forward/upstream.ts'
import { createBoundedQueue } from '../../src/system/bounded-queue.ts'
import { admitted, PLAIN } from '../support/admitted.ts'
import { stillClock } from '../support/clock.ts'
import { bareExchange, requestHead } from '../support/exchange.ts'
import { unhurried } from './pace.ts'

/** A service of the device whose connections are this one. All that a round trip without a response needs. */
function serviceWith(
  connection: Partial<Connection>,
  release = () => {},
  clock = stillClock(),
): RoundTripService {
  return {
    connections: { borrow: () => ({ connection, release }), tolerant: false },
    uploadTimeout: 1000,
    ...unhurried(1000, clock),
    fields: FIELDS,
    breaker: createBreaker(clock),
    clock,
    events: { responded() {} },
  } as unknown as RoundTripService
}

const FIELDS: RoundTripService['fields'] = {
  request: PLAIN,
  response: {
    host: undefined,
    origin: 'http://127.0.0.1',
    names: [],
    rewrite: false,
    replaced: [],
    passes: undefined,
    added: undefined,
  },
}

it('C18 a bug while a request is sent is reported once, and the connection is given back', () => {
  const bug = new Error('a bug without the class of one')
  const request = admitted(requestHead())
  const release = vi.fn()
  const connection: Partial<Connection> = {
    send() {
      throw bug
    },
    abort() {},
  }
  const service = serviceWith(connection, release)
  const ends: RoundTripEnd[] = []
  forwardToDevice(service, request, (found) => ends.push(found))
  request.finish('aborted')
  expect(ends).toEqual([{ kind: 'bug', error: bug }])
  expect(release).toHaveBeenCalledOnce()
})

it('C18 a bug in the sign-in is reported as one, and is no failure of the device', async () => {
  const bug = new Error('a bug without the class of one')
  const failures: string[] = []
  const upstream = createUpstream({
    connections: { borrow: () => expect.fail('the sign-in failed before') },
    fields: FIELDS,
    queue: createBoundedQueue(stillClock(), { inside: 1, waiting: 0, maxWait: 1 }),
    breaker: createBreaker(stillClock()),
    signIn: { isAsking: () => false, ready: () => Promise.reject(bug) },
    clock: stillClock(),
    events: { failed: (failure: string) => failures.push(failure) },
  } as unknown as UpstreamDependencies) // all that such a request needs
  const outcome = new Promise((resolve, reject) =>
    upstream(admitted(requestHead()), {
      ended: (_request, refusal) => resolve(refusal),
      onBug: (_request, found) => reject(found),
      refuses: () => true,
    }),
  )
  await expect(outcome).rejects.toBe(bug)
  expect(failures).toEqual([])
})

it('C24 a response whose client is cut within a write leaves no timer', () => {
  const clock = stillClock()
  let handler: ResponseHandler | undefined
  const connection: Partial<Connection> = {
    send: (_request, given) => {
      handler = given
    },
    pause() {},
    abort: (error) => handler?.failed(error, 'begun'),
  }
  const request = Object.assign(admitted(requestHead()), {
    write() {
      request.finish('cut')
      return false
    },
  })
  const ends: RoundTripEnd[] = []
  forwardToDevice(serviceWith(connection, undefined, clock), request, (found) => ends.push(found))
  handler?.head({ status: 200, reason: 'OK', fields: [], remembered: false }, 0)
  handler?.data(Buffer.from('piece'))
  expect(ends).toEqual([{ kind: 'abandoned' }])
  expect(clock.pending).toBe(0)
})

it('C22 an interim response does not show the session of the sidecar either', () => {
  const informed: unknown[] = []
  const inner = bareExchange({ inform: (...shown: unknown[]) => informed.push(shown) })
  const held = new HoldingClient(inner, {
    signIn: {
      isChallenge: () => false,
      hidesChallenge: () => false,
      accepted() {},
      conceal: (fields) => fields.filter((field) => field !== 'Set-Cookie' && field !== 'session=1'),
    },
    ...{ line: { method: 'GET', target: '/' }, sent: undefined, onAccepted() {} },
    ...{ clock: stillClock(), streamAfter: 2_000 },
  })
  held.inform(103, ['Link', '</a>', 'Set-Cookie', 'session=1'])
  expect(informed).toEqual([[103, ['Link', '</a>']]])
})
