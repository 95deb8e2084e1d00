import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { CONNECTION, HANDSHAKE, SESSION, STREAM, TLS_CONNECTION } from '../../src/memory/costs.ts'
import { otherBounds } from '../process/other-bounds.ts'
import { prepareSite, type Served } from '../process/serve.ts'
import { closeLater } from '../support/cleanup.ts'
import { FRAME, headers, requestFields, SETTING, settings } from '../support/http2-frames.ts'
import { type RawSession, rawSession } from '../support/http2-session.ts'
import { rawConnection } from '../support/raw.ts'
import type { Transport } from '../support/transports.ts'

/** Collects the garbage of the process twice a second, for NODE_OPTIONS: V8 alone would keep what an idle process has left. */
const COLLECTING = `--expose-gc --import=data:text/javascript,${encodeURIComponent('setInterval(gc, 500).unref()')}`

/** Unfinished handshakes stay until they are measured. */
const PATIENT = otherBounds('listen/connection-caps.ts', 'LISTEN_BOUNDS', { tlsTimeout: 3_600_000 })

/** A sidecar in a process of its own, whose account never fills. */
async function roomySidecar(transport: Transport): Promise<Served> {
  const site = await prepareSite({
    transport,
    config: {
      listen: {
        memory: '4GiB',
        header_timeout: '1h',
        max_connections_per_client: 10_000,
        max_connections: 19_000,
        idle_timeout: '1h',
      },
    },
  })
  return site.serve({
    bounds: PATIENT,
    env: { NODE_OPTIONS: `--max-semi-space-size=2 ${COLLECTING}`, MALLOC_ARENA_MAX: '1' },
  })
}

/** The anonymous memory of the sidecar (bytes), once its garbage is collected. */
async function settled({ pid }: Served): Promise<number> {
  const program = `const { readFileSync } = require('node:fs')
    let [least, since] = [Infinity, 0]
    setInterval(() => {
      const now = 1024 * Number(/^RssAnon:\\s+(\\d+) kB$/m.exec(readFileSync('/proc/${pid}/status', 'utf8'))[1])
      if (now < least - 1e5) [least, since] = [now, 0]
      else if ((since += 1) > 20) { console.log(Math.min(least, now)); process.exit() }
    }, 200)`
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  closeLater(() => void child.kill('SIGKILL'))
  const [out] = await Promise.all([text(child.stdout), once(child, 'exit')])
  return Number(out)
}

/**
 * What each of `count` things costs the sidecar (bytes). They are so many because the heap grows by megabytes at a time. The first few are
 * not counted: they warm it up.
 */
async function costOf(sidecar: Served, open: () => Promise<unknown>, count = 2_000): Promise<number> {
  for (let i = 0; i < 20; i += 1) await open()
  const before = await settled(sidecar)
  for (let i = 0; i < count; i += 1) await open()
  return ((await settled(sidecar)) - before) / count
}

const CLOSED_WINDOW = settings([SETTING.headerTableSize, 0], [SETTING.initialWindowSize, 0])

function openSession(url: string): Promise<RawSession> {
  return rawSession(url, { opening: [CLOSED_WINDOW] }).then(async (session) => {
    await session.waitFor(({ type }) => type === FRAME.settings)
    return session
  })
}

it('H244 a connection costs at most what it is charged for', async () => {
  const sidecar = await roomySidecar('http1')
  expect(await costOf(sidecar, () => rawConnection(sidecar.url), 6_000)).toBeLessThan(CONNECTION)
})

it('H244 a connection with TLS costs at most what it is charged for', async () => {
  const sidecar = await roomySidecar('tls')
  expect(await costOf(sidecar, () => rawConnection(sidecar.url, { alpn: ['http/1.1'] }))).toBeLessThan(
    TLS_CONNECTION,
  )
})

it('H244 a handshake that stops within a large ClientHello costs at most what it is charged for', async () => {
  const sidecar = await roomySidecar('tls')
  const begun = Buffer.concat([Buffer.from([0x16, 3, 1, 0x3f, 0xff, 1, 0, 0x3f, 0xfb]), Buffer.alloc(12_000)])
  const { hostname, port } = new URL(sidecar.url)
  async function open(): Promise<void> {
    const socket = connect(Number(port), hostname)
    closeLater(() => void socket.destroy())
    socket.on('error', () => {})
    await once(socket, 'connect')
    socket.write(begun)
  }
  expect(await costOf(sidecar, open)).toBeLessThan(HANDSHAKE)
})

it('H244 an HTTP/2 session costs at most what it is charged for', async () => {
  const sidecar = await roomySidecar('h2')
  expect(await costOf(sidecar, () => openSession(sidecar.url))).toBeLessThan(TLS_CONNECTION + SESSION)
})

it('H244 a stream whose answer nobody reads costs at most what it is charged for', async () => {
  const sidecar = await roomySidecar('h2')
  const streams = Array.from({ length: 95 }, (_, at) => headers(2 * at + 1, requestFields()))
  async function open(): Promise<void> {
    const session = await openSession(sidecar.url)
    session.send(...streams)
    await session.waitFor(({ type, stream }) => type === FRAME.headers && stream === 189)
  }
  for (let i = 0; i < 5; i += 1) await open()
  const before = await settled(sidecar)
  for (let i = 0; i < 40; i += 1) await open()
  const cost = ((await settled(sidecar)) - before) / 40
  expect((cost - TLS_CONNECTION - SESSION) / streams.length).toBeLessThan(STREAM)
})
