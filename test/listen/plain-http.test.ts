import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { type Duplex, duplexPair } from 'node:stream'
import tls from 'node:tls'
import { describe, expect, it } from 'vitest'
import type { SomeBounds } from '../../src/compose/bounds.ts'
import { type RawPeer, rawConnection } from '../support/raw.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { needs, run } from '../support/tools.ts'
import { hasRead, nextAccepted } from '../support/waiting.ts'

const CANARY = 'canary-8f1d0c'
const REQUEST = `GET /secret?${CANARY} HTTP/1.1\r\nHost: ${CANARY}.example\r\nAuthorization: Bearer ${CANARY}\r\n\r\n`

const start = (config: YamlPart = {}, bounds: SomeBounds = {}): Promise<TestSidecar> =>
  startSidecar({ transport: 'tls', config, bounds })
const plain = ({ url }: TestSidecar): string => url.replace('https:', 'http:')
const counted = (sidecar: TestSidecar, reason: string): Promise<number> =>
  sidecar.metric('postern_handshakes_failed_total', { reason })

const ADVICE = { error: 'invalid_request', error_description: expect.stringContaining('https://') }

/** A client that has not begun TLS, and the socket of the sidecar. */
async function connectPlainly(sidecar: TestSidecar): Promise<{ client: RawPeer; socket: Socket }> {
  const accepted = nextAccepted(sidecar.url)
  const client = await rawConnection(plain(sidecar))
  return { client, socket: await accepted }
}

/** The body of the one response in `received`; fails if there are bytes before or behind it. */
function bodyOf(received: string): unknown {
  const [head = '', body = ''] = received.split('\r\n\r\n')
  expect(head).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
  expect(head.toLowerCase()).toContain('\r\nconnection: close')
  expect(head).toMatch(new RegExp(`\r\nContent-Length: ${Buffer.byteLength(body)}(\r\n|$)`, 'i'))
  return JSON.parse(body)
}

describe('H115 Plain HTTP on the TLS port gets one response that says so', () => {
  it.each([
    ['GET', []],
    ['DELETE', ['-X', 'DELETE']],
    ['POST', ['-d', `password=${CANARY}`]],
    ['OPTIONS', ['-X', 'OPTIONS']],
  ])('to curl, %s', async (_method, args) => {
    needs('curl')
    const sidecar = await start()
    const { code, stdout } = await run('curl', ['-sS', '-w', '%{http_code}', ...args, `${plain(sidecar)}/x`])
    expect([code, stdout.slice(-3)]).toEqual([0, '400'])
    expect(JSON.parse(stdout.slice(0, -3))).toEqual(ADVICE)
    expect(await counted(sidecar, 'plain_http')).toBe(1)
  })

  it('to curl that uploads 10 MB, which it reads to the end', async () => {
    needs('curl')
    const sidecar = await start()
    const file = join(sidecar.directory, 'upload')
    writeFileSync(file, Buffer.alloc(10_000_000, 'x'))
    const args = ['-sS', '-H', 'Expect:', '-T', file, `${plain(sidecar)}/x`]
    const { code, stdout, stderr } = await run('curl', args)
    expect([code, stderr]).toEqual([0, ''])
    expect(JSON.parse(stdout)).toEqual(ADVICE)
  })

  it('to an HTTP/2 client without TLS, in HTTP/1, which such clients recognize', async () => {
    const sidecar = await start()
    const raw = await rawConnection(plain(sidecar))
    raw.end('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    expect(bodyOf(await raw.closed)).toEqual(ADVICE)
  })

  it('to a client that sends byte by byte, and to one that pipelines', async () => {
    const sidecar = await start()
    const { client: slow, socket } = await connectPlainly(sidecar)
    slow.socket.allowHalfOpen = true
    for (const [before, byte] of [...REQUEST].entries()) {
      slow.write(byte)
      await hasRead(socket, before + 1)
    }
    slow.end()
    expect(bodyOf(await slow.closed)).toEqual(ADVICE)
    const quick = await rawConnection(plain(sidecar))
    quick.end(`${REQUEST.repeat(100)}\r\n\0junk`)
    expect(bodyOf(await quick.closed)).toEqual(ADVICE)
  })

  it('and leaves no trace: nothing of the request is repeated, logged or sent to the device', async () => {
    const sidecar = await start()
    const raw = await rawConnection(plain(sidecar))
    raw.end(REQUEST)
    expect(await raw.closed).not.toContain(CANARY)
    expect(sidecar.logLines().join('\n')).not.toContain(CANARY)
    expect(await sidecar.metrics()).not.toContain(CANARY)
    expect(sidecar.device.byteCount).toBe(0)
  })
})

/** Sends the head of each record byte by byte, each when `reader` has read the one before, and the rest in a piece. */
async function sendByteByByte(from: Duplex, to: Socket, reader: Socket): Promise<void> {
  for await (const chunk of from as AsyncIterable<Buffer>) {
    for (const byte of chunk.subarray(0, 32)) {
      to.write(Buffer.from([byte]))
      await hasRead(reader, to.bytesWritten)
    }
    to.write(chunk.subarray(32))
  }
}

describe('H116 The first byte of a connection to the TLS port', () => {
  it('has to arrive, with the rest of the handshake, within the deadline of a handshake', async () => {
    const sidecar = await start()
    const [silent, late] = [await connectPlainly(sidecar), await connectPlainly(sidecar)]
    await sidecar.clock.advance(9_999)
    late.client.write(Buffer.from('16', 'hex'))
    await hasRead(late.socket, 1)
    expect([silent, late].map(({ socket }) => socket.destroyed)).toEqual([false, false])
    await sidecar.clock.advance(1)
    expect([silent, late].map(({ socket }) => socket.destroyed)).toEqual([true, true])
    expect(await Promise.all([silent.client.closed, late.client.closed])).toEqual(['', ''])
    expect(await counted(sidecar, 'handshake_timeout')).toBe(2)
  })

  it('belongs to a connection that counts against the caps, also while it lingers', async () => {
    const sidecar = await start({ listen: { max_connections: 8, max_connections_per_client: 2 } })
    const first = await rawConnection(plain(sidecar))
    const second = await rawConnection(plain(sidecar))
    second.write(REQUEST)
    await second.waitFor('https://')
    const third = await rawConnection(plain(sidecar))
    expect(await third.closed).toBe('')
    second.end()
    await second.closed
    await expect
      .poll(() =>
        sidecar
          .request()
          .then(({ status }) => status)
          .catch(String),
      )
      .toBe(401)
    first.reset()
  })

  it('may arrive alone: a handshake that comes byte by byte succeeds', async () => {
    const sidecar = await start()
    const { client: raw, socket: reader } = await connectPlainly(sidecar)
    const { socket } = raw
    const [near, far] = duplexPair()
    void sendByteByByte(far, socket, reader)
    socket.on('data', (bytes) => far.write(bytes))
    const client = tls.connect({ socket: near, rejectUnauthorized: false })
    await once(client, 'secureConnect')
    client.destroy()
    expect(await counted(sidecar, 'plain_http')).toBe(0)
  })

  it('does not delay a stop', async () => {
    const sidecar = await start()
    const silent = await rawConnection(plain(sidecar))
    const lingering = await rawConnection(plain(sidecar))
    lingering.write(REQUEST)
    await lingering.waitFor('https://')
    const stopped = sidecar.stop(5_000)
    await expect
      .poll(() =>
        rawConnection(plain(sidecar)).then(
          () => 'open',
          () => 'closed',
        ),
      )
      .toBe('closed')
    await sidecar.clock.advance(1_000)
    await Promise.all([silent.closed, lingering.closed, stopped])
  })
})
