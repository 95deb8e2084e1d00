import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { headOf } from '../support/http1-reader.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'
import { formAuth, startFormDevice } from './devices.ts'

it('C24 an upgrade whose client left during the sign-in opens no connection to the device', async () => {
  const device = await startFormDevice()
  const gate = Promise.withResolvers<void>()
  device.gate = () => gate.promise
  const file = join(temporaryDirectory(), 'device-password')
  writeFileSync(file, device.password)
  const auth = { ...formAuth(), password: { file } }
  const sidecar = await startSidecar({ device: device.device, config: { upstream: { auth } } })
  const token = await sidecar.token()
  const client = await rawConnection(sidecar.url)
  client.write(
    headOf(
      'GET /ws HTTP/1.1',
      'Host: device',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      `Authorization: Bearer ${token}`,
    ),
  )
  await expect.poll(() => device.forms.length).toBe(1)
  client.reset()
  await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
  const { connections } = device.device
  gate.resolve()
  // The next request uses the session of this login and its connection.
  expect((await sidecar.request({ token })).status).toBe(200)
  expect(device.device.connections).toBe(connections)
})
