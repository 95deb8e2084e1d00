import { once } from 'node:events'
import { expect, it } from 'vitest'
import { nextTurn } from '../../src/system/clock.ts'
import { writeSoon } from '../../src/system/write-soon.ts'
import { socketPair } from '../support/raw.ts'

it('writeSoon writes the first message of an event-loop turn at once, and the others at its end, in order', async () => {
  const [first, second, third] = [await socketPair(), await socketPair(), await socketPair()]
  const reports: string[] = []
  const written = (): number[] => [first, second, third].map(({ from }) => from.bytesWritten)
  for (const [{ from }, text] of [
    [first, 'ab'],
    [second, 'c\xe9'],
    [third, 'd'],
  ] as const) {
    writeSoon(from, text, (error) => reports.push(`${text} ${error ?? 'written'}`))
  }
  expect(reports, 'no callback runs before the call returns').toEqual([])
  expect(written()).toEqual([2, 0, 0])
  await nextTurn()
  expect(written(), 'one byte per character').toEqual([2, 2, 1])
  await expect.poll(() => reports).toEqual(['ab written', 'c\xe9 written', 'd written'])
})

it('writeSoon writes the first message of the next turn at once, also from a callback', async () => {
  const [first, second, third] = [await socketPair(), await socketPair(), await socketPair()]
  writeSoon(first.from, 'a')
  writeSoon(second.from, 'b', () => writeSoon(third.from, 'c'))
  await nextTurn()
  expect([first, second, third].map(({ from }) => from.bytesWritten)).toEqual([1, 1, 1])
})

it('writeSoon costs a lone message no immediate, and the next turn begins without one', async () => {
  const [first, second] = [await socketPair(), await socketPair()]
  const immediates = (): number =>
    process.getActiveResourcesInfo().filter((kind) => kind === 'Immediate').length
  await nextTurn()
  const before = immediates()
  writeSoon(first.from, 'a')
  expect(immediates()).toBe(before)
  await once(first.to.resume(), 'data')
  writeSoon(second.from, 'b')
  expect([first, second].map(({ from }) => from.bytesWritten)).toEqual([1, 1])
})

it('writeSoon reports a connection that is closed by then, and writes to the others', async () => {
  const [first, gone, other] = [await socketPair(), await socketPair(), await socketPair()]
  const reports: (Error | null | undefined)[] = []
  writeSoon(first.from, 'a')
  writeSoon(gone.from, 'b', (error) => reports.push(error))
  writeSoon(other.from, 'c')
  gone.from.destroy()
  await nextTurn()
  await expect.poll(() => reports).toMatchObject([{ code: 'ERR_STREAM_DESTROYED' }])
  expect(other.from.bytesWritten).toBe(1)
})

it('writeSoon reports a message to a slow reader when the kernel has accepted it, and not before', async () => {
  const [first, slow] = [await socketPair(), await socketPair()]
  const size = 16 * 1024 * 1024
  const reports: unknown[] = []
  writeSoon(first.from, 'a')
  writeSoon(slow.from, 'x'.repeat(size), (error) => reports.push(error ?? 'written'))
  await nextTurn()
  await nextTurn()
  expect(slow.from.writableLength).toBeGreaterThan(0)
  expect(reports).toEqual([])
  let read = 0
  slow.to.on('data', (bytes: Buffer) => {
    read += bytes.length
  })
  slow.to.resume()
  await expect.poll(() => reports).toEqual(['written'])
  await expect.poll(() => read).toBe(size)
})
