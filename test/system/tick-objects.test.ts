import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const MODULE = join(import.meta.dirname, '..', '..', 'src', 'system', 'tick-objects.ts')

/** Prints how much longer a tick takes after full collections than before: the least of many short rounds each. */
const PROGRAM = `
  const { keepTicksFast } = require(${JSON.stringify(MODULE)})
  if (process.argv[1] === 'kept') keepTicksFast()
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  const round = () => new Promise((resolve) => {
    const begun = performance.now()
    let left = 20_000
    const tick = () => (left -= 1) > 0 ? process.nextTick(tick) : resolve(performance.now() - begun)
    process.nextTick(tick)
  })
  async function least() {
    let least = Infinity
    for (let i = 0; i < 40; i += 1) least = Math.min(least, await round())
    return least
  }
  async function main() {
    const before = await least()
    for (let i = 0; i < 3; i += 1) {
      await turn()
      gc()
    }
    await turn()
    console.log(await least() / before)
  }
  void main()`

async function slowdown(how: string): Promise<number> {
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', '-e', PROGRAM, how])
  return Number(stdout)
}

it('ticks stay fast after a full collection, where Node by itself makes them slow for good', async () => {
  const [kept, asNodeHasIt]: [number[], number[]] = [[], []]
  for (let i = 0; i < 3; i += 1) {
    kept.push(await slowdown('kept'))
    asNodeHasIt.push(await slowdown('as Node has it'))
  }
  expect(Math.min(...kept)).toBeLessThan(1.7)
  // When this fails, Node has mended it, and `keepTicksFast` is needless.
  expect(Math.max(...asNodeHasIt)).toBeGreaterThan(1.7)
})
