import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { Script } from 'node:vm'
import { expect, it, onTestFinished } from 'vitest'
import { addCompiledCode } from '../../deploy/build/compiled-code.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { installedBundle } from '../support/shipped.ts'
import { run } from '../support/tools.ts'

/** Milliseconds. On a machine with more load than this test makes, a build takes ten times as long as alone. */
const TIMEOUT = 120_000

const bundle = join(installedBundle(), 'dist')
const caches = readdirSync(bundle).filter((name) => name.endsWith('.cache'))

/**
 * Keeps every core but one busy until the test ends; the build under test takes that one. It ends by itself, too, because it
 * outlives a run of the tests that is killed.
 */
async function loadTheMachine(): Promise<void> {
  const spin = `for (const end = performance.now() + ${TIMEOUT}; performance.now() < end; );`
  for (let core = 0; core < Math.max(1, availableParallelism() - 1); core++) {
    const busy = spawn(process.execPath, ['-e', spin], { stdio: 'ignore' })
    await once(busy, 'spawn')
    onTestFinished(() => void busy.kill('SIGKILL'))
  }
}

it(
  'the compiled code is the same on an idle and on a loaded machine',
  async () => {
    await loadTheMachine()
    const copy = join(temporaryDirectory(), 'dist')
    cpSync(bundle, copy, { recursive: true })
    await addCompiledCode(copy)
    expect(caches).toContain('serve.cjs.cache')
    const differing = caches.filter(
      (name) => !readFileSync(join(copy, name)).equals(readFileSync(join(bundle, name))),
    )
    expect(differing).toEqual([])
  },
  TIMEOUT,
)

it('V8 takes the compiled code of every script, which is more than loading the script compiles', async () => {
  const check = `
    const { readFileSync } = require('node:fs')
    const { Script } = require('node:vm')
    for (const file of process.argv.slice(1)) {
      const cachedData = readFileSync(file + '.cache').subarray(64)
      const script = new Script(readFileSync(file, 'latin1'), { cachedData })
      console.log(script.cachedDataRejected)
    }
  `
  const scripts = caches.map((name) => join(bundle, name.slice(0, -'.cache'.length)))
  const { stdout } = await run(process.execPath, ['-e', check, ...scripts])
  expect(stdout).toBe('false\n'.repeat(scripts.length))
  const sizes = scripts.map((script) => ({
    shipped: readFileSync(`${script}.cache`).length,
    lazy: new Script(readFileSync(script, 'latin1')).createCachedData().length,
  }))
  // A script of a few lines has no function that a start calls later.
  for (const { shipped, lazy } of sizes) expect(shipped).toBeGreaterThan(lazy)
  const sum = (of: 'shipped' | 'lazy'): number => sizes.reduce((all, size) => all + size[of], 0)
  expect(sum('shipped')).toBeGreaterThan(1.2 * sum('lazy'))
})
