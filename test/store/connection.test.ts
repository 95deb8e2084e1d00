import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { parseStoreUrl } from '../../src/config/store-fields.ts'
import { connect } from '../../src/fleet/connection.ts'
import { closeLater } from '../support/cleanup.ts'
import { unusedPort } from '../support/raw.ts'
import { standStill } from '../support/stand-still.ts'

const SERVERS = 20
const DEFAULTS = { replicas: 0, tls: {} }

// A name may stand for several servers in turn, and every request waits while the event loop is busy.
it('connecting to another server takes a few milliseconds of processor time at most', async () => {
  const port = await unusedPort()
  function to(server: number): Promise<unknown> {
    const parsed = parseStoreUrl(`valkey://127.0.0.${server}:${port}`)
    if ('problem' in parsed) throw new Error(parsed.problem)
    const settings = { address: parsed.value, prefix: 'postern', timeout: 10_000, ...DEFAULTS }
    return connect(settings, new AbortController().signal)
  }
  await expect(to(1)).rejects.toThrow('ECONNREFUSED')
  const before = process.threadCpuUsage()
  for (let server = 2; server < 2 + SERVERS; server++)
    await expect(to(server)).rejects.toThrow('ECONNREFUSED')
  const { user, system } = process.threadCpuUsage(before)
  expect((user + system) / 1000 / SERVERS).toBeLessThan(10)
})

it('H357 a server that has accepted a connection in time is used after a stall of the sidecar', async () => {
  const port = await unusedPort()
  const server = createServer().listen(port, '127.0.0.1')
  closeLater(() => void server.close())
  await once(server, 'listening')
  const parsed = parseStoreUrl(`valkey://127.0.0.1:${port}`)
  if ('problem' in parsed) throw new Error(parsed.problem)
  const settings = { address: parsed.value, prefix: 'postern', timeout: 500, ...DEFAULTS }
  const onSocket = (): void => {
    unsubscribe('net.client.socket', onSocket)
    process.nextTick(standStill, 700)
  }
  subscribe('net.client.socket', onSocket)
  const connection = await connect(settings, new AbortController().signal)
  connection.end(new Error('the test is over'))
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
      timeout: 200,
      ...DEFAULTS,
    }
    const accepted = once(server, 'connection')
    const attempt = connect(settings, new AbortController().signal)
    const [socket] = await accepted
    const closed = once(socket.on('error', () => {}).resume(), 'close')
    await expect(attempt).rejects.toThrow('200')
    await closed
  },
)
