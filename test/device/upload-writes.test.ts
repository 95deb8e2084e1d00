import { Socket } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createConnections } from '../../src/device/connections.ts'
import type { ResponseHandler } from '../../src/device/request.ts'
import { AMPLE_CAPACITY } from '../../src/device/turns.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { readBody, startDevice } from '../support/device.ts'
import { PATIENCE } from '../support/running-test.ts'

/** One record of TLS. */
const RECORD = 16 * 1024

afterEach(() => {
  vi.restoreAllMocks()
})

/** The sizes of the writes to the device. */
function watchWrites(url: string): number[] {
  const sizes: number[] = []
  const { _write: write, _writev: writev } = Socket.prototype
  const isToDevice = ({ remotePort }: Socket): boolean => remotePort === Number(new URL(url).port)
  vi.spyOn(Socket.prototype, '_write').mockImplementation(function (this: Socket, chunk: Buffer, ...rest) {
    if (isToDevice(this)) sizes.push(chunk.length)
    write.call(this, chunk, ...rest)
  })
  vi.spyOn(Socket.prototype, '_writev').mockImplementation(function (this: Socket, pieces, done) {
    if (isToDevice(this)) sizes.push(pieces.reduce((sum, { chunk }) => sum + chunk.length, 0))
    writev?.call(this, pieces, done)
  })
  return sizes
}

/** Uploads pieces that come in one turn of the event loop. Resolves with the sizes of the writes, and their number at the end of the body. */
async function upload(...pieces: readonly number[]) {
  const received: number[] = []
  const device = await startDevice(async (request, response) => {
    received.push((await readBody(request)).length)
    response.end()
  })
  const { url } = device
  const clock = stillClock()
  const connections = createConnections(
    { origin: url, socketPath: undefined, reuse: 'shared', parser: 'strict' },
    { connect: PATIENCE, response: PATIENCE, idle: PATIENCE },
    clock,
    { capacity: AMPLE_CAPACITY },
  )
  closeLater(() => connections.close())
  const sizes = watchWrites(url)
  const size = pieces.reduce((sum, piece) => sum + piece, 0)
  const fields = ['Host', 'd', 'Content-Length', String(size)]
  async function* body(): AsyncGenerator<Buffer, void, void> {
    for (const piece of pieces) yield Buffer.alloc(piece)
  }
  let written = 0
  await new Promise<void>((resolve, reject) => {
    const loan = connections.borrow(false)
    const handler: ResponseHandler = {
      uploaded() {
        written = sizes.length
      },
      inform() {},
      head() {},
      data() {},
      end() {
        loan.release(true)
        resolve()
      },
      failed: reject,
    }
    loan.connection.send({ method: 'POST', target: '/', fields, framing: size, body: body() }, handler)
  })
  expect(received).toEqual([size])
  return { sizes, written }
}

describe('An upload', () => {
  it('is sent by one write for all pieces of a turn of the event loop', async () => {
    const { sizes } = await upload(RECORD, RECORD, RECORD)
    expect(sizes).toEqual([expect.any(Number)])
  })

  it('waits for the end of the turn with at most 128 KiB', async () => {
    const { sizes } = await upload(...Array(32).fill(RECORD))
    expect(sizes).toHaveLength(4)
  })

  it('of one piece does not wait for the end of the turn', async () => {
    const { sizes, written } = await upload(RECORD)
    expect([sizes.length, written]).toEqual([1, 1])
  })
})
