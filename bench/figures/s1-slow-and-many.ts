import { setTimeout as pause } from 'node:timers/promises'
import { temporaryFolder } from '../child.ts'
import { DEVICE_BODY, startNodeDevice } from '../device.ts'
import type { Figure } from '../figure.ts'
import { fixed } from '../format.ts'
import type { Lab } from '../lab.ts'
import { slowhttptestVersion } from '../load/slowhttptest.ts'
import { runSteadily, type SteadyLoad, type SteadyReport, WARM_UP } from '../load/steady.ts'
import { alternate } from '../measure.ts'
import { type Metrics, readMetrics } from '../metrics.ts'
import { NO_LIMIT } from '../peers/postern.ts'
import { processorTime } from '../processor-time.ts'
import { residentMemory, watchMemory } from '../resident-memory.ts'
import { say } from '../say.ts'
import { askForToken, type RunningSidecar, startSidecar } from '../sidecar.ts'
import { type Attack, attacks, type Caps } from './attacks.ts'
import { type Ordeal, ordealFindings } from './ordeals.ts'

/** Requests per second of the client that is to be served all the while. */
const PACE = 200

/** Neither slowhttptest's nor that of our own attackers. */
const GOOD_ADDRESS = '127.0.0.2'

/** By which an attack begins before the other client (ms). */
const HEAD_START = 1_000

/** For the crowd of an attack to come together, and for it to be gone again (ms). */
const LONGEST_GATHERING = 90_000

/** After an attack, before the memory is looked at: long enough for what is only put off to be done (ms). */
const REST = 2_000

/** Connections that the good client may have open by then. */
const ITS_OWN = 16

/** By which a connection may outlive its deadline: an attack may have opened it late, and is looked at now and then (ms). */
const LATE = 20_000

const CAPS: Readonly<Record<Caps, readonly string[]>> = {
  lifted: ['listen.max_connections=6000', 'listen.max_connections_per_client=100000'],
  // The bench's own sidecars have another cap per client.
  'as they come': ['listen.max_connections_per_client=250'],
}

/** A sidecar under attack, and the good client's load. */
interface Besieged {
  readonly sidecar: RunningSidecar
  readonly token: string
  /** For what an attacker leaves. */
  readonly folder: string
  readonly load: SteadyLoad
}

export const slowAndMany: Figure = {
  id: 'S1',
  title: 'Slow and many do not touch the others',
  about: `A client asks ${PACE} times a second over TLS, alone and while the sidecar is attacked: by slowhttptest, by 5,000 idle connections, by floods of HTTP/2 frames from 50 connections that are opened again, up to 200 a second, whenever they are closed, and by readers that take nothing. With the caps as they come an attacker has one address, from which it has done what it may within two seconds, before that client is timed. With the caps lifted it goes on as if from as many addresses as it takes: what that does is told, not judged. The attackers give way to that client on the core that all of them run on, so that what is measured is the sidecar and not their fight for it.`,
  async measure(lab) {
    const device = await startNodeDevice(lab.otherCore)
    const besieged = new Map<Caps, Besieged>()
    for (const caps of ['lifted', 'as they come'] as const) {
      besieged.set(caps, await besiege(lab, caps, `http://127.0.0.1:${device.port}`))
    }
    const tool = await slowhttptestVersion()
    if (tool === undefined) say('slowhttptest is not installed: left out')
    const faults: string[] = []
    const ordeals = await alternate(
      attacks(lab.part, tool !== undefined),
      lab.rounds,
      async (attack, round) => {
        const place = besieged.get(attack.caps)
        if (place === undefined) throw new Error('an attack on nobody')
        const ordeal = await endure(lab, attack, place, round === lab.rounds - 1)
        const { alone, during } = ordeal
        say(
          `  round ${round + 1}: ${attack.name}: p99 ${fixed(during.p99, 2)} ms, alone ${fixed(alone.p99, 2)} ms`,
        )
        return ordeal
      },
    )
    for (const { sidecar } of besieged.values()) faults.push(...(await sidecar.stop()))
    await device.child.stop()
    const findings = ordealFindings(ordeals)
    return {
      ...findings,
      notes: [
        ...findings.notes,
        ...(tool === undefined ? ['slowhttptest is not installed: its attacks are left out'] : []),
        ...(lab.part < 1 ? ['fewer idle connections than 5,000: this was a quick run'] : []),
      ],
      faults: [...findings.faults, ...faults],
    }
  },
}

async function besiege(lab: Lab, caps: Caps, device: string): Promise<Besieged> {
  const set = [`limits.api.requests=${NO_LIMIT}`, `limits.oauth.requests=${NO_LIMIT}`, ...CAPS[caps]]
  const sidecar = await startSidecar({ device, tls: true, set, core: lab.proxyCore, program: lab.program })
  const token = await askForToken(sidecar.url)
  const load = {
    url: sidecar.url,
    headers: { Authorization: `Bearer ${token}` },
    rate: PACE,
    seconds: lab.seconds,
    status: 200,
    body: DEVICE_BODY,
    address: GOOD_ADDRESS,
  }
  if (lab.warmUpSeconds > 0) await runSteadily({ ...load, seconds: lab.warmUpSeconds }, lab.otherCore)
  return { sidecar, token, folder: await temporaryFolder(), load }
}

/** The good client alone, then during one attack; `last` to see as well whether the deadlines end it. */
async function endure(
  lab: Lab,
  attack: Attack,
  { sidecar, token, folder, load }: Besieged,
  last: boolean,
): Promise<Ordeal> {
  const { admin, url, child } = sidecar
  const alone = await runSteadily(load, lab.otherCore)
  const memory = { before: await residentMemory(child.pid) }
  const before = await readMetrics(admin)
  const watch = watchMemory(child.pid)
  const seconds = HEAD_START / 1000 + WARM_UP + lab.seconds
  const running = await attack.start({ url, token, folder, core: lab.otherCore, seconds })
  const faults: string[] = []
  await pause(HEAD_START)
  const crowd = before.sum('connections') + attack.crowd
  if (!(await connectionsAre(admin, (open) => open >= crowd, LONGEST_GATHERING)))
    faults.push('did not come together')
  const full = await residentMemory(child.pid)
  const during = await attacked(lab, load, child.pid)
  const after = await readMetrics(admin)
  if (last && attack.deadline !== undefined && !(await endsBy(admin, attack.deadline)))
    faults.push('was not ended by the deadline')
  await running.stop()
  const { peak } = await watch.stop()
  const missing = attack.missing({ before, during: after })
  if (missing !== undefined) faults.push(missing)
  if (!(await endsBy(admin, 0))) faults.push('left connections behind')
  await pause(REST)
  return {
    alone,
    ...during,
    faults,
    memory: { ...memory, full, peak, after: await residentMemory(child.pid) },
    connections: after.sum('connections') - before.sum('connections'),
    refused: difference(before, after, 'connections_refused_total'),
    cut: difference(before, after, 'connections_cut_total'),
    answered: difference(before, after, 'requests_total') - during.during.answered,
  }
}

async function attacked(
  lab: Lab,
  load: SteadyLoad,
  pid: number,
): Promise<{ readonly during: SteadyReport; readonly busy: number | undefined }> {
  const [from, used] = [performance.now(), await processorTime(pid)]
  const during = await runSteadily(load, lab.otherCore)
  const [time, now] = [performance.now() - from, await processorTime(pid)]
  return { during, busy: used === undefined || now === undefined ? undefined : (now - used) / time }
}

function difference(before: Metrics, after: Metrics, name: string): number {
  return after.sum(name) - before.sum(name)
}

function endsBy(admin: string, deadline: number): Promise<boolean> {
  return connectionsAre(admin, (open) => open <= ITS_OWN, deadline + LATE)
}

/** Waits until the number of open connections is right; whether it does within `patience` ms. */
async function connectionsAre(
  admin: string,
  enough: (open: number) => boolean,
  patience: number,
): Promise<boolean> {
  for (const end = performance.now() + patience; ; await pause(200)) {
    if (enough((await readMetrics(admin)).sum('connections'))) return true
    if (performance.now() > end) return false
  }
}
