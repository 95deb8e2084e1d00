import { once } from 'node:events'
import http2 from 'node:http2'
import net, { type AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { nextTurn } from '../../src/system/clock.ts'
import { makeCertificate } from './certificate.ts'
import { closeLater } from './cleanup.ts'
import { connect, send } from './client.ts'
import { readBody, startDevice } from './device.ts'
import { headers, requestFields } from './http2-frames.ts'
import { rawSession } from './http2-session.ts'
import { BrokenTransfer } from './message.ts'
import { isHeld, rawConnection, unusedPort } from './raw.ts'
import { startCannedDevice, startRawDevice } from './raw-device.ts'
import { run } from './tools.ts'

// The other tests rely on this support code: each test here shows a fault that it detects, or a message that it keeps.

async function startHttp2(
  onStream: (stream: http2.ServerHttp2Stream, raw: string[]) => void,
): Promise<string> {
  const { cert, key } = await makeCertificate()
  const server = http2.createSecureServer({ cert, key })
  server.on('stream', (stream: http2.ServerHttp2Stream, _headers, _flags, raw: string[]) => {
    stream.on('error', () => {})
    onStream(stream, raw)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closeLater(() => {
    server.close()
  })
  const { port } = server.address() as AddressInfo // a TCP server's address is never a string
  return `https://127.0.0.1:${port}`
}

it('hands no unused port out twice, so that two programs that start at once do not meet', async () => {
  const ports = new Set<number>()
  for (let i = 0; i < 24; i += 1) ports.add(await unusedPort({ from: 31_000, to: 31_100 }))
  expect(ports.size).toBe(24)
})

it.skipIf(process.platform !== 'linux')(
  'hands out no port that another process got, whose program does not listen yet',
  async () => {
    const ports = { from: 31_200, to: 31_400 }
    const ours = new Set<number>()
    for (let i = 0; i < 24; i += 1) ours.add(await unusedPort(ports))
    const script = `
      const { unusedPort } = await import(${JSON.stringify(new URL('raw.ts', import.meta.url))})
      for (let i = 0; i < 24; i += 1) console.log(await unusedPort(${JSON.stringify(ports)}))`
    const { stdout, stderr } = await run(process.execPath, ['--input-type=module', '-e', script])
    const theirs = stdout.trimEnd().split('\n').map(Number)
    expect(theirs, stderr).toHaveLength(24)
    expect(theirs.filter((port) => ours.has(port))).toEqual([])
  },
)

it('waits for two frames of an HTTP/2 connection at the same time, in whatever order they arrive', async () => {
  const url = await startHttp2((stream) => {
    stream.respond({ ':status': 200 })
    void nextTurn().then(() => stream.end('whole'))
  })
  const session = await rawSession(url)
  const [status, outcome] = [session.status(1), session.outcome(1)]
  session.send(headers(1, requestFields()))
  expect(await Promise.all([status, outcome])).toEqual([200, 'end'])
})

it('the client sends path, unusual methods and repeated fields unchanged, and the device records them', async () => {
  const device = await startDevice()
  const response = await send({
    transport: 'http1',
    url: device.url,
    method: 'PROPFIND',
    path: '/a%2fb//?x=%zz&y',
    fields: ['X-Odd', '1', 'x-odd', '2'],
    body: ['one', 'two'],
  })
  expect(response.text).toBe('from the device')
  const [seen] = device.requests
  expect(seen?.method).toBe('PROPFIND')
  expect(seen?.target).toBe('/a%2fb//?x=%zz&y')
  expect(seen?.fields).toEqual(
    expect.arrayContaining(['X-Odd', '1', 'x-odd', '2', 'Transfer-Encoding', 'chunked']),
  )
  expect(seen?.body?.toString()).toBe('onetwo')
  expect(device.bytes.toString()).toContain('3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n')
  expect(device.connections).toBe(1)
})

it('the test device serves TLS and records the decrypted bytes', async () => {
  const device = await startDevice(undefined, { tls: await makeCertificate() })
  const response = await send({ transport: 'tls', url: device.url, body: 'sent' })
  expect(response.status).toBe(200)
  expect(device.requests[0]?.body?.toString()).toBe('sent')
  expect(device.bytes.toString()).toContain('POST / HTTP/1.1\r\n')
})

it('the HTTP/2 client keeps repeated fields, their order, 1xx responses and trailers', async () => {
  let seen: string[] = []
  const url = await startHttp2((stream, raw) => {
    seen = raw
    stream.additionalHeaders({ ':status': 103, link: '</x>' })
    stream.respond({ ':status': 200, 'set-cookie': ['a=1', 'b=2'] }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ sum: '7' }))
    stream.end('whole')
  })
  const response = await send({
    transport: 'h2',
    url,
    path: '/%zz',
    fields: ['Authorization', 'Bearer a', 'authorization', 'Bearer b'],
  })
  expect(seen.slice(-4)).toEqual(['authorization', 'Bearer a', 'authorization', 'Bearer b'])
  expect(response.informational.map((head) => [head.status, head.fields])).toEqual([[103, ['link', '</x>']]])
  expect(response.values('Set-Cookie')).toEqual(['a=1', 'b=2'])
  expect(response.text).toBe('whole')
  expect(response.trailers).toEqual(['sum', '7'])
})

it('the HTTP/2 client reports a reset stream as broken, even if its bytes look complete', async () => {
  const url = await startHttp2((stream) => {
    stream.respond({ ':status': 200 })
    stream.write('part')
    // `close(code)` would end the stream cleanly first.
    void nextTurn().then(() => stream.destroy(new Error('cut')))
  })
  await expect(send({ transport: 'h2', url })).rejects.toThrow(BrokenTransfer)
})

it('the HTTP/2 client reports a response as complete when the server resets the rest of the request with NO_ERROR', async () => {
  const url = await startHttp2((stream) => {
    stream.respond({ ':status': 401 })
    stream.end('no')
    stream.once('finish', () => stream.close(http2.constants.NGHTTP2_NO_ERROR))
  })
  const connection = await connect({ transport: 'h2', url })
  const exchange = connection.start({ method: 'POST', open: true })
  expect((await exchange.response).text).toBe('no')
})

it.each([
  ['a short body', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort'],
  ['a chunked body without its end', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n'],
  ['a chunk that is too long', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n'],
  [
    'two framings',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n1\r\na\r\n0\r\n\r\n',
  ],
  ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na'],
  ['bare line feeds', 'HTTP/1.1 200 OK\nContent-Length: 1\n\na'],
  ['a field without a colon', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nnothing\r\n\r\n'],
  ['a space before the colon', 'HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n'],
  ['no bytes', ''],
])('the HTTP/1 client rejects a response with %s', async (_name, bytes) => {
  const { url } = await startCannedDevice(bytes)
  await expect(send({ transport: 'http1', url })).rejects.toThrow(BrokenTransfer)
})

it.each([
  ['a length', 'HTTP/1.1 200 Fine By Me\r\nContent-Length: 4\r\n\r\nbody', 'body'],
  [
    'chunks',
    'HTTP/1.1 200 Fine By Me\r\nTransfer-Encoding: chunked\r\n\r\n2;x=1\r\nbo'.replace(';x=1', ''),
    '',
  ],
  ['the end of the connection', 'HTTP/1.1 200 Fine By Me\r\n\r\nbody', 'body'],
])('the HTTP/1 client reads a body framed by %s', async (_name, bytes, body) => {
  const whole = body === '' ? `${bytes}\r\n2\r\ndy\r\n0\r\nA: b\r\n\r\n` : bytes
  const { url } = await startCannedDevice(whole)
  const response = await send({ transport: 'http1', url })
  expect(response.reason).toBe('Fine By Me')
  expect(response.text).toBe('body')
})

it('the HTTP/1 client shows a response as it arrives, and matches pipelined responses in order', async () => {
  const device = await startRawDevice(async (peer) => {
    await peer.waitFor('/2')
    peer.write(
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n',
    )
    await peer.waitFor('go on')
    peer.write('0\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n')
  })
  const connection = await connect({ transport: 'http1', url: device.url })
  const first = connection.start({ path: '/1' })
  const second = connection.start({ method: 'POST', path: '/2', open: true })
  await first.waitFor('first')
  expect(first.informational.map((head) => head.status)).toEqual([100])
  second.end('go on')
  expect((await first.response).text).toBe('first')
  expect((await second.response).status).toBe(204)
})

it('a client that gives up breaks its request off, and a connection that closes names what is missing', async () => {
  const device = await startRawDevice(() => {})
  const over = new AbortController()
  const response = send({ transport: 'http1', url: device.url, signal: over.signal })
  const peer = await device.waitForConnection(1)
  await peer.waitFor('\r\n\r\n')
  const ended = once(peer.socket, 'end')
  over.abort()
  await expect(response).rejects.toThrow('no complete response')
  await ended
  const raw = await rawConnection(device.url)
  const missing = expect(raw.waitFor('HTTP/1.1')).rejects.toThrow('HTTP/1.1')
  const other = await device.waitForConnection(2)
  other.end()
  await missing
})

it('`write` returns false for a sender that is faster than the device', async () => {
  let go: () => void = () => {}
  const gate = new Promise<void>((resolve) => {
    go = resolve
  })
  const device = await startDevice(async (request, response) => {
    await gate
    const body = await readBody(request)
    response.end(String(body.length))
  })
  const connection = await connect({ transport: 'http1', url: device.url })
  const exchange = connection.start({ method: 'POST', open: true })
  const piece = Buffer.alloc(1 << 20)
  let sent = 0
  while (exchange.write(piece)) sent += piece.length
  sent += piece.length
  expect(sent).toBeLessThan(64 << 20)
  go()
  await exchange.drained()
  exchange.end()
  expect((await exchange.response).text).toBe(String(sent))
})

it.skipIf(process.platform !== 'linux')(
  'a port is held for as long as the kernel remembers a connection to it',
  async () => {
    const port = await unusedPort()
    expect(isHeld(port)).toBe(false)
    const server = net.createServer((socket) => socket.end('over')).listen(port, '127.0.0.1')
    await once(server, 'listening')
    const client = net.connect(port, '127.0.0.1').resume()
    await once(client, 'close')
    server.close()
    await once(server, 'close')
    expect(isHeld(port)).toBe(true)
  },
)
