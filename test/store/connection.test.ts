import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { parseStoreUrl } from '../../src/config/store-fields.ts'
import { connect } from '../../src/fleet/connection.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { unusedPort } from '../support/raw.ts'

const SERVERS = 20
const DEFAULTS = { replicas: 0, tls: {} }

// A name may stand for several servers in turn, and every request waits while the event loop is busy.
it('connecting to another server takes a few milliseconds of processor time at most', async () => {
  const port = await unusedPort()
  function to(server: number): Promise<unknown> {
    const parsed = parseStoreUrl(`valkey://127.0.0.${server}:${port}`)
    if ('problem' in parsed) throw new Error(parsed.problem)
    const settings = { address: parsed.value, prefix: 'postern', timeout: 10_000, ...DEFAULTS }
    return connect(settings, new AbortController().signal, stillClock())
  }
  await expect(to(1)).rejects.toThrow('ECONNREFUSED')
  const before = process.threadCpuUsage()
  for (let server = 2; server < 2 + SERVERS; server++)
    await expect(to(server)).rejects.toThrow('ECONNREFUSED')
  const { user, system } = process.threadCpuUsage(before)
  expect((user + system) / 1000 / SERVERS).toBeLessThan(10)
})

it.each(['valkey', 'valkeys'])(
  'a server that accepts a connection of %s:// and says nothing is left after the timeout',
  async (scheme) => {
    const port = await unusedPort()
    const server = createServer().listen(port, '127.0.0.1')
    closeLater(() => void server.close())
    await once(server, 'listening')
    const parsed = parseStoreUrl(`${scheme}://:secret@127.0.0.1:${port}`)
    if ('problem' in parsed) throw new Error(parsed.problem)
    const settings = {
      address: parsed.value,
      password: 'secret',
      prefix: 'postern',
      timeout: 5_000,
      ...DEFAULTS,
    }
    const accepted = once(server, 'connection')
    const clock = stillClock()
    const attempt = connect(settings, new AbortController().signal, clock)
    const refused = expect(attempt).rejects.toThrow('the server does not reply within 5s')
    const [socket] = await accepted
    let isClosed = false
    const closed = once(socket.on('error', () => {}).resume(), 'close').then(() => {
      isClosed = true
    })
    await clock.advance(4_999)
    expect(clock.pending).toBe(1)
    expect(isClosed).toBe(false)
    await clock.advance(1)
    await refused
    await closed
    expect(clock.pending).toBe(0)
  },
)
