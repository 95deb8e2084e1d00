import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { createServer, type TLSSocket } from 'node:tls'
import { expect, it } from 'vitest'
import { startRelay, type Trust } from '../../src/verify/relay.ts'
import { makeCertificate } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { unusedPort } from '../support/raw.ts'

const certificate = await makeCertificate()
const TRUSTED: Trust = { ca: certificate.cert }

interface Ends {
  readonly client: Socket
  /** The connection as the target accepted it, before and after the handshake. */
  readonly accepted: Promise<Socket>
  readonly target: Promise<TLSSocket>
  readonly failures: readonly string[]
}

interface ServerOptions {
  readonly host?: string
  readonly allowHalfOpen?: boolean
}

/** A relay in front of a TLS server, and a client of the relay. */
async function relayed(
  tls: Trust,
  { host = '127.0.0.1', allowHalfOpen = false }: ServerOptions = {},
): Promise<Ends> {
  const server = createServer({ ...certificate, allowHalfOpen, ALPNProtocols: ['h2', 'http/1.1'] })
  const { promise: accepted, resolve: accept } = Promise.withResolvers<Socket>()
  const { promise: target, resolve } = Promise.withResolvers<TLSSocket>()
  server.on('connection', accept)
  server.on('secureConnection', (socket) => {
    socket.on('error', () => undefined)
    resolve(socket)
  })
  server.on('tlsClientError', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closeLater(() => void server.close())
  const { port } = server.address() as AddressInfo
  return { accepted, target, ...(await clientOf(host, port, tls)) }
}

async function clientOf(host: string, port: number, tls: Trust): Promise<Pick<Ends, 'client' | 'failures'>> {
  const failures: string[] = []
  const relay = await startRelay({ host, port, tls, onFailure: ({ message }) => failures.push(message) })
  closeLater(() => relay.close())
  const client = connect({ host: '127.0.0.1', port: relay.port, allowHalfOpen: true })
  closeLater(() => void client.destroy())
  return { client, failures }
}

/** What a socket receives until its peer ends. Unlike `buffer`, leaves it open for writing. */
async function readToEnd(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (data) => {
    text += data
  })
  await once(socket, 'end')
  return text
}

it('relays both ways over TLS, with ALPN http/1.1 and without a name for an address', async () => {
  const { client, target, failures } = await relayed(TRUSTED)
  client.write('question')
  const socket = await target
  expect([socket.alpnProtocol, socket.servername]).toEqual(['http/1.1', false])
  expect(String((await once(socket, 'data'))[0])).toBe('question')
  socket.write('answer')
  expect(String((await once(client, 'data'))[0])).toBe('answer')
  expect(failures).toEqual([])
})

it('names the host to the target', async () => {
  const { target } = await relayed(TRUSTED, { host: 'localhost' })
  expect((await target).servername).toBe('localhost')
})

it.each([
  ['of an unknown authority', {}, /^self-signed certificate/],
  ['for another name', { ...TRUSTED, servername: 'device.example' }, /not in the cert's altnames/],
])('sends not one byte to a server with a certificate %s', async (_what, tls, reason) => {
  const { client, accepted, target, failures } = await relayed(tls)
  let received = 0
  void target.then((socket) =>
    socket.on('data', ({ length }) => {
      received += length
    }),
  )
  client.write('GET / HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n')
  const closed = accepted.then((socket) => once(socket, 'close'))
  const [error] = await once(client, 'error')
  expect(error.code).toBe('ECONNRESET')
  expect(failures).toEqual([expect.stringMatching(reason)])
  await closed
  expect(received).toBe(0)
})

it('sends to such a server if the caller says so', async () => {
  const { client, target } = await relayed({ rejectUnauthorized: false })
  client.write('question')
  expect(String((await once(await target, 'data'))[0])).toBe('question')
})

it('resets the client if the target refuses the connection', async () => {
  const { client, failures } = await clientOf('127.0.0.1', await unusedPort(), TRUSTED)
  expect((await once(client, 'error'))[0].code).toBe('ECONNRESET')
  expect(failures).toEqual([expect.stringContaining('ECONNREFUSED')])
})

it('passes on the end of each direction alone', async () => {
  const first = await relayed(TRUSTED, { allowHalfOpen: true })
  first.client.end('question')
  const target = await first.target
  expect(await readToEnd(target)).toBe('question')
  target.write('answer')
  expect(String((await once(first.client, 'data'))[0])).toBe('answer')

  const second = await relayed(TRUSTED, { allowHalfOpen: true })
  const farewell = readToEnd(second.client)
  const server = await second.target
  server.end('farewell')
  expect(await farewell).toBe('farewell')
  second.client.write('too late')
  expect(String((await once(server, 'data'))[0])).toBe('too late')
  expect([first.failures, second.failures]).toEqual([[], []])
})

it('passes on a reset of each side', async () => {
  const first = await relayed(TRUSTED)
  const target = await first.target
  first.client.resetAndDestroy()
  expect((await once(target, 'error'))[0].code).toBe('ECONNRESET')

  const second = await relayed(TRUSTED)
  await second.target
  const raw = await second.accepted
  raw.resetAndDestroy()
  expect((await once(second.client, 'error'))[0].code).toBe('ECONNRESET')
  expect(second.failures).toEqual(['read ECONNRESET'])
})

it('does not pass on a reset after the end, so that one connection does not fail twice', async () => {
  const { client, target, accepted, failures } = await relayed(TRUSTED)
  const farewell = readToEnd(client)
  const server = await target
  server.end('farewell')
  expect(await farewell).toBe('farewell')
  const raw = await accepted
  raw.resetAndDestroy()
  await once(raw, 'close')
  client.end('too late')
  await once(client, 'close')
  expect(failures).toEqual([])
})

it('stops reading from the target while the client reads nothing', async () => {
  const TOTAL = 64 * 1024 * 1024
  const { client, target } = await relayed(TRUSTED)
  const piece = Buffer.alloc(64 * 1024)
  let produced = 0
  client.pause()
  const source = new Readable({
    read() {
      produced += piece.length
      this.push(produced > TOTAL ? null : piece)
    },
  })
  source.pipe(await target)
  for (let before = -1; before !== produced; await pause(100)) before = produced
  expect(produced).toBeLessThan(TOTAL / 2)
  expect((await buffer(client)).length).toBe(TOTAL)
})
