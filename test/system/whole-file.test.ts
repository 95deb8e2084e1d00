import { execFileSync } from 'node:child_process'
import { truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { readWholeFile } from '../../src/system/named-file.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { needs } from '../support/tools.ts'

it('reads a file up to the limit, and not beyond', async () => {
  const file = join(temporaryDirectory(), 'file')
  writeFileSync(file, 'x'.repeat(2048))
  expect((await readWholeFile(file, 2048)).length).toBe(2048)
  await expect(readWholeFile(file, 1024)).rejects.toThrow('is larger than 1 KiB')
  truncateSync(file, 0)
  expect((await readWholeFile(file)).length).toBe(0)
})

it.each(['/dev/zero', '/dev/null', '/tmp'])('refuses %s', async (path) => {
  await expect(readWholeFile(path)).rejects.toThrow(/is not a regular file|is a folder/)
})

it('refuses a FIFO without waiting for a writer', async () => {
  needs('mkfifo')
  const fifo = join(temporaryDirectory(), 'fifo')
  execFileSync('mkfifo', [fifo])
  await expect(readWholeFile(fifo)).rejects.toThrow('is not a regular file')
})

it('passes the error of the system on', async () => {
  await expect(readWholeFile('/nowhere/at/all')).rejects.toMatchObject({ code: 'ENOENT' })
})
