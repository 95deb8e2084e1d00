import { appendFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { watchFile } from '../../src/system/file-watch.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'

/** A change behind a linked folder may cause no notification, so such a file is polled. */
function polledFile(): string {
  const folder = temporaryDirectory()
  const linked = join(temporaryDirectory(), 'linked')
  symlinkSync(folder, linked)
  return join(linked, 'password')
}

/** Watches a file. `looks`: how many looks at it are over; `next`: how long (ms) until the next one. */
function watched(file: string, read: (clock: MovableClock) => Promise<boolean>, clock = stillClock()) {
  const after = vi.fn(clock.after)
  const watch = watchFile(file, { ...clock, after }, () => read(clock))
  closeLater(() => watch.close())
  return {
    clock,
    looks: () => after.mock.calls.length,
    next: () => after.mock.calls.at(-1)?.[0],
  }
}

/** How long (ms) one look waits after a notification of the kernel, for the others of the same write. */
const DEBOUNCE = 20
const CALM = 30_000

it('a file whose changes cause notifications is read once, and not looked at again until it changes', async () => {
  const file = join(temporaryDirectory(), 'password')
  writeFileSync(file, 'x')
  const read = vi.fn(async () => true)
  const { clock, looks, next } = watched(file, read)
  await expect.poll(looks).toBe(1)
  await clock.advance(CALM - 1)
  expect([looks(), read.mock.calls.length]).toEqual([1, 1])
  writeFileSync(file, 'y')
  await expect.poll(next).toBe(DEBOUNCE)
  await clock.advance(DEBOUNCE)
  await expect.poll(() => read.mock.calls.length).toBe(2)
})

it('H75 a polled file that changed very recently is read at every poll; later only when its timestamps change', async () => {
  const file = polledFile()
  writeFileSync(file, 'x')
  const read = vi.fn(async () => true)
  const { clock, looks, next } = watched(file, read)
  const reads: number[] = []
  const look = async (): Promise<void> => {
    await expect.poll(looks).toBe(reads.length + 1)
    expect(next()).toBe(500)
    reads.push(read.mock.calls.length)
    await clock.advance(500)
  }
  for (let i = 0; i < 10; i += 1) await look()
  expect(reads).toEqual([1, 2, 3, 4, 4, 4, 4, 4, 4, 4])
  await expect.poll(looks).toBe(11)
  writeFileSync(file, 'yy')
  await clock.advance(500)
  await expect.poll(() => read.mock.calls.length).toBe(5)
})

it('a change during a read causes another read, and two reads never run concurrently', async () => {
  const file = join(temporaryDirectory(), 'password')
  writeFileSync(file, 'x')
  let atOnce = 0
  let most = 0
  let reads = 0
  const first = Promise.withResolvers<void>()
  const { clock, next } = watched(file, async () => {
    atOnce += 1
    most = Math.max(most, atOnce)
    reads += 1
    if (reads === 1) await first.promise
    atOnce -= 1
    return true
  })
  await expect.poll(() => reads).toBe(1)
  writeFileSync(file, 'y')
  await clock.advance(2 * CALM)
  expect(reads).toBe(1)
  first.resolve()
  await expect.poll(next).toBe(DEBOUNCE)
  await clock.advance(DEBOUNCE)
  await expect.poll(() => reads).toBe(2)
  expect(most).toBe(1)
})

it('a log in the same folder causes no look at the file', async () => {
  const folder = temporaryDirectory()
  const [file, log] = [join(folder, 'password'), join(folder, 'log')] as const
  for (const each of [file, log]) writeFileSync(each, 'x')
  const written = vi.fn(async () => true)
  const ofFile = watched(file, async () => true)
  const ofLog = watched(log, written)
  await expect.poll(() => [ofFile.looks(), ofLog.looks()]).toEqual([1, 1])
  for (let line = 0; line < 5; line += 1) {
    const [looks, reads] = [ofLog.looks(), written.mock.calls.length]
    appendFileSync(log, 'line\n')
    await expect.poll(ofLog.next).toBe(DEBOUNCE)
    await ofLog.clock.advance(DEBOUNCE)
    await expect.poll(() => ofLog.looks()).toBeGreaterThan(looks + 1)
    expect(written.mock.calls.length).toBeGreaterThan(reads)
  }
  expect([ofFile.looks(), ofFile.next()]).toEqual([1, CALM])
})

it('H75 a read that failed is repeated until it succeeds, although the file does not change any more', async () => {
  const file = join(temporaryDirectory(), 'password')
  writeFileSync(file, 'x')
  const results = [false, false, true]
  let reads = 0
  const { clock, looks, next } = watched(file, async (clock) => {
    reads += 1
    // No longer a recent change, which is read anew anyway.
    await clock.advance(10_000)
    return results[reads - 1] ?? true
  })
  for (const [index, pause] of [1_000, 2_000, CALM].entries()) {
    await expect.poll(looks).toBe(index + 1)
    expect([reads, next()]).toEqual([index + 1, pause])
    await clock.advance(pause - 1)
    expect(reads).toBe(index + 1)
    await clock.advance(1)
  }
  await expect.poll(looks).toBe(4)
  expect(reads).toBe(3)
})

it('H75 a file that comes and goes within one look is looked at again', async () => {
  // The file comes between the look at its metadata and the second read, which finds it, and is gone at the next look.
  const results = [false, true, false]
  let reads = 0
  const { clock, looks, next } = watched(join(temporaryDirectory(), 'password'), async (clock) => {
    reads += 1
    await clock.advance(10_000)
    return results[reads - 1] ?? false
  })
  for (let look = 1; reads < 3; look += 1) {
    await expect.poll(looks).toBe(look)
    await clock.advance(next() ?? 0)
  }
})
