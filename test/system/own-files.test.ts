import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { ensureFolder } from '../../src/system/own-files.ts'

it('ensureFolder makes a folder and its parents with mode 0700, and keeps the mode of an existing one', () => {
  const base = mkdtempSync(join(tmpdir(), 'postern-folder-'))
  onTestFinished(() => rmSync(base, { recursive: true }))
  ensureFolder(join(base, 'a', 'b', 'c'))
  ensureFolder(join(base, 'a', 'b'))
  mkdirSync(join(base, 'open'))
  chmodSync(join(base, 'open'), 0o750)
  ensureFolder(join(base, 'open'))
  expect(statSync(join(base, 'open')).mode & 0o777).toBe(0o750)
  for (const made of ['a', 'a/b', 'a/b/c']) expect(statSync(join(base, made)).mode & 0o777).toBe(0o700)
})

it('ensureFolder fails at once where no folder can be made', () => {
  expect(() => ensureFolder('/proc/postern/state')).toThrow(/ENOENT/)
})
