import { expect, it } from 'vitest'
import { parseStoreUrl } from '../../src/config/store-fields.ts'
import { connect } from '../../src/fleet/connection.ts'
import { unusedPort } from '../support/raw.ts'

const SERVERS = 20

// A failover connects to several servers, and every request waits while the event loop is busy.
it('connecting to another server takes a few milliseconds of processor time at most', async () => {
  const port = await unusedPort()
  const parsed = parseStoreUrl(`valkey://127.0.0.1:${port}`)
  if ('problem' in parsed) throw new Error(parsed.problem)
  const settings = { address: parsed.value, prefix: 'postern', timeout: 10_000, tls: { insecure: false } }
  const to = (server: number): Promise<unknown> =>
    connect(settings, { host: `127.0.0.${server}`, port }, new AbortController().signal)
  await expect(to(1)).rejects.toThrow('ECONNREFUSED')
  const before = process.threadCpuUsage()
  for (let server = 2; server < 2 + SERVERS; server++)
    await expect(to(server)).rejects.toThrow('ECONNREFUSED')
  const { user, system } = process.threadCpuUsage(before)
  expect((user + system) / 1000 / SERVERS).toBeLessThan(10)
})
