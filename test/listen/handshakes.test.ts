import { expect, it } from 'vitest'
import { rawConnection } from '../support/raw.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { needs, run } from '../support/tools.ts'

/** The beginning of a ClientHello. */
const BEGUN = Buffer.from('16030100f8010000f40303', 'hex')

type Client = (url: string) => Promise<void>

const clients: Readonly<Record<string, readonly [reason: string, client: Client]>> = {
  'does not trust the certificate': ['tls_error', distrust],
  'speaks no TLS': ['tls_error', (url) => say(url, Buffer.from('GET / HTTP/1.1\r\nHost: device\r\n\r\n'))],
  'begins, and leaves': ['client_left', leave],
  'begins, and falls silent': ['handshake_timeout', (url) => say(url, BEGUN)],
}

const NONE = { tls_error: 0, client_left: 0, handshake_timeout: 0 }

it.each(Object.entries(clients))('a client that %s is counted once', async (_what, [reason, client]) => {
  // Only silence is to take its time: a busy machine may need more for a handshake.
  const config = reason === 'handshake_timeout' ? { listen: { handshake_timeout: '300ms' } } : {}
  const sidecar = await startSidecar({ transport: 'tls', config })
  await sidecar.token()
  expect(await failures(sidecar)).toEqual(NONE)
  await client(sidecar.url)
  await expect.poll(() => failed(sidecar, reason)).toBe(1)
  await sidecar.token()
  expect(await failures(sidecar)).toEqual({ ...NONE, [reason]: 1 })
})

function failed(sidecar: TestSidecar, reason: string): Promise<number> {
  return sidecar.metric('postern_handshakes_failed_total', { reason })
}

async function failures(sidecar: TestSidecar): Promise<Record<string, number>> {
  const counts = await Promise.all(
    Object.keys(NONE).map(async (reason) => [reason, await failed(sidecar, reason)]),
  )
  return Object.fromEntries(counts)
}

/** Node's own client would finish the handshake, and leave only then. */
async function distrust(url: string): Promise<void> {
  needs('curl')
  expect((await run('curl', ['-sS', url])).stderr).toContain('certificate')
}

async function say(url: string, bytes: Buffer): Promise<void> {
  const raw = await rawConnection(url.replace('https:', 'http:'))
  raw.write(bytes)
  await raw.closed
}

async function leave(url: string): Promise<void> {
  const raw = await rawConnection(url.replace('https:', 'http:'))
  raw.write(BEGUN)
  raw.end()
  await raw.closed
}
