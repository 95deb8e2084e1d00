import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { listen } from '../../src/system/listen.ts'
import { temporaryDirectory } from '../support/certificate.ts'

it('a file that stands where a Unix socket is to be made stays, and is named', async () => {
  const path = join(temporaryDirectory(), 'file')
  writeFileSync(path, 'precious')
  await expect(listen(createServer(), { kind: 'unix', path })).rejects.toThrow(
    `cannot listen on unix:${path}: it exists and is not a socket; move it away`,
  )
  expect(readFileSync(path, 'utf8')).toBe('precious')
})
