import { once } from 'node:events'
import { PassThrough, Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { bufferBody } from '../../src/forward/buffered-body.ts'
import { writeSpent } from '../../src/system/write-soon.ts'
import { collectGarbage } from '../support/processes.ts'

async function* pieces(...chunks: string[]): AsyncGenerator<Buffer> {
  for (const chunk of chunks) yield Buffer.from(chunk)
}

async function read(body: AsyncIterable<Buffer>): Promise<string> {
  return Buffer.concat(await Array.fromAsync(body)).toString()
}

/** Size of the live buffers outside the heap (bytes). */
function liveBuffers(): number {
  // The collector sweeps buffers in the background: the second collection waits for the sweep of the first.
  collectGarbage()
  collectGarbage()
  return process.memoryUsage().arrayBuffers
}

/** One-byte pieces, each a slice of its own read buffer, as connections deliver them. */
async function* crumbs(count: number): AsyncGenerator<Buffer> {
  for (let i = 0; i < count; i += 1) yield Buffer.alloc(64 * 1024, 'x').subarray(0, 1)
}

describe('a buffered body', () => {
  it('can be read before it is opened, up to its limit and not a byte more', async () => {
    const body = bufferBody(pieces('abc', '', 'de'), 5)
    expect(await body.readAll()).toBe(5)
    expect(body.repeatable).toBe(true)
    for (let i = 0; i < 3; i += 1) expect(await read(body.open())).toBe('abcde')
    expect(await bufferBody(pieces('abc', 'def'), 5).readAll()).toBeUndefined()
    expect(await bufferBody(pieces(), 5).readAll()).toBe(0)
  })

  it('is not read any further past its limit', async () => {
    let read = 0
    async function* endless(): AsyncGenerator<Buffer> {
      for (;;) {
        read += 1
        yield Buffer.from('x')
      }
    }
    expect(await bufferBody(endless(), 3).readAll()).toBeUndefined()
    expect(read).toBe(4)
  })

  it('uses as much memory as it has bytes, however small its pieces are', async () => {
    const before = liveBuffers()
    const body = bufferBody(crumbs(5000), 5000)
    expect(await body.readAll()).toBe(5000)
    // The read buffers of these pieces add up to 327 MB.
    expect(liveBuffers() - before).toBeLessThan(1024 * 1024)
    expect(await read(body.open())).toBe('x'.repeat(5000))
  })

  it('can be read again after it was read to its end', async () => {
    const body = bufferBody(pieces('a', 'b', 'c'))
    expect(body.repeatable).toBe(false)
    expect(await read(body.open())).toBe('abc')
    expect(body.repeatable).toBe(true)
    expect(await read(body.open())).toBe('abc')
  })

  it('cannot be read again after an incomplete read', async () => {
    const body = bufferBody(pieces('a', 'b'))
    for await (const _ of body.open()) break
    expect(body.repeatable).toBe(false)
  })

  it('is a copy, because the memory of sent pieces is freed', async () => {
    const body = bufferBody(Readable.from([Buffer.alloc(20_000, 'x'), Buffer.alloc(20_000, 'y')]))
    const device = new PassThrough().resume()
    for await (const piece of body.open()) writeSpent(device, piece)
    device.end()
    await once(device, 'end')
    expect(await read(body.open())).toBe('x'.repeat(20_000) + 'y'.repeat(20_000))
  })

  it('can be read any number of times, because a request may be repeated more than once', async () => {
    const body = bufferBody(Readable.from([Buffer.alloc(40_000, 'x'), Buffer.from('y')]))
    for (let i = 0; i < 4; i += 1) {
      const device = new PassThrough().resume()
      let sent = ''
      for await (const piece of body.open()) {
        sent += piece.toString()
        writeSpent(device, piece)
      }
      device.end()
      await once(device, 'end')
      expect(sent).toBe(`${'x'.repeat(40_000)}y`)
    }
  })

  it('passes through completely, and is not buffered, if it is too long', async () => {
    const body = bufferBody(pieces('x'.repeat(65_536), 'y'))
    expect(await read(body.open())).toHaveLength(65_537)
    expect(body.repeatable).toBe(false)
  })

  it('fails with the error of its source', async () => {
    async function* broken(): AsyncGenerator<Buffer> {
      yield Buffer.from('a')
      throw new Error('stalled')
    }
    const body = bufferBody(broken())
    await expect(read(body.open())).rejects.toThrow('stalled')
    expect(body.repeatable).toBe(false)
    body.close()
  })
})
