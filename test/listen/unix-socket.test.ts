import { once } from 'node:events'
import { connect as connectPlain, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { expect, it } from 'vitest'
import { CONNECTION, HANDSHAKE, SESSION, TLS_CONNECTION } from '../../src/memory/costs.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'

const held = (sidecar: TestSidecar): Promise<number> =>
  sidecar.metric('postern_memory_bytes', { of: 'connections' })

async function opened(socket: Socket, event: string): Promise<Socket> {
  closeLater(() => void socket.destroy())
  socket.on('error', () => {})
  await once(socket, event)
  return socket
}

it.each([
  ['http/1.1', TLS_CONNECTION],
  // With the largest head that no stream has been announced for.
  ['h2', TLS_CONNECTION + SESSION + 16_384],
] as const)(
  'H244 over a Unix socket with TLS a connection (%s) is charged once, and released when it ends',
  async (alpn, cost) => {
    const path = join(temporaryDirectory(), 'postern.sock')
    const sidecar = await startSidecar({ transport: 'tls', config: { listen: { address: `unix:${path}` } } })
    const open = () =>
      opened(connect({ path, rejectUnauthorized: false, ALPNProtocols: [alpn] }), 'secureConnect')
    const sockets = await Promise.all(Array.from({ length: 10 }, open))
    await expect.poll(() => sidecar.metric('postern_connections')).toBe(10)
    expect(await held(sidecar)).toBe(10 * cost)
    for (const socket of sockets) socket.destroy()
    await expect.poll(() => held(sidecar)).toBe(0)
  },
)

it('H244 over a Unix socket with TLS a client that leaves around its handshake holds nothing when it has gone', async () => {
  const path = join(temporaryDirectory(), 'postern.sock')
  const sidecar = await startSidecar({ transport: 'tls', config: { listen: { address: `unix:${path}` } } })
  for (let i = 0; i < 10; i += 1) {
    // Its last message of the handshake, and its end, come together.
    const shaken = connect({ path, rejectUnauthorized: false })
    shaken.on('error', () => {}).once('secureConnect', () => shaken.destroy())
    const begun = connectPlain(path)
    begun.on('error', () => {}).end(Buffer.from('16030100f8010000f40303', 'hex'))
    begun.resume()
    await Promise.all([once(shaken, 'close'), once(begun, 'close')])
  }
  await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
  await expect.poll(() => held(sidecar)).toBe(0)
})

it('H244 over a Unix socket with TLS a connection is charged for its handshake until that ends', async () => {
  const path = join(temporaryDirectory(), 'postern.sock')
  const sidecar = await startSidecar({ transport: 'tls', config: { listen: { address: `unix:${path}` } } })
  const begun = await opened(connectPlain(path), 'connect')
  begun.write(Buffer.from('16030100f8010000f40303', 'hex'))
  await expect.poll(() => held(sidecar)).toBe(HANDSHAKE)
  await opened(connect({ path, rejectUnauthorized: false }), 'secureConnect')
  await expect.poll(() => held(sidecar)).toBe(HANDSHAKE + TLS_CONNECTION)
})

it('H244 over a Unix socket in cleartext a connection is charged once', async () => {
  const path = join(temporaryDirectory(), 'postern.sock')
  const sidecar = await startSidecar({ config: { listen: { address: `unix:${path}` } } })
  const socket = await opened(connectPlain(path), 'connect')
  await expect.poll(() => held(sidecar)).toBe(CONNECTION)
  socket.destroy()
  await expect.poll(() => held(sidecar)).toBe(0)
})
