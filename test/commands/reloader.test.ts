import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createReloader } from '../../src/commands/reloader.ts'
import { SidecarStopped } from '../../src/compose/reload.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createLogOn } from '../../src/record/log.ts'
import { SetupError } from '../../src/system/setup-error.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { passUntil, stillClock } from '../support/clock.ts'

it('a change of a file causes one reload, although others come while it settles and watch the file anew', async () => {
  const configFile = join(temporaryDirectory(), 'postern.yaml')
  writeFileSync(configFile, 'first')
  const config = loadConfig({
    object: { upstream: { url: 'http://127.0.0.1:1' }, password: { file: 'password' } },
  })
  const clock = stillClock()
  let [reloads, asked] = [0, 0]
  const sidecar: Parameters<typeof createReloader>[0] = {
    async reload(load) {
      load()
      reloads += 1
      return { live: [], restart: [] }
    },
  }
  const source = {
    configFile,
    seen: new Map([[configFile, 'first']]),
    load: () => ({ config, locationOf: () => undefined }),
  }
  const reloader = createReloader(sidecar, source, createLogOn('silent', { write() {} }), clock)
  reloader.watch(config)
  closeLater(reloader.close)
  // The second change tells that no further reload of the first one is to come.
  for (const [index, content] of ['second', 'third'].entries()) {
    writeFileSync(configFile, content)
    while (reloads - asked === index) {
      asked += 1
      reloader.reload('signal')
      await clock.advance(5)
    }
  }
  expect(reloads - asked).toBe(2)
})

it('a reload of a sidecar that is about to stop is no failure', async () => {
  const lines: string[] = []
  const sidecar: Parameters<typeof createReloader>[0] = { reload: () => Promise.reject(new SidecarStopped()) }
  const written = Promise.withResolvers<void>()
  const log = createLogOn('info', {
    write(line: string) {
      lines.push(line)
      written.resolve()
    },
  })
  const source = { configFile: undefined, seen: new Map<string, string>(), load: () => assert.fail() }
  createReloader(sidecar, source, log, stillClock()).reload('signal')
  await written.promise
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 30, msg: 'configuration not reloaded: the sidecar stops' },
  ])
})

it('a reload that lacks descriptors is repeated until it works, and logged once', async () => {
  const config = loadConfig({
    object: { upstream: { url: 'http://127.0.0.1:1' }, password: { file: 'password' } },
  })
  const lines: string[] = []
  const log = createLogOn('info', { write: (line: string) => lines.push(line) })
  const cause = Object.assign(new Error('too many open files'), { code: 'EMFILE' })
  const clock = stillClock()
  let attempts = 0
  const done = Promise.withResolvers<void>()
  const sidecar: Parameters<typeof createReloader>[0] = {
    async reload(load) {
      load()
      attempts += 1
      if (attempts < 3) throw new SetupError('cannot read device-ca.pem: EMFILE', { cause })
      done.resolve()
      return { live: ['realm'], restart: [] }
    },
  }
  const reloader = createReloader(
    sidecar,
    { configFile: undefined, seen: new Map(), load: () => ({ config, locationOf: () => undefined }) },
    log,
    clock,
  )
  closeLater(reloader.close)
  reloader.reload('signal')
  await passUntil(clock, done.promise)
  await expect.poll(() => lines.length).toBe(2)
  expect(lines.map((line) => JSON.parse(line).msg)).toEqual([
    'configuration not reloaded: the previous one stays in effect',
    'configuration reloaded',
  ])
})
