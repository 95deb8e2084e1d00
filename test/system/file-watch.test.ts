import { appendFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import { watchFile } from '../../src/system/file-watch.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'

/** A change behind a linked folder may cause no notification, so such a file is polled. */
function polledFile(): string {
  const folder = temporaryDirectory()
  const linked = join(temporaryDirectory(), 'linked')
  symlinkSync(folder, linked)
  return join(linked, 'password')
}

it('a file whose changes cause notifications is read once, and not looked at again until it changes', async () => {
  const file = join(temporaryDirectory(), 'password')
  writeFileSync(file, 'x')
  const read = vi.fn(async () => true)
  const watch = watchFile(file, stillClock(), read)
  closeLater(() => watch.close())
  await expect.poll(() => read.mock.calls.length).toBe(1)
  await delay(1100)
  expect(read).toHaveBeenCalledTimes(1)
  writeFileSync(file, 'y')
  await expect.poll(() => read.mock.calls.length).toBeGreaterThan(1)
})

it('H75 a polled file that changed very recently is read at every poll; later only when its timestamps change', async () => {
  const file = polledFile()
  writeFileSync(file, 'x')
  const clock = stillClock()
  const read = vi.fn(async () => true)
  const watch = watchFile(file, clock, read)
  closeLater(() => watch.close())
  await expect.poll(() => read.mock.calls.length).toBeGreaterThanOrEqual(3)

  await clock.advance(10_000)
  // A read may be in progress. After it, the polls of a second read nothing.
  await delay(100)
  const reads = read.mock.calls.length
  await delay(1100)
  expect(read).toHaveBeenCalledTimes(reads)

  writeFileSync(file, 'y')
  await expect.poll(() => read.mock.calls.length).toBeGreaterThan(reads)
})

it('a change during a read causes another read, and two reads never run concurrently', async () => {
  const file = join(temporaryDirectory(), 'password')
  writeFileSync(file, 'x')
  let atOnce = 0
  let most = 0
  let reads = 0
  const first = Promise.withResolvers<void>()
  const watch = watchFile(file, stillClock(), async () => {
    atOnce += 1
    most = Math.max(most, atOnce)
    reads += 1
    if (reads === 1) await first.promise
    atOnce -= 1
    return true
  })
  closeLater(() => watch.close())
  await expect.poll(() => reads).toBe(1)
  writeFileSync(file, 'y')
  await delay(600)
  expect(reads).toBe(1)
  first.resolve()
  await expect.poll(() => reads).toBeGreaterThan(1)
  expect(most).toBe(1)
})

it('a log in the same folder causes no look at the file', async () => {
  const folder = temporaryDirectory()
  const [file, log] = [join(folder, 'password'), join(folder, 'log')] as const
  for (const each of [file, log]) writeFileSync(each, 'x')
  const clock = stillClock()
  const looks = vi.fn(clock.monotonic)
  const written = vi.fn(async () => true)
  for (const watch of [
    watchFile(file, { ...clock, monotonic: looks }, async () => true),
    watchFile(log, clock, written),
  ]) {
    closeLater(() => watch.close())
  }
  await expect.poll(() => written.mock.calls.length).toBe(1)
  // The notifications of the writes before.
  await delay(100)
  const before = looks.mock.calls.length
  for (let line = 0; line < 5; line += 1) {
    const reads = written.mock.calls.length
    appendFileSync(log, 'line\n')
    await expect.poll(() => written.mock.calls.length).toBeGreaterThan(reads)
  }
  expect(looks).toHaveBeenCalledTimes(before)
})

it('H75 a read that failed is repeated until it succeeds, although the file does not change any more', async () => {
  const file = join(temporaryDirectory(), 'password')
  writeFileSync(file, 'x')
  const clock = stillClock()
  const results = [false, false, true]
  const read = vi.fn(async () => {
    // No longer a recent change, which is read anew anyway.
    await clock.advance(10_000)
    return results[read.mock.calls.length - 1] ?? true
  })
  const watch = watchFile(file, clock, read)
  closeLater(() => watch.close())
  await expect.poll(() => read.mock.calls.length).toBe(3)
  await delay(100)
  expect(read).toHaveBeenCalledTimes(3)
})

it('H75 a file that comes and goes within one look is looked at again', async () => {
  const clock = stillClock()
  // The file comes between the look at its metadata and the second read, which finds it, and is gone at the next look.
  const results = [false, true, false]
  const read = vi.fn(async () => {
    await clock.advance(10_000)
    return results[read.mock.calls.length - 1] ?? false
  })
  const watch = watchFile(join(temporaryDirectory(), 'password'), clock, read)
  closeLater(() => watch.close())
  await expect.poll(() => read.mock.calls.length).toBeGreaterThanOrEqual(3)
})
