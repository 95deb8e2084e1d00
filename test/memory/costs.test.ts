import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import { expect, it } from 'vitest'
import { CONNECTION, SESSION, STREAM, TLS_CONNECTION } from '../../src/memory/costs.ts'
import { otherBounds } from '../process/other-bounds.ts'
import { prepareSite, type Served } from '../process/serve.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { FRAME, headers, requestFields, SETTING, settings } from '../support/http2-frames.ts'
import { type RawSession, rawSession } from '../support/http2-session.ts'
import { rawConnection } from '../support/raw.ts'
import type { Transport } from '../support/transports.ts'

/** For NODE_OPTIONS: at SIGUSR2, the process collects its garbage, and writes the count of signals and its anonymous memory (kB) to this file. */
const reporting = (file: string): string =>
  `--expose-gc --import=data:text/javascript,${encodeURIComponent(`
    import { readFileSync, renameSync, writeFileSync } from 'node:fs'
    let count = 0
    process.on('SIGUSR2', () => {
      gc()
      const [, memory] = /^RssAnon:\\s+(\\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))
      writeFileSync('${file}.new', ++count + ' ' + memory)
      renameSync('${file}.new', '${file}')
    })`)}`

/** Unfinished handshakes stay until they are measured. */
const PATIENT = otherBounds('listen/connection-caps.ts', 'LISTEN_BOUNDS', { tlsTimeout: 3_600_000 })

type Measured = Served & { readonly memory: () => Promise<number> }

/** A sidecar in a process of its own, whose account never fills. `memory`: its anonymous memory (bytes) without garbage. */
async function roomySidecar(transport: Transport): Promise<Measured> {
  const file = join(temporaryDirectory(), 'memory')
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
  const served = await site.serve({
    env: { NODE_OPTIONS: `--max-semi-space-size=2 ${reporting(file)} ${PATIENT}`, MALLOC_ARENA_MAX: '1' },
  })
  let asked = 0
  const report = (): number[] => (existsSync(file) ? readFileSync(file, 'utf8').split(' ').map(Number) : [0])
  const memory = async (): Promise<number> => {
    asked += 1
    process.kill(served.pid, 'SIGUSR2')
    await expect.poll(() => report()[0], { interval: 10 }).toBe(asked)
    return 1024 * (report()[1] ?? Number.NaN)
  }
  return Object.assign(served, { memory })
}

/** The memory of the sidecar (bytes), once it stays the same: what has come is read, and what was left is returned to the system. */
async function settled({ memory }: Measured): Promise<number> {
  let last = await memory()
  for (let since = 0; since < 8; ) {
    const now = await memory()
    since = Math.abs(now - last) < 100_000 ? since + 1 : 0
    last = now
  }
  return last
}

/**
 * What each of `count` things costs the sidecar (bytes): the least of three rounds, because garbage that is not collected yet makes one
 * or the other dearer. The first few are not counted: they warm it up.
 */
async function costOf(sidecar: Measured, open: () => Promise<unknown>, count = 200): Promise<number> {
  for (let i = 0; i < 20; i += 1) await open()
  const held = [await settled(sidecar)]
  for (let round = 0; round < 3; round += 1) {
    for (let i = 0; i < count; i += 1) await open()
    held.push(await settled(sidecar))
  }
  return Math.min(...held.slice(1).map((after, round) => after - (held[round] ?? Number.NaN))) / count
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
  expect(await costOf(sidecar, () => rawConnection(sidecar.url), 2_000)).toBeLessThan(CONNECTION)
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
  expect(await costOf(sidecar, open)).toBeLessThan(TLS_CONNECTION)
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
