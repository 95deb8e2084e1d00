import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { rawConnection } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'

const TIMEOUT = 400
/** The sessions begin so far apart (ms): together over more than one timeout. */
const APART = 50

it('an HTTP/2 session without its SETTINGS is open for the time of a head, whenever it begins', async () => {
  const config = { listen: { header_timeout: `${TIMEOUT}ms` } }
  const sidecar = await startSidecar({ transport: 'h2', config })
  const lasted: Promise<number>[] = []
  for (let i = 0; i < 10; i += 1) {
    const { closed } = await rawConnection(sidecar.url, { alpn: ['h2'] })
    const opened = performance.now()
    lasted.push(closed.then(() => performance.now() - opened))
    await pause(APART)
  }
  // The timers of Node count whole milliseconds.
  expect(Math.min(...(await Promise.all(lasted)))).toBeGreaterThanOrEqual(TIMEOUT - 2)
})
