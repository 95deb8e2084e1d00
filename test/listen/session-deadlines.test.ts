import { once } from 'node:events'
import type { Socket } from 'node:net'
import { expect, it } from 'vitest'
import { rawConnection } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'
import { nextAccepted } from '../support/waiting.ts'

/** The time of a head (ms). */
const TIMEOUT = 10_000
/** The sessions begin so far apart (ms): together over more than one interval of the looks at all sessions. */
const APART = 70

it('an HTTP/2 session without its SETTINGS is open for the time of a head, whenever it begins', async () => {
  const sidecar = await startSidecar({ transport: 'h2' })
  const { clock } = sidecar
  const sockets: Socket[] = []
  const lasted: Promise<number>[] = []
  for (let i = 0; i < 10; i += 1) {
    const accepted = nextAccepted(sidecar.url)
    const client = await rawConnection(sidecar.url, { alpn: ['h2'] })
    const opened = clock.monotonic()
    const socket = await accepted
    await expect.poll(() => sidecar.metric('postern_connections', { protocol: 'h2' })).toBe(i + 1)
    lasted.push(once(socket, 'close').then(() => clock.monotonic() - opened))
    client.socket.resume()
    sockets.push(socket)
    await clock.advance(APART)
  }
  await clock.advance(TIMEOUT - 10 * APART - 1)
  expect(sockets.filter(({ destroyed }) => destroyed)).toEqual([])
  await clock.advance(TIMEOUT)
  expect(Math.min(...(await Promise.all(lasted)))).toBeGreaterThanOrEqual(TIMEOUT)
})
