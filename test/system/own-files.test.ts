import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { ensureFolder } from '../../src/system/own-files.ts'

it('makes a folder and those above it for nobody else, and leaves an existing one as it is', () => {
  const base = mkdtempSync(join(tmpdir(), 'postern-folder-'))
  onTestFinished(() => rmSync(base, { recursive: true }))
  ensureFolder(join(base, 'a', 'b', 'c'))
  ensureFolder(join(base, 'a', 'b'))
  for (const made of ['a', 'a/b', 'a/b/c']) expect(statSync(join(base, made)).mode & 0o777).toBe(0o700)
})

it('fails at once where no folder can be made', () => {
  expect(() => ensureFolder('/proc/postern/state')).toThrow(/ENOENT/)
})
