import { setTimeout as pause } from 'node:timers/promises'
import { failedFault } from '../contest/row.ts'
import { DEVICE_BODY, type Device } from '../device.ts'
import type { Check, Findings } from '../figure.ts'
import { fixed } from '../format.ts'
import type { Lab } from '../lab.ts'
import { type Attack, runHostile } from '../load/hostile.ts'
import { runSteadily, type SteadyReport, WARM_UP } from '../load/steady.ts'
import { checkOf, medianOf, ratioOf } from '../measure.ts'
import type { RunningPeer } from '../peers/peer.ts'
import { posternPeer } from '../peers/postern.ts'
import { requestOnce } from '../request.ts'
import { say } from '../run-program.ts'

interface Row {
  /** Stays the same from release to release. */
  readonly id: string
  readonly attack: Attack
  readonly connections: number
  readonly tls: boolean
}

const ROWS: readonly Row[] = [
  { id: 'pipelined', attack: 'pipelined requests', connections: 20, tls: false },
  { id: 'chunks', attack: 'chunks of one byte', connections: 50, tls: false },
  { id: 'metrics', attack: 'reads of /metrics', connections: 20, tls: false },
  { id: 'DATA', attack: 'DATA frames of one byte', connections: 20, tls: true },
  { id: 'window updates', attack: 'window updates', connections: 20, tls: true },
  { id: 'records', attack: 'TLS records of one byte', connections: 20, tls: true },
]

/** The most that the median of another client may be, as a multiple of that alone, and the longest `/healthz` (ms). */
const MOST_BESIDE = 5
const SLOWEST_HEALTH = 100

/** A place at the device for each request: who waits for the device is another question. */
const PLACES = ['upstream.max_in_flight=64']

/** Requests per second of the other client, and of the health check. */
const PACE = 200
const HEALTH_PACE = 50

/** Each attack has an address of its own: one that was refused stays so for a while. */
const ATTACKERS = '127.0.3'
const OTHER = '127.0.0.2'
const HEALTH_CHECK = '127.0.0.4'

/** What others notice of an attack. */
interface Round {
  readonly beside: SteadyReport
  readonly health: SteadyReport
  readonly alone: number
}

/**
 * One client attacks the sidecar from many connections. Another one keeps its pace, and a health check asks `/healthz`. Both begin before it, because a
 * connection that is cut does its worst at first.
 */
export async function measureAttacks(lab: Lab, device: Device): Promise<Partial<Findings>> {
  const start = (tls: boolean): Promise<RunningPeer> =>
    posternPeer({ tls, set: PLACES, program: lab.program }).start({
      devicePort: device.port,
      core: lab.proxyCore,
    })
  const running = { tls: await start(true), cleartext: await start(false) }
  const rounds = new Map<Row, Round[]>(ROWS.map((row) => [row, []]))
  const faults: string[] = []
  let attacks = 0
  for (let round = 0; round < lab.rounds; round += 1) {
    for (const tls of [false, true]) {
      const peer = tls ? running.tls : running.cleartext
      const [{ p50 }] = await askOften(lab, peer)
      for (const row of ROWS.filter((each) => each.tls === tls)) {
        const asking = askOften(lab, peer)
        await pause(WARM_UP * 1000)
        const attacking = runHostile(
          {
            attack: row.attack,
            url: row.attack === 'reads of /metrics' ? (peer.admin ?? '') : peer.url,
            headers: peer.headers,
            connections: row.connections,
            seconds: lab.seconds,
            address: `${ATTACKERS}.${1 + attacks}`,
          },
          lab.otherCore,
        )
        attacks += 1
        const [beside, health] = await asking
        const { opened, answered, sent } = await attacking
        if (opened === 0 || sent === 0) faults.push(`the attack did not begin: ${row.attack}`)
        say(
          `  round ${round + 1}, ${row.attack}: p50 ${fixed(beside.p50, 2)} ms, alone ${fixed(p50, 2)}; /healthz up to ${fixed(health.max, 0)} ms; ${opened} connections, ${answered} responses, ${fixed(sent / 1e6, 1)} MB`,
        )
        rounds.get(row)?.push({ beside, health, alone: p50 })
      }
    }
  }
  const measured = [...rounds]
  return {
    checks: measured.flatMap(([row, each]) => checksOf(row, each)),
    tables: [
      {
        caption: 'Beside one client that attacks: median of another client, and the slowest /healthz',
        head: ['attack', 'connections', 'p50 ms', 'alone ms', '/healthz ms'],
        rows: measured.map(([{ attack, connections }, each]) => [
          attack,
          String(connections),
          fixed(medianOf(each.map(({ beside }) => beside.p50)), 2),
          fixed(medianOf(each.map(({ alone }) => alone)), 2),
          fixed(slowest(each), 0),
        ]),
      },
    ],
    faults: [
      ...faults,
      ...measured.flatMap(([{ attack }, each]) => [
        ...failedFault(
          `the other client beside ${attack}`,
          each.map(({ beside }) => beside),
        ),
        ...failedFault(
          `the health check beside ${attack}`,
          each.map(({ health }) => health),
        ),
      ]),
    ],
  }
}

/** The other client and the health check, at the same time. */
async function askOften(
  lab: Lab,
  { url, admin = '', headers }: RunningPeer,
): Promise<[SteadyReport, SteadyReport]> {
  const health = `${admin}/healthz`
  const { body } = await requestOnce(health)
  return Promise.all([
    runSteadily(
      { url, headers, rate: PACE, seconds: lab.seconds, body: DEVICE_BODY, address: OTHER },
      lab.otherCore,
    ),
    runSteadily(
      { url: health, headers: {}, rate: HEALTH_PACE, seconds: lab.seconds, body, address: HEALTH_CHECK },
      lab.otherCore,
    ),
  ])
}

function checksOf({ id, attack, connections }: Row, rounds: readonly Round[]): readonly Check[] {
  const where = `beside ${connections} connections of one client with ${attack}`
  return [
    ratioOf(
      `P3 ${id}`,
      `p50 of another client ${where}, as a multiple of its p50 alone`,
      rounds.map(({ beside }) => beside.p50),
      rounds.map(({ alone }) => alone),
      { reach: MOST_BESIDE, comparable: 'never' },
    ),
    checkOf(`P3 ${id} /healthz`, `the slowest answer of /healthz ${where}`, 'ms', slowest(rounds), {
      reach: SLOWEST_HEALTH,
    }),
  ]
}

const slowest = (rounds: readonly Round[]): number => Math.max(...rounds.map(({ health }) => health.max))
