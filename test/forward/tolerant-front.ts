import { EventEmitter, once } from 'node:events'
import { createBreaker } from '../../src/device/breaker.ts'
import { createConnections } from '../../src/device/connections.ts'
import type { UpstreamTarget } from '../../src/device/target.ts'
import type { ForwardExchange } from '../../src/forward/forward-exchange.ts'
import { forwardToDevice } from '../../src/forward/round-trip.ts'
import type { RoundTripEnd, RoundTripService } from '../../src/forward/round-trip-service.ts'
import type { Exchange } from '../../src/http/exchange.ts'
import { fieldValues } from '../../src/http/fields.ts'
import { startHttp1Server } from '../listen/http1-server.ts'
import { PLAIN } from '../support/admitted.ts'
import { closeLater } from '../support/cleanup.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'
import { unhurried } from './pace.ts'

export interface Front {
  readonly url: string
  readonly clock: MovableClock
  /** The ends of the requests, in order. */
  readonly ends: readonly RoundTripEnd[]
  waitForEnd(): Promise<RoundTripEnd>
}

export interface FrontOptions {
  readonly target?: Partial<UpstreamTarget>
}

/** Forwarding with the tolerant parser behind a real listener, without gate and header policy, which would hide its effects. */
export async function startFront(
  device: { readonly url: string },
  options: FrontOptions = {},
): Promise<Front> {
  const ends: RoundTripEnd[] = []
  const changes = new EventEmitter()
  const target = { ...targetOf(device.url), ...options.target }
  const deadlines = { connect: 2000, response: 2000, idle: 2000 }
  const clock = stillClock()
  const connections = createConnections(target, deadlines, clock)
  closeLater(() => connections.close())
  const service: RoundTripService = {
    connections,
    uploadTimeout: deadlines.idle,
    ...unhurried(deadlines.idle, clock),
    streamAfter: 2000,
    fields: {
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
    },
    breaker: createBreaker(clock),
    clock,
    events: { responded() {} },
  }
  const serve = (exchange: Exchange): void => {
    const { target: path, fields, framing } = exchange.head
    const empty = framing === 0 && fieldValues(fields, 'content-length').length === 0
    const classified = { ...exchange.classified, target: path, framing: empty ? null : framing }
    // Only the gate makes one: here it is missing.
    const request = Object.assign(exchange, { classified }) as ForwardExchange
    const onEnd = (end: RoundTripEnd): void => {
      ends.push(end)
      changes.emit('end', end)
      if (end.kind === 'failed') exchange.respond({ status: 502, fields: [], body: '' })
    }
    forwardToDevice(service, request, onEnd, { fields: endToEnd(fields) })
  }
  const url = await startHttp1Server(serve)
  return {
    url,
    clock,
    ends,
    async waitForEnd() {
      if (ends.length === 0) await once(changes, 'end')
      return ends[0] as RoundTripEnd // `once` has waited for it
    },
  }
}

function targetOf(url: string): UpstreamTarget {
  const unix = /^http\+unix:(.*)$/.exec(url)
  return {
    origin: unix === null ? url : 'http://localhost',
    socketPath: unix?.[1],
    reuse: 'shared',
    parser: 'tolerant',
  }
}

function keeps(name: string): boolean {
  return !['transfer-encoding', 'connection', 'keep-alive'].includes(name.toLowerCase())
}

function endToEnd(fields: readonly string[]): string[] {
  const kept: string[] = []
  for (let i = 0; i + 1 < fields.length; i += 2) {
    if (keeps(fields[i] ?? '')) kept.push(fields[i] ?? '', fields[i + 1] ?? '')
  }
  return kept
}
