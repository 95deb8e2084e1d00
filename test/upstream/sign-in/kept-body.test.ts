import { once } from 'node:events'
import { PassThrough, Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { writeSpent } from '../../../src/http/spent-bytes.ts'
import { keepBody } from '../../../src/upstream/sign-in/kept-body.ts'

async function* pieces(...chunks: string[]): AsyncGenerator<Buffer> {
  for (const chunk of chunks) yield Buffer.from(chunk)
}

async function read(body: AsyncIterable<Buffer>): Promise<string> {
  return Buffer.concat(await Array.fromAsync(body)).toString()
}

describe('A kept body', () => {
  it('can be read once more when it was read to its end', async () => {
    const body = keepBody(pieces('a', 'b', 'c'))
    expect(body.repeatable).toBe(false)
    expect(await read(body.open())).toBe('abc')
    expect(body.repeatable).toBe(true)
    expect(await read(body.open())).toBe('abc')
  })

  it('cannot when it was broken off', async () => {
    const body = keepBody(pieces('a', 'b'))
    for await (const _ of body.open()) break
    expect(body.repeatable).toBe(false)
  })

  it('is a copy: what is sent gives its memory back', async () => {
    const body = keepBody(Readable.from([Buffer.alloc(20_000, 'x'), Buffer.alloc(20_000, 'y')]))
    const device = new PassThrough().resume()
    for await (const piece of body.open()) writeSpent(device, piece)
    device.end()
    await once(device, 'end')
    expect(await read(body.open())).toBe('x'.repeat(20_000) + 'y'.repeat(20_000))
  })

  it('goes through whole, and is not kept, when it is long', async () => {
    const body = keepBody(pieces('x'.repeat(65_536), 'y'))
    expect(await read(body.open())).toHaveLength(65_537)
    expect(body.repeatable).toBe(false)
  })

  it('hands its own failure on', async () => {
    async function* broken(): AsyncGenerator<Buffer> {
      yield Buffer.from('a')
      throw new Error('stalled')
    }
    const body = keepBody(broken())
    await expect(read(body.open())).rejects.toThrow('stalled')
    expect(body.repeatable).toBe(false)
    body.close()
  })
})
