import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { needs, run } from '../support/tools.ts'
import { needsMachine } from './machine.ts'

const REPOSITORY = join(import.meta.dirname, '../..')
const FLEET = ['shared-tokens', 'server-faults', 'failover'].map((name) => `test/fleet/${name}.test.ts`)
const TIMEOUT = 900_000

/** Unpacks the Valkey of Debian 13, and returns a program that starts it with the libraries of that Debian. */
async function unpackValkey(): Promise<string> {
  const folder = temporaryDirectory()
  const root = join(folder, 'root')
  const unpacking = ['--quiet', '--variant=extract', '--include=valkey-server', 'trixie', root]
  const { code, stderr } = await run('mmdebstrap', unpacking, { timeout: TIMEOUT })
  if (code !== 0) throw new Error(`mmdebstrap: ${stderr}`)
  const libraries = readdirSync(join(root, 'usr/lib')).find((name) => name.endsWith('-linux-gnu'))
  const all = join(root, 'usr/lib', libraries ?? '')
  const loader = readdirSync(all).find((name) => name.startsWith('ld-linux'))
  const program = join(folder, 'valkey-server')
  const line = `exec ${join(all, loader ?? '')} --library-path ${all} ${join(root, 'usr/bin/valkey-server')} "$@"`
  writeFileSync(program, `#!/bin/sh\n${line}\n`, { mode: 0o755 })
  return program
}

it('H128 H136 H145 H147 a fleet shares its tokens through Valkey', { timeout: TIMEOUT }, async () => {
  needsMachine()
  needs('redis-cli')
  const program = await unpackValkey()
  expect((await run(program, ['--version'])).stdout).toMatch(/^Valkey server v=[89]/)
  const { code, stdout, stderr } = await run(
    process.execPath,
    // Two files at a time, because machines boot beside them.
    ['node_modules/vitest/vitest.mjs', 'run', '--maxWorkers=2', ...FLEET],
    {
      cwd: REPOSITORY,
      env: { ...process.env, POSTERN_REDIS_SERVER: program },
      timeout: TIMEOUT,
    },
  )
  // Why a test failed stands behind the list of all.
  expect(code, `${stderr.slice(stderr.indexOf('Failed Tests'))}\n${stdout}`).toBe(0)
})
