import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { expect, it } from 'vitest'
import { createLingering, type LingeringBounds } from '../../src/listen/linger.ts'
import { closeLater } from '../support/cleanup.ts'

const FOR_EVER = 3_600_000
const EASY = { time: FOR_EVER, silence: FOR_EVER, bytes: Number.POSITIVE_INFINITY }
const ANSWER = 'refused'

/** A server that only lingers, and its clients, which take their time to close their side. */
async function startLingering(bounds: Partial<LingeringBounds>) {
  const lingering = createLingering({ usual: EASY, brief: EASY, mostAtOnce: 1000, ...bounds })
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
      lingering.end(socket, ANSWER)
      return { client, socket, closed }
    },
  }
}

/** Sends as fast as it can for as long as it can. */
function flood(client: Socket): void {
  const piece = Buffer.alloc(64 * 1024)
  const send = (): void => {
    while (client.writable && client.write(piece));
  }
  client.on('drain', send)
  send()
}

it('C12 a client has its answer while it still sends, and the connection closes when the client does', async () => {
  const { client } = await startLingering({})
  const one = await client()
  expect(String((await once(one.client, 'data'))[0])).toBe(ANSWER)
  for (let sent = 0; sent < 100; sent += 1) {
    if (!one.client.write(Buffer.alloc(1 << 20))) await once(one.client, 'drain')
  }
  one.client.end()
  await one.closed
  expect(one.socket.bytesRead).toBe(100 << 20)
})

it.each([
  ['that sends a byte now and then for ever', { time: 300, silence: FOR_EVER }, 'drip'],
  ['that sends as fast as it can for ever', { time: 300, silence: FOR_EVER }, 'flood'],
  ['that neither sends nor leaves', { time: FOR_EVER, silence: 300 }, 'wait'],
] as const)('C12 a client %s is closed in time', async (_name, times, manner) => {
  const { client } = await startLingering({ usual: { ...EASY, ...times } })
  const start = performance.now()
  const one = await client()
  const drip = setInterval(() => manner === 'drip' && one.client.write('x'), 20)
  if (manner === 'flood') flood(one.client)
  await one.closed
  clearInterval(drip)
  expect(performance.now() - start).toBeGreaterThan(280)
})

it('C12 silence is counted from the last byte', async () => {
  const { client } = await startLingering({ usual: { ...EASY, silence: 500 } })
  const one = await client()
  const start = performance.now()
  let last = start
  // A pause of the machine's own may end it earlier; then it was silent for as long.
  const drip = setInterval(() => {
    if (last - start > 1000) return
    last = performance.now()
    one.client.write('x')
  }, 20)
  await one.closed
  clearInterval(drip)
  expect(performance.now() - last).toBeGreaterThan(450)
})

it('C12 a client that sends more than is discarded is closed', async () => {
  const bytes = 4 << 20
  const { client } = await startLingering({ usual: { ...EASY, bytes } })
  const one = await client()
  flood(one.client)
  await one.closed
  expect(one.socket.bytesRead).toBeGreaterThan(bytes)
  expect(one.socket.bytesRead).toBeLessThan(bytes + (256 << 10))
})

it('C12 one connection too many lingers briefly, and has room again once another has closed', async () => {
  const { client } = await startLingering({ brief: { ...EASY, bytes: 10 }, mostAtOnce: 2 })
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

it('C12 when the sidecar stops, connections linger briefly: those that do so already and those that will', async () => {
  const { client, lingering } = await startLingering({ brief: { time: 50, silence: 50, bytes: 10 } })
  const before = await client()
  lingering.drain()
  await Promise.all([before.closed, (await client()).closed])
})

it('H98 of 64 clients that send as fast as they can, eight are read in a turn of the event loop', async () => {
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
  // Eight of 128 KiB; all of them are read once before they have to wait for their turn.
  expect(perTurn).toBeLessThan(((8 * turns + 64) * (128 << 10)) / turns)
})
