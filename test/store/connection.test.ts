import { expect, it } from 'vitest'
import { connect } from '../../src/fleet/connection.ts'
import { unusedPort } from '../support/raw.ts'

const SERVERS = 20

// A failover connects to several servers, and every request waits while the event loop is busy.
it('connecting to another server takes a few milliseconds of processor time at most', async () => {
  const port = await unusedPort()
  const login = { user: undefined, password: undefined, database: 0, tls: undefined }
  const to = (server: number): Promise<unknown> =>
    connect({ ...login, at: { host: `127.0.0.${server}`, port } }, 10_000, new AbortController().signal)
  await expect(to(1)).rejects.toThrow('ECONNREFUSED')
  const before = process.cpuUsage()
  for (let server = 2; server < 2 + SERVERS; server++)
    await expect(to(server)).rejects.toThrow('ECONNREFUSED')
  const { user, system } = process.cpuUsage(before)
  expect((user + system) / 1000 / SERVERS).toBeLessThan(10)
})
