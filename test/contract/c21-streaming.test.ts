import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import type { Readable, Writable } from 'node:stream'
import { finished, pipeline } from 'node:stream/promises'
import { expect, it, vi } from 'vitest'
import { prepareSite } from '../process/serve.ts'
import { closeLater } from '../support/cleanup.ts'
import { type Device, startDevice } from '../support/device.ts'
import { figuresOf } from '../support/process-figures.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports, type Transport } from '../support/transports.ts'

// Tens of megabytes through TLS take their time on a machine that is busy with other things.
vi.setConfig({ testTimeout: 60_000 })

const MiB = 1 << 20
/** What may stand in kernel buffers and streams between two ends that are both on this machine, and then some. */
const IN_BETWEEN = 24 * MiB
/** More than may stand in between, so that a body that stalls is told from one that does not. */
const SIZE = 32 * MiB

/** The same in the sidecar's memory, with what the collector has not given back; a body that is kept is 64 MiB at least. */
const UNCOLLECTED = 48 * MiB
const ECHOED = 64 * MiB

/** One mebibyte in which every position looks different, so that a piece lost, doubled or moved differs from it. */
const piece = Buffer.alloc(MiB)
for (let i = 0; i < MiB; i += 4) piece.writeUInt32LE(Math.imul(i, 2_654_435_761) >>> 0, i)

/** Writes as fast as the stream takes it, and says how much it took so far. */
function pour(stream: Writable, size: number, onPiece: (taken: number) => void = () => {}): Promise<void> {
  function* pieces(): Generator<Buffer> {
    for (let taken = 0; taken < size; taken += MiB) {
      onPiece(taken)
      yield piece
    }
  }
  return pipeline(pieces, stream)
}

/** How much came, and whether every byte of it is the one that was poured: a comparison, which is cheaper than a digest. */
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

/** A request whose body and answer are streams that keep nothing. */
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

/** Waits until a count has stood still for a while: whatever was going to move has moved. */
async function standstill(count: () => number): Promise<number> {
  for (;;) {
    const before = count()
    await new Promise((resolve) => setTimeout(resolve, 300))
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

describeTransports('C21', (transport) => {
  /** Each lane, where two streams of different making meet. */
  const lanes = transport === 'h2' ? ['strict', 'tolerant'] : ['strict']

  it.each(lanes)(
    'C21 32 MiB come down whole, and a client that does not read stalls the device meanwhile (%s)',
    async (parser) => {
      let sent = 0
      const device = await startDevice(async (_request, response) => {
        await pour(response, SIZE, (total) => {
          sent = total
        })
      })
      const { sidecar, token } = await start(transport, device, parser)
      const down = await open(transport, sidecar.url, token, 'GET').down
      expect(await standstill(() => sent)).toBeLessThan(IN_BETWEEN)
      expect(await arrived(down)).toEqual({ whole: true, size: SIZE })
    },
  )

  it.each(lanes)(
    'C21 32 MiB go up whole, and a device that does not read stalls the client meanwhile (%s)',
    async (parser) => {
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
      expect(await standstill(() => sent)).toBeLessThan(IN_BETWEEN)
      reading.resolve()
      await poured
      const chunks: Buffer[] = []
      for await (const chunk of await down) chunks.push(chunk)
      expect(JSON.parse(Buffer.concat(chunks).toString())).toEqual({ whole: true, size: SIZE })
    },
  )

  it('C21 64 MiB of unknown length both ways at once, an echo, take constant memory', async () => {
    const device = await startDevice(async (request, response) => {
      request.pipe(response)
      await finished(response)
    })
    const site = await prepareSite({ transport, device })
    const sidecar = await site.serve()
    const { access_token: token } = await sidecar.grant()
    const { up, down } = open(transport, sidecar.url, token, 'POST')
    const memory = (): number => figuresOf(sidecar.pid).resident
    const before = memory()
    let most = before
    const poured = pour(up, ECHOED, () => {
      most = Math.max(most, memory())
    })
    expect(await arrived(await down)).toEqual({ whole: true, size: ECHOED })
    await poured
    expect(most - before).toBeLessThan(UNCOLLECTED)
  })
})
