import type { Socket } from 'node:net'
import { expect, it } from 'vitest'
import type { Exchange } from '../../src/http/exchange.ts'
import { Http1Intake, type IntakeEvents } from '../../src/listen/http1/intake.ts'
import { RequestBody } from '../../src/listen/request-body.ts'
import { send } from '../support/client.ts'
import { stillClock } from '../support/clock.ts'
import { growth, LINEAR } from '../support/lived-time.ts'
import { rawConnection } from '../support/raw.ts'
import { startStoppableHttp1Server } from './http1-server.ts'

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const LAST = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
const OK = { status: 200, fields: [], body: 'ok' }
const UPLOAD = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'
const countOf = (text: string): number => text.split('HTTP/1.1 200').length - 1

it('C26 requests that wait for a later turn are not served when their client has left, and it holds nothing', async () => {
  let served = 0
  const { url, account } = await startStoppableHttp1Server((exchange) => {
    served += 1
    exchange.respond(OK)
    if (served === 1) client.reset()
  })
  const client = await rawConnection(url)
  client.write(GET.repeat(2000))
  await client.closed
  await expect.poll(() => account.sums.requests + account.sums.bodies).toBe(0)
  const before = served
  // What waited for a later turn had its turn by the time that another client is served.
  expect((await send({ transport: 'http1', url })).status).toBe(200)
  expect(served).toBe(before + 1)
  expect(served).toBeLessThan(2000)
})

it('C20 a client that closes its side behind many requests gets all of the responses', async () => {
  const { url } = await startStoppableHttp1Server((exchange) => exchange.respond(OK))
  const client = await rawConnection(url)
  client.end(GET.repeat(5000))
  expect(countOf(await client.closed)).toBe(5000)
})

it('C20 an upload that waits for a later turn is whole, although its client has closed its side by then', async () => {
  const bodies: Promise<string>[] = []
  const { url } = await startStoppableHttp1Server((exchange) => bodies.push(answerWithSize(exchange)))
  const clients = await Promise.all(Array.from({ length: 10 }, () => rawConnection(url)))
  for (const client of clients) client.end(`${UPLOAD}${'1\r\na\r\n'.repeat(5000)}0\r\n\r\n`)
  for (const client of clients) expect(await client.closed).toContain('200 OK')
  expect(await Promise.all(bodies)).toEqual(clients.map(() => '5000'))
})

it('C26 when the sidecar stops, a request that waits for a later turn is served, and its connection closes', async () => {
  let served = 0
  const { url, drain } = await startStoppableHttp1Server((exchange) => {
    served += 1
    exchange.respond(OK)
    if (served === 1) queueMicrotask(drain)
  })
  const client = await rawConnection(url)
  client.write(GET.repeat(2000))
  const received = await client.closed
  expect(countOf(received)).toBe(served)
  expect(received).toMatch(/Connection: close\r\n(?:[^\r]+\r\n)*\r\nok$/)
})

it('C26 bytes that wait for a later turn are charged to their client, and no more of them are read meanwhile', async () => {
  let most = 0
  const { url, account } = await startStoppableHttp1Server((exchange) => {
    most = Math.max(most, account.sums.bodies)
    exchange.respond(OK)
  })
  const clients = await Promise.all(Array.from({ length: 20 }, () => rawConnection(url)))
  for (const client of clients) client.write(GET.repeat(3000) + LAST)
  for (const client of clients) expect(countOf(await client.closed)).toBe(3001)
  // Of each connection 64 KiB and one read, as for a request that waits for its answer.
  expect(most).toBeLessThanOrEqual(20 * 2 * 64 * 1024)
  expect(most).toBeGreaterThan(64 * 1024)
  await expect.poll(() => account.sums.requests + account.sums.bodies).toBe(0)
})

async function answerWithSize(exchange: Exchange): Promise<string> {
  let size = 0
  for await (const piece of exchange.body(60_000)) size += piece.length
  exchange.respond({ ...OK, body: String(size) })
  return String(size)
}

// Proof of the cast: it is all that the intake uses of a socket.
const SOCKET = { destroyed: false, pause() {}, resume() {} } as unknown as Socket

/** The intake of a connection whose events do nothing, but for these. */
function intakeWith(
  events: Partial<Omit<IntakeEvents, 'mayBegin'>>,
  mayBegin: () => boolean = () => true,
): Http1Intake {
  return new Http1Intake(
    SOCKET,
    { secure: false, peer: '', localPort: 0, redirects: false },
    { clock: stillClock(), maxHeaderSize: 16_384 },
    {
      get mayBegin() {
        return mayBegin()
      },
      mayRead: () => true,
      mayTakeMore: () => true,
      awaitHead() {},
      begin() {},
      bodyRead() {},
      bodyBroken() {},
      waits() {},
      keepsHead() {},
      refuse() {},
      ...events,
    },
  )
}

it('C26 an upload in chunks of one byte is read in a few large pieces, and each chunk counts', async () => {
  const bodies: RequestBody[] = []
  let counted = 0
  const intake = intakeWith({
    begin: (_head, body) => void bodies.push(body ?? RequestBody.empty()),
    mayTakeMore(count) {
      counted += count
      return true
    },
  })
  intake.receive(Buffer.from(UPLOAD))
  intake.receive(Buffer.from('1\r\na\r\n'.repeat(10_000)))
  intake.receive(Buffer.from('1\r\nb\r\n'.repeat(10_000)))
  intake.receive(Buffer.from('0\r\n\r\n'))
  const pieces: number[] = []
  for await (const piece of bodies[0]?.within(60_000) ?? []) pieces.push(piece.length)
  expect(pieces).toEqual([20_000])
  expect(counted).toBe(20_000)
})

it('C26 of the chunks that one read brings, some hundred are read before the turn of the client is asked again', async () => {
  const bodies: RequestBody[] = []
  let counted = 0
  const intake = intakeWith({
    begin: (_head, body) => void bodies.push(body ?? RequestBody.empty()),
    mayTakeMore(count) {
      counted += count
      return false
    },
  })
  intake.receive(Buffer.from(UPLOAD))
  intake.receive(Buffer.from(`${'1\r\na\r\n'.repeat(1_000)}0\r\n\r\n`))
  const most: number[] = []
  for (let before = 0; intake.deferred; before = counted) {
    most.push(counted - before)
    intake.readOn()
  }
  expect([counted, Math.max(...most)]).toEqual([1_000, 256])
  let size = 0
  for await (const piece of bodies[0]?.within(60_000) ?? []) size += piece.length
  expect(size).toBe(1_000)
})

it('C26 bytes of a body that come one by one are read together, and large pieces as they came', async () => {
  const body = new RequestBody(stillClock(), () => {}, 1 << 20)
  for (let i = 0; i < 1000; i += 1) body.push(Buffer.from('a'))
  const large = Buffer.alloc(50_000, 'b')
  body.push(large)
  body.push(large)
  body.finish()
  const pieces: Buffer[] = []
  for await (const piece of body.within(60_000)) pieces.push(piece)
  expect(Buffer.concat(pieces).toString()).toBe(`${'a'.repeat(1000)}${'b'.repeat(100_000)}`)
  expect(pieces.length).toBeLessThanOrEqual(3)
})

it('C26 bytes that come one by one while a request is served cost linear time, and what their pieces cost is charged', () => {
  let charged = 0
  const receiveSingly = (count: number): void => {
    let served = false
    charged = 0
    const intake = intakeWith(
      {
        begin() {
          served = true
        },
        waits(change) {
          charged += change
        },
      },
      () => !served,
    )
    intake.receive(Buffer.from(GET))
    for (let i = 0; i < count; i += 1) intake.receive(Buffer.from('G'))
    // A piece costs more than its byte.
    expect(charged).toBeGreaterThan(100 * (count - 1))
    expect(intake.stop().length).toBe(count)
  }
  expect(growth(20_000, receiveSingly)).toBeLessThan(LINEAR)
  expect(charged).toBe(0)
})

it('C26 bytes whose turn has not come are not read, and read when it comes', () => {
  const begun: string[] = []
  let mayRead = false
  const intake = intakeWith({ mayRead: () => mayRead, begin: (head) => void begun.push(head.method) })
  intake.receive(Buffer.from(GET))
  intake.receive(Buffer.from(GET.slice(0, 5)))
  mayRead = true
  intake.receive(Buffer.from(GET.slice(5)))
  expect(begun, 'what came first is read first').toEqual([])
  intake.readOn()
  expect(begun).toEqual(['GET', 'GET'])
})
