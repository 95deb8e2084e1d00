import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { listen } from '../../src/system/listen.ts'
import { temporaryDirectory } from '../support/certificate.ts'

it('a file in place of a Unix socket is not removed, and the error names it', async () => {
  const path = join(temporaryDirectory(), 'file')
  writeFileSync(path, 'precious')
  await expect(listen(createServer(), { kind: 'unix', path })).rejects.toThrow(
    `cannot listen on unix:${path}: it exists and is not a socket; move it away`,
  )
  expect(readFileSync(path, 'utf8')).toBe('precious')
})
