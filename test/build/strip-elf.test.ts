import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { stripElf } from '../../deploy/build/strip-elf.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { needs, run } from '../support/tools.ts'

/** The Node.js of the npm package, which has its symbols. */
const program = readFileSync(process.execPath)
const stripped = stripElf(program)

it('a stripped program runs as before and is a fifth smaller', () => {
  const file = join(temporaryDirectory(), 'node')
  writeFileSync(file, stripped, { mode: 0o755 })
  expect(execFileSync(file, ['-p', '6 * 7'], { encoding: 'utf8' })).toBe('42\n')
  expect(stripped.length).toBeLessThan(program.length * 0.8)
})

it('the same program gives the same bytes, and a stripped one stays as it is', () => {
  expect(stripElf(program).equals(stripped)).toBe(true)
  expect(stripElf(stripped).equals(stripped)).toBe(true)
})

it('readelf accepts a stripped program, which has the sections that strip keeps', async () => {
  needs('readelf')
  needs('strip')
  const folder = temporaryDirectory()
  const [ours, theirs] = [join(folder, 'ours'), join(folder, 'theirs')]
  writeFileSync(ours, stripped)
  await run('strip', ['--strip-all', '-o', theirs, process.execPath])
  const sections = async (file: string): Promise<readonly string[]> => {
    const { stdout, stderr } = await run('readelf', ['--wide', '--section-headers', file])
    expect(stderr).toBe('')
    return [...stdout.matchAll(/^ +\[ *\d+\] (\.\S+)/gm)].map(([, name = '']) => name)
  }
  // What `strip` keeps of the compiler's notes is not loaded.
  const loaded = (await sections(theirs)).filter((name) => !/^\.(comment|gnu\.build\.attributes)$/.test(name))
  expect(await sections(ours)).toEqual(loaded)
})

/** An ELF file of section headers alone. `loaded`: whether each section behind the first, empty one is loaded. */
function withSections(loaded: readonly boolean[]): Buffer {
  const file = Buffer.alloc(64 + (loaded.length + 1) * 64)
  Buffer.from('7f454c460201', 'hex').copy(file)
  file.writeBigUInt64LE(64n, 0x28)
  file.writeUInt16LE(loaded.length + 1, 0x3c)
  file.writeUInt16LE(loaded.length, 0x3e)
  for (const [i, isLoaded] of loaded.entries()) {
    file.writeBigUInt64LE(isLoaded ? 2n : 0n, 64 + (i + 1) * 64 + 8)
  }
  return file
}

it('a loaded section behind one that is not loaded is refused, because symbols name sections by number', () => {
  expect(() => stripElf(withSections([true, false, false]))).not.toThrow()
  expect(() => stripElf(withSections([false, true, false]))).toThrow(
    'a loaded section lies behind one that is not loaded',
  )
})

it.each([
  ['a script', Buffer.from('#!/bin/sh\necho an ELF file of 64 bits has a header of 64 bytes\n')],
  ['a 32-bit program', Buffer.concat([Buffer.from('7f454c46010101', 'hex'), Buffer.alloc(64)])],
])('%s is refused', (_what, bytes) => {
  expect(() => stripElf(bytes)).toThrow('not a 64-bit little-endian ELF file')
})
