import { afterEach, expect, it } from 'vitest'
import { giveBack, LARGE_BUFFER, lendBuffer } from '../../src/system/read-buffers.ts'
import { collectGarbage } from '../support/processes.ts'

const lent: Buffer[] = []

function lend(): Buffer | undefined {
  const buffer = lendBuffer()
  if (buffer !== undefined) lent.push(buffer)
  return buffer
}

afterEach(() => {
  for (const buffer of lent.splice(0)) giveBack(buffer)
})

it('C26 all large buffers together take at most 4 MiB, whoever holds them', () => {
  while (lend() !== undefined) expect(lent.length).toBeLessThan(100)
  expect(lent.length * LARGE_BUFFER).toBe(4 * 1024 ** 2)
  expect(new Set(lent.map(({ buffer }) => buffer)).size).toBe(lent.length)
})

it('C26 a buffer is lent again when a piece that begins it comes back, and never while it is lent', () => {
  const [first, second] = [lend(), lend()]
  expect(first?.buffer).not.toBe(second?.buffer)
  expect(giveBack((first ?? expect.fail()).subarray(0, LARGE_BUFFER / 2))).toBe(true)
  expect(lend()?.buffer).toBe(first?.buffer)
})

it('C26 what was not lent, and a piece from the middle, does not come back', () => {
  const buffer = lend() ?? expect.fail()
  expect([Buffer.alloc(LARGE_BUFFER), Buffer.alloc(10), buffer.subarray(1)].map(giveBack)).toEqual([
    false,
    false,
    false,
  ])
  expect(lend()?.buffer).not.toBe(buffer.buffer)
})

it('C26 a buffer that was lost with its connection is replaced', async () => {
  while (lendBuffer() !== undefined);
  await expect
    .poll(() => {
      collectGarbage()
      return lend()
    })
    .toHaveLength(LARGE_BUFFER)
})
