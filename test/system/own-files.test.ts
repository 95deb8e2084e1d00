import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { ensureFolder, writeFlushed } from '../../src/system/own-files.ts'

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

it('writeFlushed writes a file with mode 0600 under a new name beside the path, and leaves none if it fails', () => {
  const base = mkdtempSync(join(tmpdir(), 'postern-folder-'))
  onTestFinished(() => rmSync(base, { recursive: true }))
  const drafts = ['one', 'two'].map((text) => writeFlushed(join(base, 'key.pem'), text))
  expect(drafts.map((draft) => readFileSync(draft, 'utf8'))).toEqual(['one', 'two'])
  for (const draft of drafts) expect(statSync(draft).mode & 0o777).toBe(0o600)
  expect(() => writeFlushed(join(base, 'none', 'key.pem'), 'x')).toThrow(/ENOENT/)
  expect(readdirSync(base)).toHaveLength(2)
})
