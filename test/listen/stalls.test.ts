import { once } from 'node:events'
import { expect, it } from 'vitest'
import type { Exchange, UpgradeExchange } from '../../src/http/exchange.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import type { Response } from '../support/message.ts'
import { type RawPeer, rawConnection } from '../support/raw.ts'
import { nextRequest, OK, startRawDevice } from '../support/raw-device.ts'
import { FORM_TYPE, PASSWORD_GRANT, startSidecar } from '../support/sidecar.ts'
import { hasRead, nextAccepted, nextConnecting } from '../support/waiting.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'
import { startStoppableHttp1Server } from './http1-server.ts'

/** How long the process stands still (ms): longer than each deadline of these tests. */
const STALL = 120_000

/** The peer sends, and then the process stands still. As a real clock, the still one judges what is due when what has arrived is read. */
async function sendAndStall(clock: MovableClock, send: () => void, stall = STALL): Promise<void> {
  await nextTurn()
  send()
  await clock.leap(stall)
}

const head = (...lines: readonly string[]): string => `${lines.join('\r\n')}\r\n`

it('H357 a handshake whose last message has come in time succeeds after a stall of the sidecar', async () => {
  const sidecar = await startSidecar({ transport: 'tls' })
  const client = await rawConnection(sidecar.url)
  // The client sends the message in this turn, and the sidecar reads it in the next.
  await sendAndStall(sidecar.clock, () => {})
  client.write(head('GET / HTTP/1.1', 'Host: x', ''))
  expect(await client.waitFor('\r\n\r\n')).toMatch(/^HTTP\/1\.1 401 /)
})

it('H357 a form that has come in time is read after a stall of the sidecar', async () => {
  const sidecar = await startSidecar()
  const accepted = nextAccepted(sidecar.url)
  const client = await rawConnection(sidecar.url)
  const type = `Content-Type: ${FORM_TYPE}`
  client.write(
    head('POST /oauth/token HTTP/1.1', 'Host: x', type, `Content-Length: ${PASSWORD_GRANT.length}`, ''),
  )
  await hasRead(await accepted, client.socket.bytesWritten)
  await sendAndStall(sidecar.clock, () => client.write(PASSWORD_GRANT))
  expect(await client.waitFor('\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
})

it('H357 an upload that has come in time is forwarded after a stall of the sidecar', async () => {
  const sidecar = await startSidecar()
  const authorization = `Authorization: Bearer ${await sidecar.token()}`
  const accepted = nextAccepted(sidecar.url)
  const client = await rawConnection(sidecar.url)
  client.write(`${head('POST / HTTP/1.1', 'Host: x', authorization, 'Content-Length: 4', '')}ab`)
  await hasRead(await accepted, client.socket.bytesWritten)
  await sendAndStall(sidecar.clock, () => client.write('cd'))
  expect(await client.waitFor('\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
  expect(String(sidecar.device.requests[0]?.body)).toBe('abcd')
})

it('H357 a response of the device that has come in time is passed on after a stall of the sidecar', async () => {
  const clock = stillClock()
  const device = await startRawDevice(async (peer) => {
    await nextRequest(peer)
    await sendAndStall(clock, () => peer.write(OK))
  })
  const sidecar = await startSidecar({ device, clock })
  const { status, text } = await sidecar.request({ token: await sidecar.token() })
  expect([status, text]).toEqual([200, 'ok'])
})

it('a request after a stall gets no connection that the device has kept for longer than it announced', async () => {
  const answer = (text: string, field = ''): string =>
    `HTTP/1.1 200 OK\r\n${field}Content-Length: ${text.length}\r\n\r\n${text}`
  const device = await startRawDevice(
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
  let next: Promise<Response> | undefined
  const ask = (): void => {
    next = client.send({ fields })
  }
  await sendAndStall(sidecar.clock, ask, 3_000)
  expect((await next)?.text).toBe('fresh')
})

it('H357 a connection that the device has accepted in time is used after a stall of the sidecar', async () => {
  const sidecar = await startSidecar()
  const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
  const client = await sidecar.connect()
  // The next socket is the one to the device. It begins to connect in the same turn.
  const connecting = nextConnecting()
  const response = client.send({ fields })
  await connecting
  await sendAndStall(sidecar.clock, () => {})
  expect((await response).status).toBe(200)
})

it('H357 a tunnel to which bytes have come in time outlives a stall of the sidecar', async () => {
  const device = await startDevice()
  acceptWebSockets(device)
  const sidecar = await startSidecar({ device, config: { upstream: { tunnel_idle_timeout: '1m' } } })
  const { socket } = await openWebSocket(sidecar.url, { token: await sidecar.token() })
  const heard = Promise.race([once(socket, 'message'), once(socket, 'close')])
  await sendAndStall(sidecar.clock, () => socket.send('still there'))
  expect(String((await heard)[0])).toBe('still there')
})

const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

function answer(exchange: Exchange | UpgradeExchange): void {
  exchange.respond({ status: 200, fields: [], body: 'served' })
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
  const clock = stillClock()
  const { url, drain } = await startStoppableHttp1Server(answer, {}, clock)
  const peer = await served(url)
  drain()
  await sendAndStall(clock, () => peer.write(REQUEST))
  expect(await peer.closed).toMatch(/^HTTP\/1\.1 200 .*Connection: close.*served$/s)
})

it('H357 a request that comes while the process stands still beyond the idle timeout is served', async () => {
  const clock = stillClock()
  const { url } = await startStoppableHttp1Server(answer, {}, clock)
  const peer = await served(url)
  await sendAndStall(clock, () => peer.write(REQUEST))
  await peer.waitFor('served')
})

it('H357 a head whose rest comes while the process stands still is not late', async () => {
  const clock = stillClock()
  const { url } = await startStoppableHttp1Server(answer, {}, clock)
  const peer = await served(url, REQUEST.slice(0, 1))
  await sendAndStall(clock, () => peer.write(REQUEST.slice(1)))
  expect(await peer.waitFor('served')).toMatch(/^HTTP\/1\.1 200 /)
})

it('H357 a body that nobody reads is not late if its rest comes while the process stands still', async () => {
  const clock = stillClock()
  const { url } = await startStoppableHttp1Server(answer, {}, clock)
  const peer = await rawConnection(url)
  peer.write(`${head('POST / HTTP/1.1', 'Host: x', 'Content-Length: 4', '')}ab`)
  await peer.waitFor('served')
  peer.forget()
  await sendAndStall(clock, () => peer.write(`cd${REQUEST}`))
  await peer.waitFor('served')
})

it('H357 a request that comes while the sidecar stands still beyond the idle timeout of HTTP/2 is served', async () => {
  const sidecar = await startSidecar({ transport: 'h2', config: { listen: { idle_timeout: '1m' } } })
  const client = await sidecar.connect()
  expect((await client.send({})).status).toBe(401)
  // Every 500 ms the session is judged: after the first time it is idle, and in the stall it has been idle for too long.
  await sidecar.clock.advance(500 + 59_500)
  const next = client.send({})
  await sendAndStall(sidecar.clock, () => {})
  expect((await next).status).toBe(401)
})
