import { readFile } from 'node:fs/promises'
import { connect as connectTcp } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import { connect, type TLSSocket } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { startChild } from '../../bench/child.ts'
import {
  FLAG,
  FRAME,
  frame,
  hpack,
  PREFACE,
  ping,
  requestFields,
  resetStream,
  SETTING,
  settings,
} from '../support/http2-frames.ts'

export type AttackKind =
  | 'idle'
  | 'rapid reset'
  | 'rapid reset with a token'
  | 'CONTINUATION'
  | 'PING'
  | 'SETTINGS'
  | 'zero windows'

/** TLS connections with one behaviour. Each is reopened when the sidecar closes it. */
interface AttackPlan {
  readonly kind: AttackKind
  readonly port: number
  /** Connections open at a time. */
  readonly connections: number
  /** Maximum of opened and reopened connections per second. */
  readonly rate: number
  /** Client addresses in 127.0.network.0/24: all connections come from the first, or spread over all. */
  readonly addresses: 'one' | 'many'
  readonly network: number
  readonly token: string
  /** Path of the response that `zero windows` requests and does not read. */
  readonly path: string
}

interface AttackReport {
  /** Completed handshakes. */
  readonly opened: number
  /** Connections that the sidecar closed, before or after the handshake. */
  readonly closed: number
}

export interface Attack {
  /** The latest report, at most 100 ms old. */
  report(): Promise<AttackReport>
  /** Ends the attack. Resolves with the final report. */
  stop(): Promise<AttackReport>
}

/**
 * Starts an attacker in a separate process.
 * @param folder for the report of the process
 */
export async function startAttack(plan: AttackPlan, folder: string): Promise<Attack> {
  const outputTo = join(folder, `report of ${plan.kind}`)
  const args = [fileURLToPath(import.meta.url), JSON.stringify(plan)]
  const child = await startChild(process.execPath, args, { outputTo })
  const report = async (): Promise<AttackReport> => {
    const lines = (await readFile(outputTo, 'utf8')).trimEnd().split('\n')
    const none: AttackReport = { opened: 0, closed: 0 }
    return lines.at(-1) === '' ? none : (JSON.parse(lines.at(-1) ?? '') as AttackReport) // `printReport` writes it
  }
  return {
    report,
    async stop() {
      await child.stop()
      return report()
    },
  }
}

/** Addresses of an attacker with many: the sidecar counts the offences of each, up to 25 within a minute. */
const ADDRESSES = 250

/** Frames per write: a batch costs the attacker less than the sidecar. */
const BATCH = 50

/** Initial window of a stream (bytes), for attacks that do not depend on it. */
const ORDINARY_WINDOW = 65_535

/** Milliseconds. */
const TIME_LIMIT = 10 * 60_000
const TICK = 10
const REPORT_INTERVAL = 100

interface Behaviour {
  readonly protocol: 'http/1.1' | 'h2'
  run(socket: TLSSocket): void
}

/** Sends one ordinary request, then nothing. */
const IDLE: Readonly<Record<Behaviour['protocol'], Behaviour>> = {
  'http/1.1': {
    protocol: 'http/1.1',
    run: (socket) => socket.write('GET / HTTP/1.1\r\nHost: device\r\n\r\n'),
  },
  h2: {
    protocol: 'h2',
    run: (socket) => socket.write(Buffer.concat([opening(ORDINARY_WINDOW), get(1)])),
  },
}

function flood(first: Buffer, piece: (turn: number) => Buffer): Behaviour {
  return {
    protocol: 'h2',
    run(socket) {
      let turn = 0
      const more = (): void => {
        if (!socket.writable) return
        const pieces = Array.from({ length: BATCH }, () => {
          turn += 1
          return piece(turn - 1)
        })
        socket.write(Buffer.concat(pieces), () => setImmediate(more))
      }
      socket.write(Buffer.concat([opening(ORDINARY_WINDOW), first]), more)
    },
  }
}

const NOTHING = Buffer.alloc(0)

const opening = (window: number): Buffer =>
  Buffer.concat([PREFACE, settings([SETTING.initialWindowSize, window])])

/** The request of a stream. Its block is the same for all, so that a flood costs the attacker next to nothing. */
function requesting(path: string, token?: string): (stream: number) => Buffer {
  const fields = token === undefined ? [] : ['authorization', `Bearer ${token}`]
  const block = hpack(requestFields(fields, { ':path': path }))
  return (stream) => frame(FRAME.headers, FLAG.endStream | FLAG.endHeaders, stream, block)
}

const get = requesting('/')
/** The start of a head. */
const BEGINNING = frame(FRAME.headers, FLAG.endStream, 1, hpack(requestFields()))
const CONTINUATION = frame(FRAME.continuation, 0, 1)
const PING = ping()
const SETTINGS = settings()

/** Resets each stream in the same write as its request, which costs the attacker the least. */
const rapidReset: Behaviour = flood(NOTHING, (turn) =>
  Buffer.concat([get(2 * turn + 1), resetStream(2 * turn + 1)]),
)

/** Runs an attack until SIGTERM, and prints an `AttackReport` as JSON periodically. */
function run(plan: AttackPlan): void {
  let started = 0
  let opened = 0
  let closed = 0

  /** Resets each stream after the sidecar has had time to forward its request. */
  const getWithToken = requesting('/', plan.token)
  const lateReset = flood(NOTHING, (turn) => {
    const request = getWithToken(2 * turn + 1)
    return turn < BATCH ? request : Buffer.concat([resetStream(2 * (turn - BATCH) + 1), request])
  })

  const zeroWindows: Behaviour = {
    protocol: 'h2',
    run: (socket) => socket.write(Buffer.concat([opening(0), requesting(plan.path, plan.token)(1)])),
  }

  const BEHAVIOURS: Readonly<Record<AttackKind, (connection: number) => Behaviour>> = {
    // Half of the connections each.
    idle: (connection) => IDLE[connection % 2 === 0 ? 'h2' : 'http/1.1'],
    'rapid reset': () => rapidReset,
    'rapid reset with a token': () => lateReset,
    CONTINUATION: () => flood(BEGINNING, () => CONTINUATION),
    PING: () => flood(NOTHING, () => PING),
    SETTINGS: () => flood(NOTHING, () => SETTINGS),
    'zero windows': () => zeroWindows,
  }

  function open(connection: number): void {
    const behaviour = BEHAVIOURS[plan.kind](connection)
    const address = plan.addresses === 'one' ? 1 : 1 + (started % ADDRESSES)
    started += 1
    const socket = connect({
      socket: connectTcp({
        port: plan.port,
        host: '127.0.0.1',
        localAddress: `127.0.${plan.network}.${address}`,
      }),
      ALPNProtocols: [behaviour.protocol],
      // The sidecar signs its own certificate, and the connection stays on loopback.
      rejectUnauthorized: false,
    })
    socket.on('secureConnect', () => {
      opened += 1
      behaviour.run(socket)
    })
    // Discards the input. Reading it is necessary to notice the end of the connection.
    socket.resume()
    socket.on('error', () => {})
    socket.on('close', () => {
      closed += 1
      closedConnections.push(connection)
    })
  }

  /** Prints one line. The last line is the current report. */
  function printReport(done?: () => void): void {
    const report: AttackReport = { opened, closed }
    process.stdout.write(`${JSON.stringify(report)}\n`, done)
  }

  process.once('SIGTERM', () => printReport(() => process.exit(0)))
  setInterval(() => printReport(), REPORT_INTERVAL)
  setTimeout(() => process.exit(1), TIME_LIMIT).unref()

  const closedConnections = Array.from(
    { length: plan.connections },
    (_, connection) => plan.connections - 1 - connection,
  )
  let allowance = 0
  let last = performance.now()
  setInterval(() => {
    const now = performance.now()
    // Unused allowance beyond one second expires: a later burst would exceed the rate.
    allowance = Math.min(plan.rate, allowance + ((now - last) / 1000) * plan.rate)
    last = now
    while (allowance >= 1) {
      const connection = closedConnections.pop()
      if (connection === undefined) {
        allowance = 0
        return
      }
      allowance -= 1
      open(connection)
    }
  }, TICK)
}

if (import.meta.main) run(JSON.parse(process.argv[2] ?? '{}') as AttackPlan) // of `startAttack`
