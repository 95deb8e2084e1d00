import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createSidecar } from '../../src/compose/sidecar.ts'
import { loadConfig } from '../../src/config/load.ts'
import { openLogOn } from '../../src/record/log.ts'
import type { Clock } from '../../src/system/clock.ts'
import { replaceFile } from '../process/serve.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { passUntil, stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { HASHED_PASSWORD, startSidecar } from '../support/sidecar.ts'

/** How often the names of the machine are compared with the certificate (ms): no other part has a timer of this length. */
const LOOK_AT_NAMES = 60_000

async function configure() {
  const device = await startDevice()
  const directory = temporaryDirectory()
  const file = join(directory, 'password')
  replaceFile(file, `${HASHED_PASSWORD}\n`)
  return loadConfig({
    object: {
      listen: { address: '127.0.0.1:0' },
      admin: { address: '127.0.0.1:0' },
      upstream: { url: device.url, health: { path: '/health' } },
      password: { file },
      state_dir: join(directory, 'state'),
    },
  })
}

const silent = () => openLogOn('silent', { write() {} })

it('a stop closes every part: no timer of a sidecar runs after it', async () => {
  const clock = stillClock()
  const sidecar = await createSidecar(await configure(), { clock, ...silent() })
  await sidecar.start()
  expect(clock.pending).toBeGreaterThan(0)
  await passUntil(clock, sidecar.stop(0))
  expect(clock.pending).toBe(0)
})

it('a part that cannot be closed keeps no other part open', async () => {
  const still = stillClock()
  const clock: Clock = {
    ...still,
    every(time, f) {
      const timer = still.every(time, f)
      if (time !== LOOK_AT_NAMES) return timer
      return {
        cancel() {
          timer.cancel()
          throw new Error('cannot close')
        },
      }
    },
  }
  const config = await configure()
  const sidecar = await createSidecar(config, { clock, ...silent() })
  await sidecar.start()
  await expect(passUntil(still, sidecar.stop(0))).rejects.toThrow('cannot close')
  // The state folder is free.
  const again = await createSidecar(config, { clock: still, ...silent() })
  closeLater(() => passUntil(still, again.stop(0)))
})

it('H183 a stop ends the time for which a shared response is kept', async () => {
  const clock = stillClock()
  const sidecar = await startSidecar({
    clock,
    config: { upstream: { share: { paths: ['/status'], for: '1h' } } },
  })
  expect((await sidecar.request({ token: await sidecar.token(), path: '/status' })).status).toBe(200)
  await sidecar.stop()
  expect(clock.pending).toBe(0)
})
