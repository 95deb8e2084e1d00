import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { expect, it } from 'vitest'
import { createLingering, type LingeringBounds } from '../../src/listen/linger.ts'
import { systemClock } from '../../src/system/clock.ts'
import { closeLater } from '../support/cleanup.ts'

const UNLIMITED = 3_600_000
const NO_BOUNDS = { time: UNLIMITED, silence: UNLIMITED, bytes: Number.POSITIVE_INFINITY }
const RESPONSE = 'refused'

/** A server that sends a response and lingers, and clients that do not close their side. */
async function startLingering(bounds: Partial<LingeringBounds>) {
  const lingering = createLingering(systemClock, {
    usual: NO_BOUNDS,
    brief: NO_BOUNDS,
    mostAtOnce: 1000,
    ...bounds,
  })
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number } // listening on TCP
  closeLater(() => {
    server.close()
  })
  return {
    lingering,
    async client() {
      const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {})
      const [socket] = (await once(server, 'connection')) as [Socket]
      closeLater(() => {
        client.destroy()
        socket.destroy()
      })
      const closed = once(socket, 'close')
      lingering.end(socket, RESPONSE)
      return { client, socket, closed }
    },
  }
}

/** Sends as fast as possible, without end. */
function flood(client: Socket): void {
  const piece = Buffer.alloc(64 * 1024)
  const send = (): void => {
    while (client.writable && client.write(piece));
  }
  client.on('drain', send)
  send()
}

it('C12 a client gets its response while it still sends, and the connection closes when the client closes', async () => {
  const { client } = await startLingering({})
  const one = await client()
  expect(String((await once(one.client, 'data'))[0])).toBe(RESPONSE)
  for (let sent = 0; sent < 100; sent += 1) {
    if (!one.client.write(Buffer.alloc(1 << 20))) await once(one.client, 'drain')
  }
  one.client.end()
  await one.closed
  expect(one.socket.bytesRead).toBe(100 << 20)
})

it.each([
  ['that sends single bytes without end', { time: 300, silence: UNLIMITED }, 'drip'],
  ['that sends as fast as possible without end', { time: 300, silence: UNLIMITED }, 'flood'],
  ['that neither sends nor closes', { time: UNLIMITED, silence: 300 }, 'wait'],
] as const)('C12 a client %s is closed at the time limit', async (_name, times, manner) => {
  const { client } = await startLingering({ usual: { ...NO_BOUNDS, ...times } })
  const start = performance.now()
  const one = await client()
  const drip = setInterval(() => manner === 'drip' && one.client.write('x'), 20)
  if (manner === 'flood') flood(one.client)
  await one.closed
  clearInterval(drip)
  expect(performance.now() - start).toBeGreaterThan(280)
})

it('C12 the silence limit counts from the last byte', async () => {
  const { client } = await startLingering({ usual: { ...NO_BOUNDS, silence: 500 } })
  const one = await client()
  const start = performance.now()
  let last = start
  // A pause of the test process may end the connection earlier; the client was then silent for that long.
  const drip = setInterval(() => {
    if (last - start > 1000) return
    last = performance.now()
    one.client.write('x')
  }, 20)
  await one.closed
  clearInterval(drip)
  expect(performance.now() - last).toBeGreaterThan(450)
})

it('a byte that has come in time is read after a stall of the process, and the silence limit counts from it', async () => {
  const { client } = await startLingering({ usual: { ...NO_BOUNDS, silence: 1_000 } })
  const one = await client()
  await once(one.client, 'data')
  one.client.write('x')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_200)
  await one.closed
  expect(one.socket.bytesRead).toBe(1)
})

it('C12 a client that sends more than the byte limit is closed', async () => {
  const bytes = 4 << 20
  const { client } = await startLingering({ usual: { ...NO_BOUNDS, bytes } })
  const one = await client()
  flood(one.client)
  await one.closed
  expect(one.socket.bytesRead).toBeGreaterThan(bytes)
  expect(one.socket.bytesRead).toBeLessThan(bytes + (256 << 10))
})

it('C12 a connection past the number limit lingers only briefly, until another one has closed', async () => {
  const { client } = await startLingering({ brief: { ...NO_BOUNDS, bytes: 10 }, mostAtOnce: 2 })
  const [first, second] = [await client(), await client()]
  const third = await client()
  third.client.write(Buffer.alloc(100))
  await third.closed
  first.client.destroy()
  await first.closed
  const fourth = await client()
  for (const { client } of [second, fourth]) {
    client.write(Buffer.alloc(100))
    client.end()
  }
  await Promise.all([second.closed, fourth.closed])
  expect([second.socket.bytesRead, fourth.socket.bytesRead]).toEqual([100, 100])
})

it('C12 when the sidecar stops, present and later lingering connections close soon', async () => {
  const { client, lingering } = await startLingering({ brief: { time: 50, silence: 50, bytes: 10 } })
  const before = await client()
  lingering.drain()
  await Promise.all([before.closed, (await client()).closed])
})

it('H98 of 64 lingering clients that send as fast as possible, eight are read per event-loop turn', async () => {
  const { client } = await startLingering({})
  const all: Awaited<ReturnType<typeof client>>[] = []
  for (let i = 0; i < 64; i += 1) all.push(await client())
  for (const { client } of all) flood(client)
  const read = (): number => all.reduce((sum, { socket }) => sum + socket.bytesRead, 0)
  const turns = 200
  const before = read()
  for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate)
  const perTurn = (read() - before) / turns
  expect(perTurn).toBeGreaterThan(0)
  // Eight reads of 128 KiB per turn. Each client is read once before it waits for its turn.
  expect(perTurn).toBeLessThan(((8 * turns + 64) * (128 << 10)) / turns)
})
