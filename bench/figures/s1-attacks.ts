import { setTimeout as pause } from 'node:timers/promises'
import { startAttack } from '../../test/support/attack.ts'
import { temporaryFolder } from '../child.ts'
import { DEVICE_BODY, startNodeDevice } from '../device.ts'
import { fixed } from '../format.ts'
import type { Figure, Lab } from '../lab.ts'
import { runSteadily, type SteadyLoad } from '../load/steady.ts'
import { alternate } from '../measure.ts'
import { type Metrics, readMetrics } from '../metrics.ts'
import { LIFTED } from '../peers/postern.ts'
import { residentMemory, watchMemory, whileBusy } from '../process-usage.ts'
import { say } from '../run-program.ts'
import { askForToken, type RunningSidecar, startSidecar } from '../sidecar.ts'
import { type AttackRound, attackFindings } from './attack-findings.ts'
import { type Attack, attacks, type Caps } from './attacks.ts'

/** Requests per second of the good client. */
const PACE = 200

/** Not an address of an attacker. */
const GOOD_ADDRESS = '127.0.0.2'

/** An attack begins this long before the good client (ms). */
const HEAD_START = 1_000

/** Time limit for an attack to open its connections (ms). */
const OPENING_TIMEOUT = 90_000

/** Pause after an attack before memory is measured, so that deferred work finishes (ms). */
const SETTLE_TIME = 2_000

/** Size of the response that some clients do not read (bytes): more than all buffers on the path hold. */
const UNREAD = 16 << 20

/** Number of the last attacker network. Each attack has its own, because the sidecar counts offences per address for a minute. */
let networks = 0

/** Connections that the good client may still have open. */
const GOOD_CONNECTIONS = 16

/** Tolerance after a deadline (ms): the attack may have opened a connection late, and the sidecar checks periodically. */
const LATE = 20_000

const CAPS: Readonly<Record<Caps, readonly string[]>> = {
  lifted: ['listen.max_connections=6000', 'listen.max_connections_per_client=100000'],
  // Restores the default, which the configuration of the bench overrides.
  'as they come': ['listen.max_connections_per_client=250'],
}

/** A sidecar under attack, and the load of the good client. */
interface AttackedSidecar {
  readonly sidecar: RunningSidecar
  readonly token: string
  /** Folder for the files of an attacker. */
  readonly folder: string
  readonly load: SteadyLoad
}

export const slowAndMany: Figure = {
  id: 'S1',
  title: 'Attacks do not slow other clients',
  about: `A good client sends ${PACE} requests/s over TLS, alone and during attacks: 5,000 idle connections, heads and bodies that never end, floods of HTTP/2 frames on 50 connections that are reopened whenever the sidecar closes them (up to 200 a second), and clients that do not read. With the default caps an attacker has one address and reaches its caps within two seconds, before the good client is timed. With lifted caps the idle connections come from many addresses. All clients run on one core, where the attackers have idle priority: the figure measures the sidecar, not the competition for the core.`,
  async measure(lab) {
    const device = await startNodeDevice(lab.otherCore)
    const url = `http://127.0.0.1:${device.port}`
    const sidecars = {
      lifted: await startAttacked(lab, 'lifted', url),
      'as they come': await startAttacked(lab, 'as they come', url),
    }
    const rounds = await alternate(attacks(lab.part), lab.rounds, async (attack, round) => {
      const measured = await measureRound(lab, attack, sidecars[attack.caps], round === lab.rounds - 1)
      const { alone, during } = measured
      say(
        `  round ${round + 1}: ${attack.name}: p99 ${fixed(during.p99, 2)} ms, alone ${fixed(alone.p99, 2)} ms`,
      )
      return measured
    })
    const reported = await Promise.all(Object.values(sidecars).map(({ sidecar }) => sidecar.stop()))
    const findings = attackFindings(rounds)
    return {
      ...findings,
      notes: lab.part < 1 ? ['fewer than 5,000 idle connections: this was a quick run'] : [],
      faults: [...findings.faults, ...reported.flat()],
    }
  },
}

async function startAttacked(lab: Lab, caps: Caps, device: string): Promise<AttackedSidecar> {
  const { proxyCore: core, program } = lab
  const sidecar = await startSidecar({ device, tls: true, set: [...LIFTED, ...CAPS[caps]], core, program })
  const token = await askForToken(sidecar.url)
  const load = {
    url: sidecar.url,
    headers: { Authorization: `Bearer ${token}` },
    rate: PACE,
    seconds: lab.seconds,
    body: DEVICE_BODY,
    address: GOOD_ADDRESS,
  }
  if (lab.warmUpSeconds > 0) await runSteadily({ ...load, seconds: lab.warmUpSeconds }, lab.otherCore)
  return { sidecar, token, folder: await temporaryFolder(), load }
}

/** Measures the good client alone, then during one attack. `last`: also checks that the deadline ends the attack. */
async function measureRound(
  lab: Lab,
  attack: Attack,
  { sidecar, token, folder, load }: AttackedSidecar,
  last: boolean,
): Promise<AttackRound> {
  const { admin, url } = sidecar
  const { pid } = sidecar.child
  const alone = await runSteadily(load, lab.otherCore)
  const memory = { before: residentMemory(pid) }
  const before = await readMetrics(admin)
  const peakOf = watchMemory(pid)
  networks += 1
  const { kind, connections, rate, caps, counter } = attack
  const addresses = caps === 'lifted' ? 'many' : 'one'
  const target = { port: Number(new URL(url).port), token, path: `/bytes/${UNREAD}` }
  const plan = { kind, connections, rate, addresses, network: networks, ...target } as const
  const running = await startAttack(plan, folder, lab.otherCore)
  const faults: string[] = []
  await pause(HEAD_START)
  const wanted = before.sum('connections') + attack.heldOpen
  if (!(await connectionsAre(admin, (open) => open >= wanted, OPENING_TIMEOUT)))
    faults.push('did not open its connections')
  const full = residentMemory(pid)
  const [during, busy] = await whileBusy(pid, () => runSteadily(load, lab.otherCore))
  const after = await readMetrics(admin)
  if (last && attack.deadline !== undefined && !(await closesWithin(admin, attack.deadline)))
    faults.push('outlived the deadline')
  await running.stop()
  const peak = peakOf()
  const [sum, enough] = counter
    ? [added(before, after, ...counter), 1]
    : [after.sum('connections'), connections]
  if (sum < enough)
    faults.push(`${counter?.join(' for ') ?? 'open connections'}: ${sum} instead of ${enough}`)
  if (!(await closesWithin(admin, 0))) faults.push('left connections behind')
  await pause(SETTLE_TIME)
  return {
    alone,
    during,
    busy,
    faults,
    memory: { ...memory, full, peak, after: residentMemory(pid) },
    connections: added(before, after, 'connections'),
    refused: added(before, after, 'connections_refused_total'),
    cut: added(before, after, 'connections_cut_total'),
    answered: added(before, after, 'requests_total') - during.answered,
  }
}

function added(before: Metrics, after: Metrics, name: string, reason?: string): number {
  return after.sum(name, reason) - before.sum(name, reason)
}

function closesWithin(admin: string, deadline: number): Promise<boolean> {
  return connectionsAre(admin, (open) => open <= GOOD_CONNECTIONS, deadline + LATE)
}

/** Polls the number of open connections for up to `timeout` ms. Returns whether it became `enough`. */
async function connectionsAre(
  admin: string,
  enough: (open: number) => boolean,
  timeout: number,
): Promise<boolean> {
  for (const end = performance.now() + timeout; ; await pause(200)) {
    if (enough((await readMetrics(admin)).sum('connections'))) return true
    if (performance.now() > end) return false
  }
}
