import { once } from 'node:events'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { deviceTls } from '../../src/device/target.ts'
import { makeCertificate, temporaryDirectory } from '../support/certificate.ts'
import { connect, send } from '../support/client.ts'
import { passUntil } from '../support/clock.ts'
import { readBody, startDevice } from '../support/device.ts'
import type { Request, Response } from '../support/message.ts'
import { rawConnection } from '../support/raw.ts'
import { startCannedDevice, startRawDevice } from '../support/raw-device.ts'
import { type FrontOptions, startFront } from './tolerant-front.ts'

/** Waits until a figure stays the same from one look to the next: back-pressure holds up what it counts. */
async function settled(figure: () => number | undefined): Promise<void> {
  let last: number | undefined = -1
  const stays = (): boolean => {
    const before = last
    last = figure()
    return last === before
  }
  await expect.poll(stays).toBe(true)
}

/** Sends one request to a device that responds with these bytes and closes. */
async function requestOnce(
  bytes: string,
  request: Request = {},
  options: FrontOptions = {},
): Promise<Response> {
  const front = await startFront(await startCannedDevice(bytes), options)
  return send({ transport: 'http1', url: front.url, ...request })
}

describe('forwarding with the tolerant parser sends', () => {
  it('C21 the path byte for byte, and the fields with their order, repeats and casing', async () => {
    const device = await startDevice()
    const front = await startFront(device)
    const path = "/a//b/../c\\d|'?q=1&q=?x=%zz&y#f".replace('#f', '?')
    const fields = ['x-B', '1', 'X-a', '2', 'x-B', '3', 'cookie', 'a=b', '123', 'x', '__proto__', 'y']
    await send({ transport: 'http1', url: front.url, path, fields })
    const [request] = device.requests
    expect(request?.target).toBe(path)
    expect(request?.fields.slice(2)).toEqual([...fields, 'Connection', 'close'])
  })

  it.each(['GET', 'HEAD', 'POST', 'REPORT'])(
    'C21 a %s without a body and without Transfer-Encoding',
    async (method) => {
      const device = await startDevice()
      const front = await startFront(device)
      await send({ transport: 'http1', url: front.url, method })
      const [request] = device.requests
      expect(request?.method).toBe(method)
      expect(request?.header('Transfer-Encoding')).toBeUndefined()
      expect(['0', undefined]).toContain(request?.header('Content-Length'))
    },
  )

  it.each(['GET', 'POST'])('C21 the body of a %s, with a length or in chunks', async (method) => {
    const device = await startDevice()
    const front = await startFront(device)
    const url = front.url
    await send({ transport: 'http1', url, method, body: 'whole body' })
    await passUntil(front.clock, send({ transport: 'http1', url, method, body: ['two ', 'pieces'] }))
    expect(device.requests.map(({ body }) => body?.toString())).toEqual(['whole body', 'two pieces'])
    expect(device.requests.map((request) => request.header('Content-Length'))).toEqual(['10', undefined])
  })

  it('a Host, even for a client that sends none', async () => {
    const device = await startDevice()
    const front = await startFront(device)
    const peer = await rawConnection(front.url)
    peer.write('GET / HTTP/1.0\r\n\r\n')
    await peer.waitFor('from the device')
    expect(device.requests[0]?.values('Host')).toEqual([new URL(device.url).host])
  })

  it('every request on its own connection', async () => {
    const device = await startDevice()
    const front = await startFront(device)
    const connection = await connect({ transport: 'http1', url: front.url })
    for (let i = 0; i < 3; i += 1) await connection.send({})
    expect(device.connections).toBe(3)
    await device.waitForOpenConnections(0)
  })

  it('C21 an upload no faster than the device reads it', async () => {
    const reading = Promise.withResolvers<void>()
    const device = await startDevice((request, response) => {
      request.once('data', () => {
        request.pause()
        void reading.promise.then(() => readBody(request)).then(() => response.end())
      })
    })
    const front = await startFront(device)
    const connection = await connect({ transport: 'http1', url: front.url })
    const exchange = connection.start({ method: 'POST', open: true })
    const piece = Buffer.alloc(64 << 10)
    let sent = 0
    while (sent < 256) {
      sent += 1
      if (!exchange.write(piece) && sent > 200) break
    }
    await device.waitForRequests(1)
    await front.clock.advance(20)
    await settled(() => device.byteCount)
    expect(device.byteCount).toBeLessThan(8 << 20)
    reading.resolve()
    exchange.end()
    expect((await exchange.response).status).toBe(200)
    expect(device.byteCount).toBeGreaterThan(sent << 16)
  })

  it('to a Unix socket, and over TLS to a trusted certificate', async () => {
    const local = await startDevice(undefined, { path: join(temporaryDirectory(), 'device.sock') })
    const behindSocket = await startFront(local)
    expect((await send({ transport: 'http1', url: behindSocket.url })).text).toBe('from the device')
    const tls = await makeCertificate()
    const secure = await startDevice(undefined, { tls })
    const behindTls = await startFront(secure, { target: { tls: deviceTls({ ca: tls.cert }) } })
    expect((await send({ transport: 'http1', url: behindTls.url })).text).toBe('from the device')
  })
})

describe('forwarding with the tolerant parser delivers', () => {
  it('an early response while the upload still runs', async () => {
    const device = await startRawDevice(async (peer) => {
      await peer.waitFor('\r\n\r\n')
      peer.write('http/1.1 413 too large\nContent-Length: 2\n\nno')
    })
    const front = await startFront(device)
    const connection = await connect({ transport: 'http1', url: front.url })
    const exchange = connection.start({ method: 'POST', open: true })
    exchange.write('x')
    const response = await exchange.response
    expect([response.status, response.text]).toEqual([413, 'no'])
  })

  it('C23 interim responses except 100, up to a limit', async () => {
    const hint = 'HTTP/1.1 103 Early Hints\nLink: </a>\n\n'
    const response = await requestOnce(`HTTP/1.1 100 Continue\r\n\r\n${hint}HTTP/1.1 200 OK\r\n\r\nhi`)
    expect(response.informational.map(({ status, fields }) => [status, ...fields])).toEqual([
      [103, 'Link', '</a>'],
    ])
    expect(response.text).toBe('hi')
    expect((await requestOnce(`${hint.repeat(500)}HTTP/1.1 200 OK\r\n\r\nhi`)).status).toBe(502)
  })

  it('C21 a download no faster than the client reads it', async () => {
    const size = 64 << 20
    let sent = 0
    const device = await startDevice(async (_request, response) => {
      response.setHeader('Content-Length', size)
      const piece = Buffer.alloc(1 << 20)
      for (; sent < size; sent += piece.length) if (!response.write(piece)) await once(response, 'drain')
      response.end()
    })
    const front = await startFront(device)
    const connection = await connect({ transport: 'http1', url: front.url })
    const exchange = connection.start({})
    await exchange.head
    exchange.pause()
    await settled(() => sent)
    expect(sent).toBeLessThan(32 << 20)
    exchange.resume()
    expect((await exchange.response).body.length).toBe(size)
  })

  it('C21 a complete download after the device has closed and before the client reads on', async () => {
    const size = 4 << 20
    const device = await startRawDevice(async (peer) => {
      await peer.waitFor('\r\n\r\n')
      peer.end(`HTTP/1.0 200 OK\n\n${'x'.repeat(size)}`)
    })
    const front = await startFront(device)
    const connection = await connect({ transport: 'http1', url: front.url })
    const exchange = connection.start({})
    await exchange.head
    exchange.pause()
    await settled(() => device.peers[0]?.socket.writableLength)
    exchange.resume()
    expect((await exchange.response).body.length).toBe(size)
  })
})
