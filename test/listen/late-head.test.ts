import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { startHttp1Server } from '../support/http1-server.ts'
import { rawConnection } from '../support/raw.ts'

it('a head that has arrived in time is served, also if the process stalls until after its deadline', async () => {
  const url = await startHttp1Server(
    (exchange) => exchange.reply({ status: 200, fields: ['Content-Length', '6'], body: 'served' }),
    { headerTimeout: 1_000 },
  )
  const client = await rawConnection(url)
  client.write('GET / HTTP/1.1\r\n')
  // In these turns the server accepts the connection, which begins the deadline.
  for (let turn = 0; turn < 10; turn += 1) await setImmediate()
  client.write('Host: a\r\n\r\n')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_100)
  expect(await client.waitFor('\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
})
