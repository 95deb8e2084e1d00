import { copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { stripProgram } from '../../deploy/build/strip.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { needs, run } from '../support/tools.ts'

const OWN = process.arch === 'arm64' ? 'arm64' : 'x64'
const OTHER = OWN === 'x64' ? 'arm64' : 'x64'

afterEach(() => {
  vi.unstubAllEnvs()
})

/** A copy of the Node.js of the npm package, which has its symbols. */
function copyOfNode(): string {
  const file = join(temporaryDirectory(), 'node')
  copyFileSync(process.execPath, file)
  return file
}

it('a stripped program runs as before, is a fifth smaller, and has the same bytes each time', async () => {
  needs('strip')
  const [file, again] = [copyOfNode(), copyOfNode()]
  expect(await stripProgram(file, OWN)).toBeUndefined()
  expect((await run(file, ['-p', '6 * 7'])).stdout).toBe('42\n')
  expect(statSync(file).size).toBeLessThan(statSync(process.execPath).size * 0.8)
  await stripProgram(again, OWN)
  expect(readFileSync(again).equals(readFileSync(file))).toBe(true)
})

it('a program stays as it is without a strip for its processor, whose name is told', async () => {
  const file = copyOfNode()
  vi.stubEnv('PATH', temporaryDirectory())
  expect(await stripProgram(file, OTHER)).toMatch(/^[\w-]+-linux-gnu-strip$/)
  expect(await stripProgram(file, OWN)).toMatch(/^[\w-]+-linux-gnu-strip$/)
  vi.unstubAllEnvs()
  expect(readFileSync(file).equals(readFileSync(process.execPath))).toBe(true)
})

it('a file that strip cannot read is refused', async () => {
  needs('strip')
  const file = join(temporaryDirectory(), 'script')
  writeFileSync(file, '#!/bin/sh\n')
  await expect(stripProgram(file, OWN)).rejects.toThrow(/strip/)
})
