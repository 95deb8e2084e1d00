import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { closeLater } from '../support/cleanup.ts'
import { startDevice } from '../support/device.ts'
import { rawConnection } from '../support/raw.ts'
import { nextRequest, OK, startScripted } from '../support/scripted.ts'
import { FORM_TYPE, PASSWORD_GRANT, startSidecar } from '../support/sidecar.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'

/** The deadline of each test, and how long this process stands still: longer than that (ms). */
const deadline = '1s'
const STALL = 1_200

/** This process stands still, as on a machine that sleeps. What is sent to it before waits in the kernel. */
function stall(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL)
}

/** Lets the sidecar read what was sent. */
async function turns(): Promise<void> {
  for (let i = 0; i < 5; i += 1) await turn()
}

const head = (...lines: readonly string[]): string => `${lines.join('\r\n')}\r\n`

// For heads and kept connections see `stalls.test.ts`.

it('a handshake whose last message has come in time succeeds after a stall of the sidecar', async () => {
  const config = { listen: { handshake_timeout: deadline } }
  const sidecar = await startSidecar({ transport: 'tls', config })
  const client = await rawConnection(sidecar.url)
  // The client sends the message in this turn, and the sidecar reads it in the next.
  await turn()
  stall()
  client.write(head('GET / HTTP/1.1', 'Host: x', ''))
  expect(await client.waitFor('\r\n\r\n')).toMatch(/^HTTP\/1\.1 401 /)
})

it('a form that has come in time is read after a stall of the sidecar', async () => {
  const sidecar = await startSidecar({ config: { listen: { body_timeout: deadline } } })
  const client = await rawConnection(sidecar.url)
  const type = `Content-Type: ${FORM_TYPE}`
  client.write(
    head('POST /oauth/token HTTP/1.1', 'Host: x', type, `Content-Length: ${PASSWORD_GRANT.length}`, ''),
  )
  await turns()
  client.write(PASSWORD_GRANT)
  stall()
  expect(await client.waitFor('\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
})

it('an upload that has come in time is forwarded after a stall of the sidecar', async () => {
  const sidecar = await startSidecar({ config: { listen: { body_timeout: deadline } } })
  const authorization = `Authorization: Bearer ${await sidecar.token()}`
  const client = await rawConnection(sidecar.url)
  client.write(`${head('POST / HTTP/1.1', 'Host: x', authorization, 'Content-Length: 4', '')}ab`)
  await turns()
  client.write('cd')
  stall()
  expect(await client.waitFor('\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
  expect(String(sidecar.device.requests[0]?.body)).toBe('abcd')
})

it('a response of the device that has come in time is passed on after a stall of the sidecar', async () => {
  const device = await startScripted(async (peer) => {
    await nextRequest(peer)
    peer.write(OK)
    stall()
  })
  const sidecar = await startSidecar({ device, config: { upstream: { response_timeout: deadline } } })
  const { status, text } = await sidecar.request({ token: await sidecar.token() })
  expect([status, text]).toEqual([200, 'ok'])
})

it('a connection that the device has accepted in time is used after a stall of the sidecar', async () => {
  const sidecar = await startSidecar({ config: { upstream: { connect_timeout: deadline } } })
  const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
  const client = await sidecar.connect()
  // The next socket is the one to the device. It begins to connect in the same turn.
  const standStill = (): void => {
    unsubscribe('net.client.socket', standStill)
    process.nextTick(stall)
  }
  subscribe('net.client.socket', standStill)
  closeLater(() => void unsubscribe('net.client.socket', standStill))
  expect((await client.send({ fields })).status).toBe(200)
})

it('a tunnel to which bytes have come in time outlives a stall of the sidecar', async () => {
  const device = await startDevice()
  acceptWebSockets(device)
  const sidecar = await startSidecar({ device, config: { upstream: { idle_timeout: deadline } } })
  const { socket } = await openWebSocket(sidecar.url, { token: await sidecar.token() })
  const heard = Promise.race([once(socket, 'message'), once(socket, 'close')])
  socket.send('still there')
  stall()
  expect(String((await heard)[0])).toBe('still there')
})
