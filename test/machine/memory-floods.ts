import { createServer } from 'node:http'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import {
  FLAG,
  FRAME,
  frame,
  headers,
  hpack,
  hpackRemembered,
  PREFACE,
  requestFields,
  SETTING,
  SETTINGS_ACK,
  settings,
} from '../support/http2-frames.ts'

/** Where a flood goes, and the login that some of them need. */
interface FloodTarget {
  readonly host: string
  readonly port: number
  readonly token: string
}

/** What each connection of a flood does, once it is open. `again` runs every 100 ms while it stays open. */
interface Flood {
  readonly connections: number
  /** The flood comes from so many addresses of 127.0.0.0/8. */
  readonly addresses: number
  readonly alpn: 'h2' | 'http/1.1'
  /** The connection stays on TCP: it begins no TLS, or only a part of it. */
  readonly raw?: true
  /** What the client sends is not awaited, and what the server sends is not read. */
  readonly reads?: true
  readonly opening: (target: FloodTarget) => Buffer | string
  readonly again?: (target: FloodTarget, round: number) => Buffer | string
}

/** Nothing of an answer's body may be sent: it waits in the server. */
const CLOSED_WINDOW = Buffer.concat([PREFACE, settings([SETTING.initialWindowSize, 0]), SETTINGS_ACK])

const streams = (count: number, make: (stream: number, at: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, at) => make(2 * at + 1, at)))

const BIG_HEAD = requestFields([
  'x-one',
  'a'.repeat(3_000),
  'x-two',
  'b'.repeat(3_000),
  'x-three',
  'c'.repeat(3_000),
  'x-four',
  'd'.repeat(3_000),
])

const FORM = requestFields(['content-type', 'application/x-www-form-urlencoded'], {
  ':method': 'POST',
  ':path': '/oauth/token',
})

const bearer = ({ token }: FloodTarget): string => `Authorization: Bearer ${token}\r\n`

const LOGIN = `grant_type=password&password=${'wrong'.repeat(4)}`

/** The floods of C26. None of them stops at an answer: a connection that the server closes is opened again. */
export const FLOODS: Readonly<Record<string, Flood>> = {
  'unread HTTP/2 answers': {
    connections: 1_000,
    addresses: 4,
    alpn: 'h2',
    opening: () => Buffer.concat([CLOSED_WINDOW, streams(100, (stream) => headers(stream, requestFields()))]),
  },
  'heads of 12 KB': {
    connections: 240,
    addresses: 1,
    alpn: 'h2',
    opening: () => Buffer.concat([CLOSED_WINDOW, streams(100, (stream) => headers(stream, BIG_HEAD))]),
  },
  'bodies that never come': {
    connections: 240,
    addresses: 1,
    alpn: 'h2',
    opening: () =>
      Buffer.concat([
        CLOSED_WINDOW,
        streams(100, (stream) => headers(stream, [...FORM, 'x', 'y'.repeat(8_000)], false)),
      ]),
  },
  'bodies that never end': {
    connections: 240,
    addresses: 1,
    alpn: 'h2',
    opening: (target) =>
      Buffer.concat([
        CLOSED_WINDOW,
        streams(50, (stream) =>
          Buffer.concat([
            headers(
              stream,
              [...requestFields([], { ':method': 'POST' }), 'authorization', `Bearer ${target.token}`],
              false,
            ),
            frame(FRAME.data, 0, stream, Buffer.alloc(1_000)),
          ]),
        ),
      ]),
    again: (_target, round) =>
      streams(50, (stream) => frame(FRAME.data, 0, stream, Buffer.alloc(round < 60 ? 1_000 : 1))),
  },
  'CONTINUATION and HPACK that grow': {
    connections: 240,
    addresses: 1,
    alpn: 'h2',
    opening: () =>
      Buffer.concat([
        CLOSED_WINDOW,
        frame(
          FRAME.headers,
          FLAG.endHeaders | FLAG.endStream,
          1,
          Buffer.concat([hpack(requestFields()), hpackRemembered('x-long', 'z'.repeat(4_000))]),
        ),
        frame(FRAME.headers, 0, 3, hpack(requestFields())),
        ...Array.from({ length: 3 }, () =>
          frame(FRAME.continuation, 0, 3, hpack(['x-more', 'z'.repeat(4_000)])),
        ),
      ]),
  },
  'HTTP/1 heads in pieces': {
    connections: 1_000,
    addresses: 4,
    alpn: 'http/1.1',
    reads: true,
    opening: () => `GET / HTTP/1.1\r\nHost: device\r\nx-long: ${'z'.repeat(8_000)}\r\n`,
    again: (_target, round) => (round < 60 ? `x-${round}: ${'z'.repeat(100)}\r\n` : ''),
  },
  'HTTP/1 pipelines that nobody reads': {
    connections: 1_000,
    addresses: 4,
    alpn: 'http/1.1',
    opening: () => 'GET / HTTP/1.1\r\nHost: device\r\n\r\n'.repeat(4_000),
    again: () => 'GET / HTTP/1.1\r\nHost: device\r\n\r\n'.repeat(100),
  },
  'TLS handshakes that stop': {
    connections: 1_000,
    addresses: 4,
    alpn: 'http/1.1',
    raw: true,
    opening: () =>
      Buffer.concat([Buffer.from([0x16, 3, 1, 0x3f, 0xff, 1, 0, 0x3f, 0xfb]), Buffer.alloc(8_000)]),
  },
  'slow readers of large answers': {
    connections: 240,
    addresses: 1,
    alpn: 'http/1.1',
    opening: (target) => `GET /large HTTP/1.1\r\nHost: device\r\n${bearer(target)}\r\n`,
  },
  'uploads without length': {
    connections: 240,
    addresses: 1,
    alpn: 'http/1.1',
    opening: (target) =>
      `POST /upload HTTP/1.1\r\nHost: device\r\n${bearer(target)}Transfer-Encoding: chunked\r\n\r\n`,
    again: () => `2000\r\n${'u'.repeat(0x2000)}\r\n`,
  },
  '1,000 WebSockets': {
    connections: 1_000,
    addresses: 4,
    alpn: 'http/1.1',
    opening: (target) =>
      `GET /ws HTTP/1.1\r\nHost: device\r\n${bearer(target)}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
    again: () => 'w'.repeat(4_096),
  },
  logins: {
    connections: 100,
    addresses: 4,
    alpn: 'http/1.1',
    reads: true,
    opening: () => loginRequest(),
    again: () => loginRequest(),
  },
}

function loginRequest(): string {
  return `POST /oauth/token HTTP/1.1\r\nHost: device\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${LOGIN.length}\r\n\r\n${LOGIN}`
}

/** How many connections wait for their handshake at once, and how long a closed one waits before it is opened again (ms). */
const OPENING_AT_ONCE = 64
const REOPENED_AFTER = 50

/** Floods until `stop` is called. `opened`: the connections that were opened so far. */
function startFlood(name: string, target: FloodTarget): { opened: () => number; stop: () => void } {
  const flood = FLOODS[name]
  if (flood === undefined) throw new Error(`no flood is called ${name}: ${Object.keys(FLOODS).join(', ')}`)
  const { connections, addresses, alpn, raw, reads, opening, again } = flood
  const open = new Set<Socket>()
  let [started, opened, waiting, stopped] = [0, 0, 0, false]
  const first = opening(target)
  /** A resumed handshake costs both sides less, so that the flood comes faster. */
  let session: Buffer | undefined

  function begin(): void {
    while (!stopped && open.size < connections && waiting < OPENING_AT_ONCE) openOne()
  }

  function openOne(): void {
    const localAddress = `127.0.1.${1 + (started % addresses)}`
    const { host, port } = target
    started += 1
    waiting += 1
    let [handshaking, round] = [true, 0]
    const settled = (): void => {
      if (handshaking) waiting -= 1
      handshaking = false
    }
    const wire = connectTcp({ host, port, localAddress, noDelay: true })
    const socket = raw
      ? wire
      : connectTls({
          socket: wire,
          rejectUnauthorized: false,
          ALPNProtocols: [alpn],
          ...(session && { session }),
        })
    if (!raw) socket.once('session', (each: Buffer) => (session ??= each))
    open.add(socket)
    let timer: NodeJS.Timeout | undefined
    socket.once(raw ? 'connect' : 'secureConnect', () => {
      settled()
      opened += 1
      socket.write(first)
      if (again !== undefined)
        timer = setInterval(() => {
          round += 1
          if (socket.writableLength < 65_536) socket.write(again(target, round))
        }, 100)
      if (reads || raw) socket.resume()
      else socket.pause()
      begin()
    })
    wire.on('error', () => {})
    socket.on('error', () => {})
    // A paused connection does not see its end: only a write does.
    const probe = setInterval(() => {
      if (!handshaking && !reads && !raw && again === undefined && alpn === 'h2')
        socket.write(SETTINGS_ACK_PING)
    }, 2_000)
    wire.once('close', () => {
      settled()
      clearInterval(timer)
      clearInterval(probe)
      open.delete(socket)
      setTimeout(begin, REOPENED_AFTER)
    })
  }

  begin()
  return {
    opened: () => opened,
    stop() {
      stopped = true
      for (const socket of open) socket.destroy()
    },
  }
}

const SETTINGS_ACK_PING = frame(FRAME.ping, 0, 0, Buffer.alloc(8))

/**
 * A device for the floods: `/large` never ends, `/upload` reads on, an upgrade is accepted and what comes is thrown away, everything else
 * is `device`.
 */
function startFloodedDevice(port: number): void {
  const server = createServer((request, response) => {
    request.resume()
    if (request.url === '/large') {
      const more = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536))) {}
      }
      response.on('drain', more).writeHead(200)
      more()
    } else if (request.url === '/upload') request.on('end', () => response.end('device\n'))
    else response.end('device\n')
  })
  server.on('upgrade', (_request, socket) => {
    socket.on('error', () => {}).resume()
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  })
  server.listen(port, '127.0.0.1', () => process.stdout.write('listening\n'))
}

/** As a program of its own: `node memory-floods.ts NAME --port N --token T --seconds S`, or `device --port N`. */
if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      host: { type: 'string' },
      port: { type: 'string' },
      token: { type: 'string' },
      seconds: { type: 'string' },
    },
  })
  const { host = '127.0.0.1', port = '8443', token = '', seconds = '10' } = values
  const [name = ''] = positionals
  if (name === 'device') startFloodedDevice(Number(port))
  else {
    const flood = startFlood(name, { host, port: Number(port), token })
    setTimeout(() => {
      process.stdout.write(`${flood.opened()}\n`)
      process.exit()
    }, Number(seconds) * 1_000)
  }
}
