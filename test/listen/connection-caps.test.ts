import { Server, Socket } from 'node:net'
import { expect, it } from 'vitest'
import { createClientAddress } from '../../src/gate/client-address.ts'
import { parseCidr } from '../../src/http/ip.ts'
import { capConnections } from '../../src/listen/connection-caps.ts'

/** A connection from that address, which exists only as far as it is looked at. */
function from(remoteAddress: string | undefined): Socket {
  const socket = new Socket()
  Object.defineProperty(socket, 'remoteAddress', { value: remoteAddress })
  return socket
}

function door(maxConnectionsPerClient: number): {
  readonly mayStay: (socket: Socket) => boolean
  readonly refused: readonly string[]
} {
  const refused: string[] = []
  const { clientOf } = createClientAddress(['10.0.0.0/8'].map(parseCidr).filter((cidr) => cidr !== undefined))
  const mayStay = capConnections(new Server(), {
    limits: { maxConnections: 100, maxConnectionsPerClient },
    clientOf: (peer) => clientOf(peer, []),
    onRefused: (reason) => refused.push(reason),
  })
  return { mayStay, refused }
}

it('the addresses of one IPv6 /64 are one client, those of another are not', () => {
  const { mayStay, refused } = door(2)
  expect(mayStay(from('2001:db8:1:2::1'))).toBe(true)
  expect(mayStay(from('2001:db8:1:2:ffff::1'))).toBe(true)
  expect(mayStay(from('2001:db8:1:2::1'))).toBe(false)
  expect(mayStay(from('2001:db8:1:3::1'))).toBe(true)
  expect(refused).toEqual(['max_connections_per_client'])
})

it('an IPv4-mapped address is the IPv4 one, and a trusted proxy it may be', () => {
  const { mayStay } = door(1)
  expect(mayStay(from('192.0.2.1'))).toBe(true)
  expect(mayStay(from('::ffff:192.0.2.1'))).toBe(false)
  for (let i = 0; i < 5; i += 1) expect(mayStay(from('::ffff:10.1.2.3'))).toBe(true)
})

it('over a Unix socket, where all are alike, nobody is one too many', () => {
  const { mayStay } = door(1)
  for (let i = 0; i < 5; i += 1) expect(mayStay(from(undefined))).toBe(true)
})

it('a connection that has closed makes room once, and leaves nothing in memory', () => {
  const { mayStay } = door(1)
  const first = from('192.0.2.1')
  expect(mayStay(first)).toBe(true)
  const second = from('192.0.2.1')
  expect(mayStay(second)).toBe(false)
  second.emit('close')
  expect(mayStay(from('192.0.2.1'))).toBe(false)
  first.emit('close')
  expect(mayStay(from('192.0.2.1'))).toBe(true)
})
