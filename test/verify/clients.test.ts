import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createHttp, type RequestListener } from 'node:http'
import http2 from 'node:http2'
import { type AddressInfo, createServer as createTcp, type Server, type Socket } from 'node:net'
import tls, { type TLSSocket } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { afterTurn } from '../../src/system/clock.ts'
import { createHttp1Client, createHttp2Client, type VerifyClient } from '../../src/verify/client.ts'
import { apiRequest, UNSUPPORTED_GRANT } from '../../src/verify/question.ts'
import { closeLater } from '../support/cleanup.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'
import { sharedPair } from '../support/made-once.ts'
import { hasRead, nextConnecting } from '../support/waiting.ts'

const GET = apiRequest('/', 'token')
const TLS = { ca: undefined, insecure: true }

/** How long a client waits for a response (ms). */
const TIMEOUT = 3000

function pair(): { readonly cert: Buffer; readonly key: Buffer } {
  const shared = sharedPair()
  if (shared === 'auto') throw new Error('the shared pair exists only while the tests run')
  return { cert: readFileSync(shared.cert), key: readFileSync(shared.key) }
}

/** Listens on 127.0.0.1 until the test ends. */
async function listening(server: Server, protocol: 'http' | 'https'): Promise<URL> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closeLater(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return new URL(`${protocol}://127.0.0.1:${(server.address() as AddressInfo).port}`)
}

async function http1Of(listener: RequestListener, clock: MovableClock = stillClock()): Promise<VerifyClient> {
  const url = await listening(createHttp({ keepAliveTimeout: 0 }, listener), 'http')
  const client = createHttp1Client({ url, tls: TLS }, clock, 1, TIMEOUT)
  closeLater(() => client.close())
  return client
}

async function http2Of(
  onStream: (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => void,
  settings: http2.Settings = {},
  clock: MovableClock = stillClock(),
): Promise<VerifyClient> {
  const server = http2.createSecureServer({ ...pair(), settings })
  server.on('stream', (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => {
    stream.on('error', () => {})
    onStream(stream, headers)
  })
  const url = await listening(server, 'https')
  const client = await createHttp2Client({ url, tls: TLS }, clock, TIMEOUT)
  if (typeof client === 'string') throw new Error(client)
  closeLater(() => client.close())
  return client
}

/** One byte at once, and one each 50 ms, without an end. */
function trickle(
  clock: MovableClock,
  to: { write(text: string): boolean; on(event: 'close', listener: () => void): unknown },
): void {
  to.write('.')
  const timer = clock.every(50, () => to.write('.'))
  to.on('close', () => timer.cancel())
}

/** A clock, and an event of a server. */
function waiting() {
  const clock = stillClock()
  const { promise, resolve } = Promise.withResolvers<void>()
  let left = 0
  return {
    clock,
    arrived(): void {
      left -= 1
      if (left === 0) resolve()
    },
    /** What is asked of a server that has heard of it so often, at the time-out: not a millisecond earlier. */
    async late<T>(asked: Promise<T>, times = 1): Promise<T> {
      let isOver = false
      const end = (): void => {
        isOver = true
      }
      asked.then(end, end)
      left += times
      if (left > 0) await promise
      await clock.advance(TIMEOUT - 1)
      expect(isOver).toBe(false)
      await clock.advance(1)
      return asked
    },
  }
}

describe.concurrent('A client bounds the whole exchange', () => {
  it('over HTTP/2 without a response: it fails once, and the process goes on', async () => {
    const { clock, arrived, late } = waiting()
    const client = await http2Of(arrived, {}, clock)
    const answers = await late(Promise.all(Array.from({ length: 20 }, () => client.send(GET))), 20)
    expect(new Set(answers.map(({ failure }) => failure))).toEqual(new Set(['no response within 3 s']))
  })

  it('over HTTP/2 with a body that trickles, and keeps the status', async () => {
    const { clock, arrived, late } = waiting()
    const client = await http2Of(
      (stream) => {
        stream.respond({ ':status': 200 })
        trickle(clock, stream)
        arrived()
      },
      {},
      clock,
    )
    const { status, failure, ms } = await late(client.send(GET))
    expect([status, failure]).toEqual([200, '200, whose body did not end within 3 s'])
    expect(ms).toBeLessThan(TIMEOUT)
  })

  it('over HTTP/1.1 without a response', async () => {
    const { clock, arrived, late } = waiting()
    const client = await http1Of(arrived, clock)
    expect(await late(client.send(GET))).toMatchObject({ status: 0, failure: 'no response within 3 s' })
  })

  it('over HTTP/1.1 with a body that trickles, and keeps the status', async () => {
    const { clock, arrived, late } = waiting()
    const client = await http1Of((_request, response) => {
      response.writeHead(200)
      trickle(clock, response)
      arrived()
    }, clock)
    const { status, failure, body } = await late(client.send(GET))
    expect([status, failure]).toEqual([200, '200, whose body did not end within 3 s'])
    expect(body).toMatch(/^\.+$/)
  })

  it('over HTTP/1.1 with a head that trickles', async () => {
    const { clock, arrived, late } = waiting()
    const url = await listening(
      createTcp((socket) => {
        socket.write('HTTP/1.1 200 OK\r\nX-A: ')
        trickle(clock, socket)
        arrived()
      }),
      'http',
    )
    const client = createHttp1Client({ url, tls: TLS }, clock, 1, TIMEOUT)
    expect((await late(client.send(GET))).failure).toBe('no response within 3 s')
  })
})

describe('A failure says what happened', () => {
  it('to an HTTP/1.1 connection that is closed without a response', async () => {
    const client = await http1Of((request) => request.socket.destroy())
    expect(await client.send(GET)).toMatchObject({
      status: 0,
      failure: 'the connection was closed without a response',
    })
  })

  it('to an HTTP/1.1 body that breaks off, with the status and what there was of the body', async () => {
    const client = await http1Of((_request, response) => {
      response.writeHead(401, { 'Content-Length': 100, 'X-A': 'a' })
      response.write('begin', () => response.socket?.destroy())
    })
    const { status, failure, fields, body } = await client.send(GET)
    expect([status, failure, body]).toEqual([401, '401, whose body broke off', 'begin'])
    expect(fields.get('x-a')).toEqual(['a'])
  })

  it.each([http2.constants.NGHTTP2_INTERNAL_ERROR, http2.constants.NGHTTP2_NO_ERROR])(
    'to an HTTP/2 stream that is reset with %i',
    async (code) => {
      const client = await http2Of((stream) => stream.close(code))
      expect(await client.send(GET)).toMatchObject({
        status: 0,
        failure: 'the HTTP/2 stream was reset without a response',
      })
    },
  )

  it('to an HTTP/2 body that breaks off', async () => {
    const client = await http2Of((stream) => {
      stream.respond({ ':status': 200 })
      stream.write('begin', () => stream.destroy(new Error('broken')))
    })
    expect(await client.send(GET)).toMatchObject({ status: 200, failure: '200, whose body broke off' })
  })

  it('to an HTTP/2 connection that is closed', async () => {
    const client = await http2Of((stream) => stream.session?.destroy())
    expect(await client.send(GET)).toMatchObject({
      status: 0,
      failure: expect.stringMatching(/connection was closed|stream was reset/),
    })
  })
})

describe('Over HTTP/2', () => {
  /** The statuses of this many requests at once; of a request without a response, the failure. */
  async function outcomes(client: VerifyClient, requests: number): Promise<ReadonlySet<number | string>> {
    const answers = await Promise.all(Array.from({ length: requests }, () => client.send(GET)))
    return new Set(answers.map(({ status, failure }) => failure ?? status))
  }

  const answer = (stream: http2.ServerHttp2Stream): void => {
    stream.respond({ ':status': 200 })
    stream.end('ok')
  }

  it.each([1, 50])('no more than %i streams are open at once if the server allows no more', async (most) => {
    let open = 0
    let highest = 0
    let arrived = 0
    const client = await http2Of(
      (stream) => {
        arrived += 1
        open += 1
        highest = Math.max(highest, open)
        stream.once('close', () => {
          open -= 1
        })
        afterTurn(() => answer(stream))
      },
      { maxConcurrentStreams: most },
    )
    expect(await outcomes(client, 120)).toEqual(new Set([200]))
    expect([arrived, highest <= most]).toEqual([120, true])
  })

  const { NGHTTP2_NO_ERROR, NGHTTP2_REFUSED_STREAM } = http2.constants

  it.each<readonly [how: string, refuse: (stream: http2.ServerHttp2Stream) => void]>([
    ['REFUSED_STREAM', (stream) => stream.close(NGHTTP2_REFUSED_STREAM)],
    [
      'GOAWAY',
      (stream) => {
        stream.session?.close()
        answer(stream)
      },
    ],
  ])('a request that the server did not process is told from others, after %s', async (_how, refuse) => {
    let arrived = 0
    const client = await http2Of(
      (stream) => {
        arrived += 1
        if (arrived === 4) refuse(stream)
        else answer(stream)
      },
      { maxConcurrentStreams: 2 },
    )
    expect(await outcomes(client, 20)).toEqual(new Set([200, 'the server did not process each request']))
    expect(arrived).toBeLessThanOrEqual(20)
  })

  it('a request above the last stream that a GOAWAY names was not processed', async () => {
    const held: http2.ServerHttp2Stream[] = []
    const client = await http2Of((stream) => {
      held.push(stream)
      const [first] = held
      if (held.length !== 10 || first === undefined) return
      first.session?.goaway(NGHTTP2_NO_ERROR, first.id ?? 0)
      answer(first)
    })
    expect(await outcomes(client, 10)).toEqual(new Set([200, 'the server did not process each request']))
  })

  it('nothing is sent after the client has been closed', async () => {
    const client = await http2Of(answer)
    client.close()
    expect((await client.send(GET)).failure).toBe('the connection was closed without a response')
  })
})

describe('A client takes no compressed body (RFC 9110 §12.5.3)', () => {
  it('over HTTP/1.1', async () => {
    const client = await http1Of((request, response) => {
      response.end(request.headers['accept-encoding'])
    })
    expect((await client.send(GET)).body).toBe('identity')
  })

  it('over HTTP/2', async () => {
    const client = await http2Of((stream, headers) => {
      stream.respond({ ':status': 200 })
      stream.end(headers['accept-encoding'])
    })
    expect((await client.send(GET)).body).toBe('identity')
  })
})

describe('HTTP/1.1 over a kept connection', () => {
  /** A server that closes each connection at its second request. Counts the requests that arrive. */
  async function closingAtTheSecond(): Promise<{
    readonly client: VerifyClient
    readonly arrived: () => number
  }> {
    let arrived = 0
    const used = new WeakSet<Socket>()
    const client = await http1Of((request, response) => {
      arrived += 1
      if (used.has(request.socket)) return request.socket.resetAndDestroy()
      used.add(request.socket)
      response.end('ok')
    })
    return { client, arrived: () => arrived }
  }

  it('never sends a POST again by itself (RFC 9112 §9.3.1)', async () => {
    const { client, arrived } = await closingAtTheSecond()
    expect((await client.send(UNSUPPORTED_GRANT)).status).toBe(200)
    expect((await client.send(UNSUPPORTED_GRANT)).failure).toBe(
      'the connection was closed without a response',
    )
    expect(arrived()).toBe(2)
  })

  it('sends a GET again, once', async () => {
    const { client, arrived } = await closingAtTheSecond()
    expect((await client.send(GET)).status).toBe(200)
    expect((await client.send(GET)).status).toBe(200)
    expect(arrived()).toBe(3)
  })

  it('closes a connection that is idle, also before a server that keeps it, so that no POST meets its end', async () => {
    const sockets: Socket[] = []
    const client = await http1Of((request, response) => {
      sockets.push(request.socket)
      response.end('ok')
    })
    await client.send(UNSUPPORTED_GRANT)
    await client.send(UNSUPPORTED_GRANT)
    const [first, second] = sockets
    expect(second).toBe(first)
    if (second?.destroyed === false) await once(second, 'close')
    await client.send(UNSUPPORTED_GRANT)
    expect(sockets[2]).not.toBe(first)
  })

  it('names no server by SNI that a request spoofs in Host', async () => {
    const names: TLSSocket['servername'][] = []
    const server = tls.createServer(pair(), (socket) => {
      names.push(socket.servername)
      socket.on('error', () => {})
      socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n'))
    })
    const url = await listening(server, 'https')
    const client = createHttp1Client({ url, tls: TLS }, stillClock())
    expect((await client.send({ ...GET, hosts: ['other.invalid', url.host] })).status).toBe(400)
    expect(names).toEqual([false])
  })
})

describe.concurrent('No HTTP/2', () => {
  const connectTo = (
    url: URL,
    { insecure = true, clock = stillClock() } = {},
  ): Promise<VerifyClient | string> =>
    createHttp2Client({ url, tls: { ca: undefined, insecure } }, clock, TIMEOUT)

  it('because the server does not offer it', async () => {
    const url = await listening(tls.createServer(pair()), 'https')
    expect(await connectTo(url)).toBe('the server does not offer it')
  })

  it('because the connection is refused', async () => {
    // No program listens on this port, and no test gets it as a free one.
    expect(await connectTo(new URL('https://127.0.0.1:1'))).toMatch(/ECONNREFUSED/)
  })

  it('because the certificate is not trusted', async () => {
    const url = await listening(http2.createSecureServer(pair()), 'https')
    expect(await connectTo(url, { insecure: false })).toMatch(/certificate/)
  })

  it('because the server sends no SETTINGS', async () => {
    const { clock, arrived, late } = waiting()
    const url = await listening(tls.createServer({ ...pair(), ALPNProtocols: ['h2'] }, arrived), 'https')
    expect(await late(connectTo(url, { clock }))).toBe('no response within 3 s')
  })

  it('because the server closes the connection before its SETTINGS', async () => {
    const server = tls.createServer({ ...pair(), ALPNProtocols: ['h2'] }, (socket) => socket.destroy())
    const url = await listening(server, 'https')
    expect(await connectTo(url)).toBe('the connection was closed without a response')
  })

  it('because the server does not answer in time', async () => {
    const { clock, arrived, late } = waiting()
    const url = await listening(createTcp(arrived), 'https')
    expect(await late(connectTo(url, { clock }))).toBe('no response within 3 s')
  })
})

it('A client reads a page of 60 KiB to its end, which it may show a secret at', async () => {
  const connecting = nextConnecting()
  const half = Buffer.alloc(30 * 1024, 'x')
  const client = await http1Of(async (_request, response) => {
    response.write(half)
    await hasRead(await connecting, half.length)
    response.end(Buffer.concat([half, Buffer.from('the end')]))
  })
  const { body, failure } = await client.send(GET)
  expect([body.length, body.slice(-7), failure]).toEqual([60 * 1024 + 7, 'the end', undefined])
})
