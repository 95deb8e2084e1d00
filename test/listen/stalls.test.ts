import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { Exchange, UpgradeExchange } from '../../src/http/exchange.ts'
import { closeLater } from '../support/cleanup.ts'
import { startDevice } from '../support/device.ts'
import { startHttp1Server, startStoppableHttp1Server } from '../support/http1-server.ts'
import { type RawPeer, rawConnection } from '../support/raw.ts'
import { nextRequest, OK, startScripted } from '../support/scripted.ts'
import { FORM_TYPE, PASSWORD_GRANT, startSidecar } from '../support/sidecar.ts'
import { standStill } from '../support/stand-still.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'

/** The deadline of each test, and how long this process stands still: longer than that (ms). */
const deadline = 1_000
const STALL = 1_200

/** Lets the sidecar read what was sent. */
async function turns(): Promise<void> {
  for (let i = 0; i < 5; i += 1) await turn()
}

const head = (...lines: readonly string[]): string => `${lines.join('\r\n')}\r\n`

it('H357 a handshake whose last message has come in time succeeds after a stall of the sidecar', async () => {
  const bounds = { listen: { handshakeTimeout: deadline } }
  const sidecar = await startSidecar({ transport: 'tls', bounds })
  const client = await rawConnection(sidecar.url)
  // The client sends the message in this turn, and the sidecar reads it in the next.
  await turn()
  standStill(STALL)
  client.write(head('GET / HTTP/1.1', 'Host: x', ''))
  expect(await client.waitFor('\r\n\r\n')).toMatch(/^HTTP\/1\.1 401 /)
})

it('H357 a form that has come in time is read after a stall of the sidecar', async () => {
  const sidecar = await startSidecar({ bounds: { listen: { bodyTimeout: deadline } } })
  const client = await rawConnection(sidecar.url)
  const type = `Content-Type: ${FORM_TYPE}`
  client.write(
    head('POST /oauth/token HTTP/1.1', 'Host: x', type, `Content-Length: ${PASSWORD_GRANT.length}`, ''),
  )
  await turns()
  client.write(PASSWORD_GRANT)
  standStill(STALL)
  expect(await client.waitFor('\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
})

it('H357 an upload that has come in time is forwarded after a stall of the sidecar', async () => {
  const sidecar = await startSidecar({ bounds: { listen: { bodyTimeout: deadline } } })
  const authorization = `Authorization: Bearer ${await sidecar.token()}`
  const client = await rawConnection(sidecar.url)
  client.write(`${head('POST / HTTP/1.1', 'Host: x', authorization, 'Content-Length: 4', '')}ab`)
  await turns()
  client.write('cd')
  standStill(STALL)
  expect(await client.waitFor('\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
  expect(String(sidecar.device.requests[0]?.body)).toBe('abcd')
})

it('H357 a response of the device that has come in time is passed on after a stall of the sidecar', async () => {
  const device = await startScripted(async (peer) => {
    await nextRequest(peer)
    peer.write(OK)
    standStill(STALL)
  })
  const sidecar = await startSidecar({ device, config: { upstream: { response_timeout: deadline } } })
  const { status, text } = await sidecar.request({ token: await sidecar.token() })
  expect([status, text]).toEqual([200, 'ok'])
})

it('a request after a stall gets no connection that the device has kept for longer than it announced', async () => {
  const answer = (text: string, field = ''): string =>
    `HTTP/1.1 200 OK\r\n${field}Content-Length: ${text.length}\r\n\r\n${text}`
  const device = await startScripted(
    async (peer) => {
      await nextRequest(peer)
      peer.write(answer('first', 'Keep-Alive: timeout=3\r\n'))
      await nextRequest(peer)
      peer.write(answer('stale'))
    },
    async (peer) => {
      await nextRequest(peer)
      peer.write(answer('fresh'))
    },
  )
  const sidecar = await startSidecar({ device })
  const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
  const client = await sidecar.connect()
  expect((await client.send({ fields })).text).toBe('first')
  const next = client.send({ fields })
  standStill(3_500)
  expect((await next).text).toBe('fresh')
})

it('H357 a connection that the device has accepted in time is used after a stall of the sidecar', async () => {
  const sidecar = await startSidecar({ config: { upstream: { connect_timeout: deadline } } })
  const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
  const client = await sidecar.connect()
  // The next socket is the one to the device. It begins to connect in the same turn.
  const onSocket = (): void => {
    unsubscribe('net.client.socket', onSocket)
    process.nextTick(standStill, STALL)
  }
  subscribe('net.client.socket', onSocket)
  closeLater(() => void unsubscribe('net.client.socket', onSocket))
  expect((await client.send({ fields })).status).toBe(200)
})

it('H357 a tunnel to which bytes have come in time outlives a stall of the sidecar', async () => {
  const device = await startDevice()
  acceptWebSockets(device)
  const sidecar = await startSidecar({ device, config: { upstream: { tunnel_idle_timeout: deadline } } })
  const { socket } = await openWebSocket(sidecar.url, { token: await sidecar.token() })
  const heard = Promise.race([once(socket, 'message'), once(socket, 'close')])
  socket.send('still there')
  standStill(STALL)
  expect(String((await heard)[0])).toBe('still there')
})

const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

function answer(exchange: Exchange | UpgradeExchange): void {
  exchange.reply({ status: 200, fields: [], body: 'served' })
}

/** A connection on which one request was served. `bytes` follow the request. */
async function served(url: string, bytes = ''): Promise<RawPeer> {
  const peer = await rawConnection(url)
  const answered = once(peer.socket, 'data')
  peer.write(REQUEST + bytes)
  await answered
  expect(peer.received).toContain('served')
  peer.forget()
  return peer
}

it('H357 a request that comes while a stopping process stands still finds the idle connection open', async () => {
  const { url, drain } = await startStoppableHttp1Server(answer)
  const peer = await served(url)
  drain()
  peer.write(REQUEST)
  standStill(700)
  expect(await peer.closed).toMatch(/^HTTP\/1\.1 200 .*Connection: close.*served$/s)
})

it('H357 a request that comes while the process stands still beyond the idle timeout is served', async () => {
  const peer = await served(await startHttp1Server(answer, { idleTimeout: 0 }))
  peer.write(REQUEST)
  standStill(1_200)
  await peer.waitFor('served')
})

it('H357 a head whose rest comes while the process stands still is not late', async () => {
  const peer = await served(await startHttp1Server(answer, { headerTimeout: 1_000 }), REQUEST.slice(0, 1))
  peer.write(REQUEST.slice(1))
  standStill(1_200)
  expect(await peer.waitFor('served')).toMatch(/^HTTP\/1\.1 200 /)
})

it('H357 a body that nobody reads is not late if its rest comes while the process stands still', async () => {
  const peer = await rawConnection(await startHttp1Server(answer))
  peer.write(`${head('POST / HTTP/1.1', 'Host: x', 'Content-Length: 4', '')}ab`)
  await peer.waitFor('served')
  peer.forget()
  peer.write(`cd${REQUEST}`)
  standStill(5_200)
  await peer.waitFor('served')
})

it('H357 a request that comes while the sidecar stands still beyond the idle timeout of HTTP/2 is served', async () => {
  const sidecar = await startSidecar({ transport: 'h2', config: { listen: { idle_timeout: deadline } } })
  const client = await sidecar.connect()
  // Every 500 ms the session is judged: twice before the stall, and in it a third time, by which it has been idle for too long.
  await pause(250)
  expect((await client.send({})).status).toBe(401)
  await pause(800)
  const next = client.send({})
  await turn()
  standStill(600)
  expect((await next).status).toBe(401)
})
