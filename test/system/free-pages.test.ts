import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { freePagesOf } from '../../src/system/free-pages.ts'

const MODULE = fileURLToPath(new URL('../../src/system/free-pages.ts', import.meta.url))

/** Frees 40 MB of small blocks, all but one in a hundred, and tells the anonymous memory (KiB) with them, without, and at the end. */
const PROGRAM = `
  import { readFileSync } from 'node:fs'
  import { freePagesOf } from ${JSON.stringify(MODULE)}
  const returnFreePages = freePagesOf(process.getBuiltinModule('node:ffi'))
  process.permission.drop('ffi')
  const memory = () => Number(/^RssAnon:\\s+(\\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))[1])
  let blocks = Array.from({ length: 20_000 }, () => Buffer.allocUnsafeSlow(2_000).fill(1))
  const held = memory()
  blocks = blocks.filter((_, at) => at % 100 === 0)
  gc()
  const freed = memory()
  // V8 frees the blocks beside the program.
  const ends = Date.now() + 30_000
  while (freed - memory() <= 25_000 && Date.now() < ends) {
    await new Promise(setImmediate)
    returnFreePages()
  }
  let later = 'permitted'
  try { process.getBuiltinModule('node:ffi').dlopen(null) } catch ({ code }) { later = code }
  console.log(JSON.stringify({ held, freed, returned: memory(), later, blocks: blocks.length }))`

it('H270 pages that the C library keeps free go back to the system, also when no other native function may be called', () => {
  const flags = ['--permission', '--allow-ffi', '--allow-fs-read=*', '--expose-gc', '--no-warnings']
  const args = [...flags, '--input-type=module', '-e', PROGRAM]
  const told = execFileSync(process.execPath, args, { encoding: 'utf8', env: { MALLOC_ARENA_MAX: '1' } })
  const { held, freed, returned, later } = JSON.parse(told)
  expect(held - freed).toBeLessThan(10_000)
  expect(freed - returned).toBeGreaterThan(25_000)
  expect(later).toBe('ERR_ACCESS_DENIED')
})

it('a C library without such a function returns nothing, and the program goes on', () => {
  const dlopen = (): never => {
    throw new Error('dlsym: Symbol not found: malloc_trim')
  }
  expect(freePagesOf({ dlopen })).toBeUndefined()
})
