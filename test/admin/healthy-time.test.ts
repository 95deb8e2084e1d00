import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createTcpServer } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { prepareSite } from '../process/serve.ts'
import { closeLater } from '../support/cleanup.ts'
import { unusedPort } from '../support/raw.ts'

it('H321 healthy has one time for handshake and response', async () => {
  const port = await unusedPort()
  const made = await prepareSite({
    transport: 'tls',
    config: { admin: { address: `127.0.0.1:${port}`, tls: 'on' } },
  })
  const { cert, key } = parse(readFileSync(made.configFile, 'utf8')).listen.tls
  const slow = createTlsServer({ cert: readFileSync(cert), key: readFileSync(key) }, (socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      setTimeout(() => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'), 2_000)
    })
  })
  const wire = createTcpServer((socket) => {
    setTimeout(() => slow.emit('connection', socket), 2_000)
  }).listen(port, '127.0.0.1')
  await once(wire, 'listening')
  closeLater(() => void wire.close())
  expect(await made.postern('healthy')).toMatchObject({
    code: 1,
    stderr: `postern healthy: /healthz at 127.0.0.1:${port}: no response within 3 s\n`,
  })
})
