import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createConfigWarnings } from '../../src/compose/config-warnings.ts'
import { changesBetween } from '../../src/config/changes.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/schema.ts'
import type { Logger } from '../../src/record/log.ts'
import { temporaryDirectory } from '../support/certificate.ts'

function warning() {
  const lines: string[] = []
  const bugs: unknown[] = []
  const warn = (_line: unknown, message: unknown): number => lines.push(String(message))
  // The warnings use no other method.
  const log = { warn } as unknown as Logger
  return { lines, bugs, warnOf: createConfigWarnings(log, (error) => bugs.push(error)) }
}

const UNSET = ['upstream.url=http://127.0.0.1', 'limits.wrong_passwords=slow']
const USUAL = [...UNSET, 'listen.address=auto']

function plainPassword(): Config {
  const file = join(temporaryDirectory(), 'password')
  writeFileSync(file, 'correct horse\n')
  chmodSync(file, 0o644)
  return loadConfig({ sets: [...USUAL, `password.file=${file}`] })
}

it('the address that is not set is told once, and is that of IPv4; a reload that sets it waits for no restart', async () => {
  const { lines, warnOf } = warning()
  const sets = [...UNSET, 'password.file=/nowhere/password']
  const unset = loadConfig({ sets })
  for (let look = 0; look < 2; look += 1) await warnOf(unset)
  expect(lines).toEqual(['listen.address is not set, so clients reach Postern over IPv4 only'])
  const chosen = loadConfig({ sets: [...sets, 'listen.address=0.0.0.0:8443'] })
  await warnOf(chosen)
  expect(lines).toHaveLength(1)
  expect(changesBetween(unset, chosen)).toEqual([])
})

it('an earlier look that takes longer does not make a later one forget what it has logged', async () => {
  const { lines, warnOf } = warning()
  const observing = loadConfig({
    sets: [...USUAL, 'password.file=/nowhere/password', 'enforce=false'],
  })
  await Promise.all([warnOf(plainPassword()), warnOf(observing)])
  expect(lines.splice(0)).toHaveLength(3)
  await warnOf(observing)
  expect(lines).toEqual([])
})

it('a bug in a look is reported, rejects nothing, and the next look works', async () => {
  const { lines, bugs, warnOf } = warning()
  const config = plainPassword()
  // A configuration without its sections stands for a bug.
  await warnOf({} as Config)
  expect(bugs).toEqual([expect.any(TypeError)])
  await warnOf(config)
  expect(lines).toHaveLength(2)
})
