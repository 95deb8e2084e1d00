import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { expect, it } from 'vitest'
import { createLingering, type LingeringBounds } from '../../src/listen/linger.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'

const UNLIMITED = 3_600_000
const NO_BOUNDS = { time: UNLIMITED, silence: UNLIMITED, bytes: Number.POSITIVE_INFINITY }
const RESPONSE = 'refused'

/** A server that sends a response and lingers, and clients that do not close their side. */
async function startLingering(
  bounds: Partial<LingeringBounds>,
  { response = RESPONSE }: { readonly response?: string } = {},
) {
  const clock = stillClock()
  const lingering = createLingering(clock, {
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
    clock,
    lingering,
    async client() {
      const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {})
      const [socket] = (await once(server, 'connection')) as [Socket]
      closeLater(() => {
        client.destroy()
        socket.destroy()
      })
      const closed = once(socket, 'close')
      const finished = once(socket, 'finish')
      lingering.end(socket, response)
      // The client takes a short response without reading it.
      if (response === RESPONSE) await finished
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
  const { clock, client } = await startLingering({ usual: { ...NO_BOUNDS, ...times } })
  const one = await client()
  if (manner === 'flood') flood(one.client)
  for (let passed = 20; passed < 300; passed += 20) {
    await clock.advance(20)
    if (manner !== 'drip') continue
    one.client.write('x')
    await expect.poll(() => one.socket.bytesRead).toBe(passed / 20)
  }
  await clock.advance(19)
  expect(one.socket.destroyed).toBe(false)
  await clock.advance(1)
  expect(one.socket.destroyed).toBe(true)
  await one.closed
})

it('C12 the silence limit counts from the last byte', async () => {
  const { clock, client } = await startLingering({ usual: { ...NO_BOUNDS, silence: 500 } })
  const one = await client()
  for (let sent = 1; sent <= 3; sent += 1) {
    await clock.advance(450)
    one.client.write('x')
    await expect.poll(() => one.socket.bytesRead).toBe(sent)
  }
  await clock.advance(499)
  expect(one.socket.destroyed).toBe(false)
  await clock.advance(1)
  expect(one.socket.destroyed).toBe(true)
  await one.closed
})

it('C12 the silence limit counts from the last byte of the response that the client takes', async () => {
  const { clock, client } = await startLingering(
    { usual: { ...NO_BOUNDS, silence: 500 } },
    { response: 'x'.repeat(32 << 20) },
  )
  const one = await client()
  await clock.advance(450)
  expect(one.socket.writableLength).toBeGreaterThan(0)
  const taken = once(one.socket, 'finish')
  one.client.resume()
  await taken
  await clock.advance(499)
  expect(one.socket.destroyed).toBe(false)
  await clock.advance(1)
  expect(one.socket.destroyed).toBe(true)
  await one.closed
})

it('a byte that has come in time is read after a stall of the process, and the silence limit counts from it', async () => {
  const { clock, client } = await startLingering({ usual: { ...NO_BOUNDS, silence: 1_000 } })
  const one = await client()
  await once(one.client, 'data')
  await nextTurn()
  one.client.write('x')
  await clock.leap(1_200)
  expect([one.socket.bytesRead, one.socket.destroyed]).toEqual([1, false])
  await clock.advance(999)
  expect(one.socket.destroyed).toBe(false)
  await clock.advance(1)
  expect(one.socket.destroyed).toBe(true)
  await one.closed
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
  const { clock, client, lingering } = await startLingering({
    brief: { time: 1_000, silence: 50, bytes: 10 },
  })
  const before = await client()
  await clock.advance(1_000)
  lingering.drain()
  const later = await client()
  await clock.advance(49)
  expect([before.socket.destroyed, later.socket.destroyed]).toEqual([false, false])
  await clock.advance(1)
  expect([before.socket.destroyed, later.socket.destroyed]).toEqual([true, true])
  await Promise.all([before.closed, later.closed])
})

it('H98 of 64 lingering clients that send as fast as possible, eight are read per event-loop turn', async () => {
  const { client } = await startLingering({})
  const all: Awaited<ReturnType<typeof client>>[] = []
  for (let i = 0; i < 64; i += 1) all.push(await client())
  for (const { client } of all) flood(client)
  const read = (): number => all.reduce((sum, { socket }) => sum + socket.bytesRead, 0)
  const turns = 200
  const before = read()
  for (let turn = 0; turn < turns; turn += 1) await nextTurn()
  const perTurn = (read() - before) / turns
  expect(perTurn).toBeGreaterThan(0)
  // Eight reads of 128 KiB per turn. Each client is read once before it waits for its turn.
  expect(perTurn).toBeLessThan(((8 * turns + 64) * (128 << 10)) / turns)
})
