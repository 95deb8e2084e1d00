import { expect, it, vi } from 'vitest'
import { createBreaker } from '../../src/device/breaker.ts'
import type { Connection, Connections } from '../../src/device/connections.ts'
import type { ResponseHandler } from '../../src/device/response-handler.ts'
import { HoldingExchange } from '../../src/forward/held-response.ts'
import { forwardToDevice, type RoundTripEnd, type RoundTripRequest } from '../../src/forward/round-trip.ts'
import { createUpstream, type UpstreamDependencies } from '../../src/forward/upstream.ts'
import type { Forward } from '../../src/http/admission.ts'
import { DeviceTrace } from '../../src/http/device-trace.ts'
import type { Exchange } from '../../src/http/exchange.ts'
import { createBoundedQueue } from '../../src/system/bounded-queue.ts'
import { stillClock } from '../support/clock.ts'
import { admitted } from '../support/forward.ts'
import { unhurried } from '../support/pace.ts'
import { requestHead } from '../support/request-head.ts'

const SETTINGS = {
  uploadTimeout: () => 1000,
  paces: unhurried(),
}

/** An exchange that ends when the test says so. */
function openExchange(): { readonly exchange: Exchange; end(): void } {
  const listeners: (() => void)[] = []
  const exchange = {
    head: requestHead(),
    answered: false,
    ended: false,
    broken: false,
    begin() {},
    contestedWhile() {},
    onDrain() {},
    onEnd: (listener: () => void) => listeners.push(listener),
    cut() {},
  }
  return {
    exchange: exchange as unknown as Exchange, // all that a round trip without a body calls
    end() {
      for (const listener of listeners) listener()
    },
  }
}

function requestOf(exchange: Exchange, onEnd: (end: RoundTripEnd) => void): RoundTripRequest {
  const project = () => ({ fields: [], reusable: false })
  // All that a round trip reads.
  const admission = { target: '/', framing: null, trace: new DeviceTrace() } as unknown as Forward
  return { admission, exchange, fields: [], body: undefined, limitFields: [], project, onHead() {}, onEnd }
}

function lend(connection: Partial<Connection>): Connections {
  return { borrow: () => connection } as unknown as Connections // all that a round trip calls
}

it('C18 a bug while a request is sent is reported once, and the connection is given back', () => {
  const bug = new Error('a bug without the class of one')
  const { exchange, end } = openExchange()
  const release = vi.fn()
  const connection: Partial<Connection> = {
    reused: true,
    send() {
      throw bug
    },
    release,
    abort() {},
  }
  const ends: RoundTripEnd[] = []
  forwardToDevice(
    requestOf(exchange, (found) => ends.push(found)),
    { connections: lend(connection), ...SETTINGS },
  )
  end()
  expect(ends).toEqual([{ kind: 'bug', error: bug }])
  expect(release).toHaveBeenCalledOnce()
})

it('C18 a bug in the sign-in is reported as one, and is no failure of the device', async () => {
  const bug = new Error('a bug without the class of one')
  const failures: string[] = []
  const upstream = createUpstream({
    roundTrip: () => expect.fail('the sign-in failed before'),
    queue: createBoundedQueue({ inside: 1, waiting: 0, maxWait: 1 }),
    breaker: createBreaker(stillClock()),
    signIn: { ready: () => Promise.reject(bug) },
    request: () => ({ host: undefined, added: [] }),
    clock: stillClock(),
    events: { failed: (failure: string) => failures.push(failure) },
  } as unknown as UpstreamDependencies) // all that such a request needs
  const { exchange } = openExchange()
  const outcome = new Promise((ended, onBug) =>
    upstream.forward({ ...admitted(exchange.head), grant: 'g' }, exchange, { ended, onBug }),
  )
  await expect(outcome).rejects.toBe(bug)
  expect(failures).toEqual([])
})

it('C24 a response whose client is cut within a write leaves no timer', () => {
  vi.useFakeTimers()
  try {
    const { exchange, end } = openExchange()
    let handler: ResponseHandler | undefined
    const connection: Partial<Connection> = {
      reused: false,
      send: (_request, given) => {
        handler = given
      },
      pause() {},
      release() {},
      abort: (error) => handler?.failed(error, false),
    }
    Object.assign(exchange, {
      write() {
        Object.assign(exchange, { answered: true, ended: true })
        end()
        return false
      },
    })
    const ends: RoundTripEnd[] = []
    forwardToDevice(
      requestOf(exchange, (found) => ends.push(found)),
      { connections: lend(connection), ...SETTINGS },
    )
    handler?.head({ status: 200, reason: 'OK', fields: [], remembered: false })
    handler?.data(Buffer.from('piece'))
    expect(ends).toEqual([{ kind: 'abandoned' }])
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})

it('C22 an interim response does not show the session of the sidecar either', () => {
  const informed: unknown[] = []
  const inner = { ...openExchange().exchange, inform: (...shown: unknown[]) => informed.push(shown) }
  const held = new HoldingExchange(inner as unknown as Exchange, {
    holds: () => false,
    conceal: (fields) => fields.filter((field) => field !== 'Set-Cookie' && field !== 'session=1'),
    body: () => expect.fail('there is no body'),
  })
  held.inform(103, ['Link', '</a>', 'Set-Cookie', 'session=1'])
  expect(informed).toEqual([[103, ['Link', '</a>']]])
})
