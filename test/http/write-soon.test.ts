import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { writeSoon } from '../../src/http/write-soon.ts'
import { socketPair } from '../support/socket-pair.ts'

it('what is written within a turn of the event loop leaves at its end, in order', async () => {
  const [first, second] = [await socketPair(), await socketPair()]
  const told: string[] = []
  for (const [socket, text] of [
    [first.from, 'a'],
    [second.from, 'b'],
    [first.from, 'c\xe9'],
  ] as const) {
    writeSoon(socket, text, (error) => told.push(`${text} ${error ?? 'written'}`))
  }
  await Promise.resolve()
  expect([first.from.bytesWritten, second.from.bytesWritten]).toEqual([0, 0])
  await turn()
  expect([first.from.bytesWritten, second.from.bytesWritten], 'one byte a character').toEqual([3, 1])
  await expect.poll(() => told).toEqual(['a written', 'b written', 'c\xe9 written'])
})

it('a connection that is gone by then is told so, and holds up nobody', async () => {
  const [gone, other] = [await socketPair(), await socketPair()]
  const told: (Error | null | undefined)[] = []
  writeSoon(gone.from, 'a', (error) => told.push(error))
  writeSoon(other.from, 'b')
  gone.from.destroy()
  await turn()
  await expect.poll(() => told).toMatchObject([{ code: 'ERR_STREAM_DESTROYED' }])
  expect(other.from.bytesWritten).toBe(1)
})
