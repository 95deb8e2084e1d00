import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { writeSoon } from '../../src/system/write-soon.ts'
import { socketPair } from '../support/socket-pair.ts'

it('of what is written within a turn of the event loop the first leaves at once, and the rest at its end, in order', async () => {
  const [first, second, third] = [await socketPair(), await socketPair(), await socketPair()]
  const told: string[] = []
  const written = (): number[] => [first, second, third].map(({ from }) => from.bytesWritten)
  for (const [{ from }, text] of [
    [first, 'ab'],
    [second, 'c\xe9'],
    [third, 'd'],
  ] as const) {
    writeSoon(from, text, (error) => told.push(`${text} ${error ?? 'written'}`))
  }
  expect(told, 'nobody is told before the call returns').toEqual([])
  expect(written()).toEqual([2, 0, 0])
  await turn()
  expect(written(), 'one byte a character').toEqual([2, 2, 1])
  await expect.poll(() => told).toEqual(['ab written', 'c\xe9 written', 'd written'])
})

it('the next turn begins anew, also where one answer leads to the next', async () => {
  const [first, second, third] = [await socketPair(), await socketPair(), await socketPair()]
  writeSoon(first.from, 'a')
  writeSoon(second.from, 'b', () => writeSoon(third.from, 'c'))
  await turn()
  expect([first, second, third].map(({ from }) => from.bytesWritten)).toEqual([1, 1, 1])
})

it('a connection that is gone by then is told so, and holds up nobody', async () => {
  const [first, gone, other] = [await socketPair(), await socketPair(), await socketPair()]
  const told: (Error | null | undefined)[] = []
  writeSoon(first.from, 'a')
  writeSoon(gone.from, 'b', (error) => told.push(error))
  writeSoon(other.from, 'c')
  gone.from.destroy()
  await turn()
  await expect.poll(() => told).toMatchObject([{ code: 'ERR_STREAM_DESTROYED' }])
  expect(other.from.bytesWritten).toBe(1)
})

it('of a message for somebody who is slow to read is told when the kernel has it, and not before', async () => {
  const [first, slow] = [await socketPair(), await socketPair()]
  const size = 16 * 1024 * 1024
  const told: unknown[] = []
  writeSoon(first.from, 'a')
  writeSoon(slow.from, 'x'.repeat(size), (error) => told.push(error ?? 'written'))
  await turn()
  await turn()
  expect(slow.from.writableLength).toBeGreaterThan(0)
  expect(told).toEqual([])
  let read = 0
  slow.to.on('data', (bytes: Buffer) => {
    read += bytes.length
  })
  slow.to.resume()
  await expect.poll(() => told).toEqual(['written'])
  await expect.poll(() => read).toBe(size)
})
