import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import type { Readable, Writable } from 'node:stream'
import { finished, pipeline } from 'node:stream/promises'
import { expect, it } from 'vitest'
import { closeLater } from '../support/cleanup.ts'
import { passUntil } from '../support/clock.ts'
import { type Device, startDevice } from '../support/device.ts'
import { MOST_BUFFERED } from '../support/kernel-buffers.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports, type Transport } from '../support/transports.ts'

const MiB = 1 << 20
/** More than `MOST_BUFFERED`, so that a stalled body is smaller than a whole one. Whole pieces. */
const SIZE = Math.ceil(MOST_BUFFERED / MiB + 4) * MiB

/** One mebibyte that differs at every position, so that a lost, doubled or moved piece shows. */
const piece = Buffer.alloc(MiB)
for (let i = 0; i < MiB; i += 4) piece.writeUInt32LE(Math.imul(i, 2_654_435_761) >>> 0, i)

/** Writes `size` bytes as fast as the stream takes them, and reports how many it has taken. */
function pour(stream: Writable, size: number, onPiece: (taken: number) => void = () => {}): Promise<void> {
  function* pieces(): Generator<Buffer> {
    for (let taken = 0; taken < size; taken += MiB) {
      onPiece(taken)
      yield piece
    }
  }
  return pipeline(pieces, stream)
}

/** Counts the bytes of a stream and compares each with the one that `pour` wrote; cheaper than a digest. */
async function arrived(stream: Readable): Promise<{ readonly whole: boolean; readonly size: number }> {
  let whole = true
  let size = 0
  for await (const chunk of stream) {
    let rest: Buffer = chunk
    while (rest.length > 0) {
      const expected = piece.subarray(size % MiB, (size % MiB) + rest.length)
      whole &&= expected.equals(rest.subarray(0, expected.length))
      size += expected.length
      rest = rest.subarray(expected.length)
    }
  }
  return { whole, size }
}

interface Streams {
  readonly up: Writable
  readonly down: Promise<Readable>
}

/** A request whose body and response are streams, not kept in memory. */
function open(transport: Transport, url: string, token: string, method: string, headers = {}): Streams {
  const authorization = `Bearer ${token}`
  if (transport === 'h2') {
    const session = http2.connect(url, { rejectUnauthorized: false })
    closeLater(() => session.destroy())
    session.on('error', () => {})
    const stream = session.request(
      { ':method': method, ':path': '/', authorization, ...headers },
      { endStream: method === 'GET' },
    )
    return { up: stream, down: new Promise((resolve) => stream.once('response', () => resolve(stream))) }
  }
  const client = transport === 'tls' ? https : http
  const request = client.request(url, {
    method,
    headers: { authorization, ...headers },
    rejectUnauthorized: false,
    agent: false,
  })
  closeLater(() => {
    request.destroy()
  })
  request.on('error', () => {})
  if (method === 'GET') request.end()
  return { up: request, down: new Promise((resolve) => request.once('response', resolve)) }
}

/** So many requests to the sidecar, one after the other, and as many ms give each connection time to move what it can. */
const REQUESTS = 20

/** Waits until a count stays the same over some requests to the sidecar, and returns it. */
async function standstill(sidecar: TestSidecar, count: () => number): Promise<number> {
  for (;;) {
    const before = count()
    for (let i = 0; i < REQUESTS; i += 1) {
      await sidecar.metrics()
      await sidecar.clock.advance(1)
    }
    if (before > 0 && count() === before) return before
  }
}

async function start(
  transport: Transport,
  device: Device,
  parser: string,
): Promise<{ sidecar: TestSidecar; token: string }> {
  const sidecar = await startSidecar({ transport, device, config: { upstream: { parser } } })
  return { sidecar, token: await sidecar.token() }
}

describeTransports('C21 Streaming', (transport) => {
  /** Each transport with one parser: a parser reads the device and does not depend on the client. */
  const parser = transport === 'h2' ? 'tolerant' : 'strict'

  it(`C21 a large download is whole, and a client that does not read stalls the device (${parser})`, async () => {
    let sent = 0
    const device = await startDevice(async (_request, response) => {
      await pour(response, SIZE, (total) => {
        sent = total
      })
    })
    const { sidecar, token } = await start(transport, device, parser)
    const down = await open(transport, sidecar.url, token, 'GET').down
    expect(await standstill(sidecar, () => sent)).toBeLessThan(MOST_BUFFERED)
    expect(await arrived(down)).toEqual({ whole: true, size: SIZE })
  })

  it(`C21 a large upload is whole, and a device that does not read stalls the client (${parser})`, async () => {
    const reading = Promise.withResolvers<void>()
    const device = await startDevice(async (request, response) => {
      await reading.promise
      response.end(JSON.stringify(await arrived(request)))
    })
    const { sidecar, token } = await start(transport, device, parser)
    const { up, down } = open(transport, sidecar.url, token, 'POST', { 'content-length': String(SIZE) })
    let sent = 0
    const poured = pour(up, SIZE, (taken) => {
      sent = taken
    })
    expect(await standstill(sidecar, () => sent)).toBeLessThan(MOST_BUFFERED)
    reading.resolve()
    await poured
    const chunks: Buffer[] = []
    for await (const chunk of await down) chunks.push(chunk)
    expect(JSON.parse(Buffer.concat(chunks).toString())).toEqual({ whole: true, size: SIZE })
  })

  // What it takes of the memory of a process: see c21-bulk.
  it('C21 an echo of 8 MiB of unknown length is whole', async () => {
    const device = await startDevice(async (request, response) => {
      request.pipe(response)
      await finished(response)
    })
    const { sidecar, token } = await start(transport, device, parser)
    const { up, down } = open(transport, sidecar.url, token, 'POST')
    const poured = pour(up, 8 * MiB)
    expect(await passUntil(sidecar.clock, down.then(arrived))).toEqual({ whole: true, size: 8 * MiB })
    await poured
  })
})
