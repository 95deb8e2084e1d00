import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { parseStoreUrl } from '../../src/config/store-fields.ts'
import { connect } from '../../src/fleet/connection.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { closeLater } from '../support/cleanup.ts'
import { realClock } from '../support/clock.ts'
import { standStill } from '../support/processes.ts'
import { unusedPort } from '../support/raw.ts'
import { startRedis } from '../support/redis.ts'
import { needs } from '../support/tools.ts'
import { ADD, KEY, open } from './opened.ts'

it('H357 a server that has accepted a connection in time is used after a stall of the sidecar', async () => {
  const port = await unusedPort()
  const server = createServer().listen(port, '127.0.0.1')
  closeLater(() => void server.close())
  await once(server, 'listening')
  const parsed = parseStoreUrl(`valkey://127.0.0.1:${port}`)
  if ('problem' in parsed) throw new Error(parsed.problem)
  const settings = { address: parsed.value, prefix: 'postern', timeout: 500, replicas: 0, tls: {} }
  const onSocket = (): void => {
    unsubscribe('net.client.socket', onSocket)
    process.nextTick(standStill, 700)
  }
  subscribe('net.client.socket', onSocket)
  const connection = await connect(settings, new AbortController().signal, realClock())
  connection.end(new Error('the test is over'))
})

it('H357 a reply of the server that comes in time counts after this process stood still', async () => {
  needs('redis-server')
  const redis = await startRedis()
  const { store, transitions } = await open(`valkey://${redis.at}`, { timeout: 1_000 }, realClock())
  await store.run(ADD, [KEY], [1])
  const asked = store.run(ADD, [KEY], [1])
  // The question leaves in this turn.
  await nextTurn()
  standStill(1_200)
  expect(await asked).toBe(2)
  expect(transitions).toEqual(['up'])
})
