import { Socket } from 'node:net'
import { expect, it } from 'vitest'
import { createClientAddress } from '../../src/gate/client-address.ts'
import { parseCidr } from '../../src/http/ip.ts'
import { capConnections, LISTEN_BOUNDS } from '../../src/listen/connection-caps.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'

/** A socket that is not connected and reports this remote address. */
function from(remoteAddress: string | undefined): Socket {
  const socket = new Socket()
  Object.defineProperty(socket, 'remoteAddress', { value: remoteAddress })
  return socket
}

const IDLE_TIMEOUT = 60_000

function createCaps(maxConnectionsPerClient: number): ReturnType<typeof capConnections> & {
  /** As a reload replaces them. */
  readonly limits: { idleTimeout: number }
  readonly clock: MovableClock
  readonly refused: readonly string[]
} {
  const refused: string[] = []
  const clock = stillClock()
  const clientOf = createClientAddress(['10.0.0.0/8'].map(parseCidr).filter((cidr) => cidr !== undefined))
  const limits = { maxConnectionsPerClient, idleTimeout: IDLE_TIMEOUT }
  const caps = capConnections({
    clock,
    limits,
    clientOf: (peer) => clientOf(peer, []),
    onRefused: (reason) => refused.push(reason),
  })
  return { ...caps, limits, clock, refused }
}

it('addresses of one IPv6 /64 count as one client, addresses of another /64 do not', () => {
  const { mayStay, refused } = createCaps(2)
  expect(mayStay(from('2001:db8:1:2::1'))).toBe(true)
  expect(mayStay(from('2001:db8:1:2:ffff::1'))).toBe(true)
  expect(mayStay(from('2001:db8:1:2::1'))).toBe(false)
  expect(mayStay(from('2001:db8:1:3::1'))).toBe(true)
  expect(refused).toEqual(['max_connections_per_client'])
})

it('an IPv4-mapped address counts as the IPv4 address, and as a trusted proxy if that is one', () => {
  const { mayStay } = createCaps(1)
  expect(mayStay(from('192.0.2.1'))).toBe(true)
  expect(mayStay(from('::ffff:192.0.2.1'))).toBe(false)
  for (let i = 0; i < 5; i += 1) expect(mayStay(from('::ffff:10.1.2.3'))).toBe(true)
})

it('connections over a Unix socket have no cap per client, because all have the same address', () => {
  const { mayStay } = createCaps(1)
  for (let i = 0; i < 5; i += 1) expect(mayStay(from(undefined))).toBe(true)
})

it('a closed connection frees its place once, and a refused one frees none', () => {
  const { mayStay } = createCaps(1)
  const first = from('192.0.2.1')
  expect(mayStay(first)).toBe(true)
  const second = from('192.0.2.1')
  expect(mayStay(second)).toBe(false)
  second.emit('close')
  expect(mayStay(from('192.0.2.1'))).toBe(false)
  first.emit('close')
  expect(mayStay(from('192.0.2.1'))).toBe(true)
})

it('a connection that was ended for an offence counts against its client for idle_timeout, and against no other client', () => {
  const { mayStay, remember, clock, refused } = createCaps(2)
  for (let i = 0; i < 25; i += 1) {
    const connection = from('192.0.2.1')
    expect(mayStay(connection)).toBe(true)
    connection.emit('close')
    remember('192.0.2.1', 1)
    clock.advance(1000)
  }
  expect(mayStay(from('192.0.2.1'))).toBe(false)
  expect(refused).toEqual(['max_connections_per_client'])
  expect(mayStay(from('192.0.2.2'))).toBe(true)
  clock.advance(IDLE_TIMEOUT - 25_000)
  expect(mayStay(from('192.0.2.1')), 'the first offence has expired').toBe(true)
  expect(mayStay(from('192.0.2.1')), 'the others have not').toBe(false)
  clock.advance(24_000)
  expect(mayStay(from('192.0.2.1'))).toBe(true)
})

const parts = [
  ['ended for an offence', 1, 25],
  ['halfway to an offence', 0.5, 50],
  ['a tenth of the way to an offence', 0.1, 250],
] as const
const cases = [1, 2, 10, 250].flatMap((allowed) => parts.map((part) => [allowed, ...part] as const))

it.each(cases)(
  'with a cap of %i, a connection that was %s counts proportionally',
  (allowed, _what, part, most) => {
    const { mayStay, remember, clock } = createCaps(allowed)
    for (let i = 0; i < most; i += 1) {
      const connection = from('192.0.2.1')
      expect(mayStay(connection), String(i)).toBe(true)
      connection.emit('close')
      remember('192.0.2.1', part)
    }
    expect(mayStay(from('192.0.2.1'))).toBe(false)
    clock.advance(IDLE_TIMEOUT)
    const others = Array.from({ length: allowed + 1 }, () => mayStay(from('192.0.2.1')))
    expect(others.indexOf(false), 'all offences have expired').toBe(allowed)
  },
)

it('offences of the clients of a trusted proxy do not count against the proxy', () => {
  const { mayStay, remember } = createCaps(1)
  for (let i = 0; i < 50; i += 1) remember('10.1.2.3', 1)
  expect(mayStay(from('10.1.2.3'))).toBe(true)
})

it('the oldest offence is forgotten when the memory for offences is full', () => {
  const { mayStay, remember } = createCaps(1)
  for (let i = 0; i < 25; i += 1) remember('192.0.2.1', 1)
  for (let i = 0; i < 25; i += 1) remember('192.0.2.2', 1)
  for (let i = 50; i < 20_000; i += 1) remember(`198.${18 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`, 1)
  expect(mayStay(from('192.0.2.1'))).toBe(false)
  remember('203.0.113.1', 1)
  expect(mayStay(from('192.0.2.1'))).toBe(true)
  expect(mayStay(from('192.0.2.2'))).toBe(false)
})

it('H37 a client may reset all the streams that it may open', () => {
  expect(LISTEN_BOUNDS.maxResets).toBeGreaterThanOrEqual(LISTEN_BOUNDS.maxStreams)
})

it('overuse counts for the idle_timeout of a reload, also that from before it', async () => {
  const { mayStay, remember, limits, clock } = createCaps(1)
  const overuse = (address: string): void => {
    for (let i = 0; i < 25; i += 1) remember(address, 1)
  }
  limits.idleTimeout = 60 * IDLE_TIMEOUT
  overuse('192.0.2.1')
  limits.idleTimeout = IDLE_TIMEOUT
  overuse('192.0.2.2')
  const admitted = (): readonly boolean[] => ['192.0.2.1', '192.0.2.2'].map((each) => mayStay(from(each)))
  await clock.advance(IDLE_TIMEOUT - 1)
  expect(admitted()).toEqual([false, false])
  await clock.advance(1)
  expect(admitted()).toEqual([true, true])
})
