import { once } from 'node:events'
import { PassThrough, Writable } from 'node:stream'
import { expect, it, vi } from 'vitest'
import { giveBack, lendBuffer } from '../../src/system/read-buffers.ts'
import { writeSpent } from '../../src/system/write-soon.ts'
import { socketPair } from '../support/raw.ts'

const SIZE = 64 * 1024

it('C21 writeSpent frees the memory of a large piece when it is sent, and not before', async () => {
  const { from, to } = await socketPair()
  const pieces = Array.from({ length: 200 }, (_, at) => Buffer.alloc(SIZE, at))
  for (const piece of pieces) writeSpent(from, piece)
  // The kernel does not buffer 12 MiB for a peer that does not read.
  expect(pieces.at(-1)?.length).toBe(SIZE)

  const received: Buffer[] = []
  to.on('data', (chunk: Buffer) => received.push(chunk))
  to.resume()
  from.end()
  await once(to, 'end')
  const sent = Buffer.concat(pieces.map((_, at) => Buffer.alloc(SIZE, at)))
  expect(Buffer.concat(received).equals(sent)).toBe(true)
  expect(pieces.map(({ length }) => length)).toEqual(pieces.map(() => 0))
})

it('C21 writeSpent does not free memory that another buffer shares', async () => {
  const stream = new PassThrough().resume()
  const whole = Buffer.alloc(2 * SIZE, 'x')
  const [first, second] = [whole.subarray(0, SIZE), whole.subarray(SIZE)]
  const small = Buffer.from('small')
  for (const piece of [first, small]) writeSpent(stream, piece)
  stream.end()
  await once(stream, 'end')
  expect([first.length, second.length, small.toString()]).toEqual([SIZE, SIZE, 'small'])
})

it('C21 writeSpent frees the memory that pieces share with the last of them', async () => {
  const stream = new PassThrough().resume()
  const whole = Buffer.alloc(3 * SIZE, 'x')
  for (const at of [0, 1, 2]) {
    expect(whole.length).toBe(3 * SIZE)
    writeSpent(stream, whole.subarray(at * SIZE, (at + 1) * SIZE))
  }
  stream.end()
  await once(stream, 'end')
  expect(whole.length).toBe(0)
})

it.each([
  ['out of order', [0, 2, 1]],
  ['one of them several times', [0, 0, 0]],
  ['all but the first', [1, 2]],
])('C21 writeSpent does not free the memory that pieces share if they are spent %s', async (_, order) => {
  const stream = new PassThrough().resume()
  const whole = Buffer.alloc(3 * SIZE, 'x')
  for (const at of order) writeSpent(stream, whole.subarray(at * SIZE, (at + 1) * SIZE))
  stream.end()
  await once(stream, 'end')
  expect(whole.length).toBe(3 * SIZE)
})

it('C21 writeSpent leaves a piece that a broken connection was writing to the garbage collector', async () => {
  const stuck = new Writable({ write: () => {} }).on('error', () => {})
  const piece = Buffer.alloc(SIZE)
  writeSpent(stuck, piece)
  stuck.destroy()
  await once(stuck, 'close')
  expect(piece.length).toBe(SIZE)
})

it('H283 a large buffer comes back when the connection breaks that it waits for', async () => {
  const { from } = await socketPair()
  // The kernel does not buffer 16 MiB for a peer that does not read.
  from.write(Buffer.alloc(16 * 1024 ** 2))
  const buffer = lendBuffer() ?? expect.fail()
  writeSpent(from, buffer)
  const written = vi.fn()
  from.write('', written)
  from.on('error', () => {}).destroy(new Error('broken'))
  await expect.poll(() => written.mock.calls).toHaveLength(1)
  const free: Buffer[] = []
  for (let next = lendBuffer(); next !== undefined; next = lendBuffer()) free.push(next)
  expect(free.map((each) => each.buffer)).toContain(buffer.buffer)
  for (const each of free) giveBack(each)
})
