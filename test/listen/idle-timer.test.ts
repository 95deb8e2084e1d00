import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { rawConnection } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'

const IDLE = 200
/** What is added, so that a client that was told the time is not cut off at its very end. */
const BUFFER = 1000

it('a kept connection is closed when it has been idle, counted from its last request', async () => {
  const sidecar = await startSidecar({ config: { listen: { idle_timeout: `${IDLE}ms` } } })
  const client = await rawConnection(sidecar.url)
  const opened = performance.now()
  let last = opened
  // Together longer than one timeout, each less.
  for (let request = 0; request < 4; request += 1) {
    if (request > 0) await pause((IDLE + BUFFER) * 0.4)
    client.forget()
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    last = performance.now()
    await client.waitFor('401')
  }
  expect(last - opened).toBeGreaterThan(IDLE + BUFFER)
  await client.closed
  expect(performance.now() - last).toBeGreaterThan(IDLE)
})

it('a connection on which nothing is ever said is closed likewise', async () => {
  const sidecar = await startSidecar({ config: { listen: { idle_timeout: `${IDLE}ms` } } })
  const client = await rawConnection(sidecar.url)
  await client.closed
  expect(client.received).toBe('')
})
