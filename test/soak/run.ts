import { setTimeout as delay } from 'node:timers/promises'
import { TROUBLES } from '../../src/record/troubles.ts'
import { leftBehind } from '../process/at-rest.ts'
import { prepareSite } from '../process/serve.ts'
import { figuresOf } from '../support/processes.ts'
import { EFFECTS, type SoakContext } from './context.ts'
import { startSoakDevice } from './device.ts'
import { createDisturbanceLog, type Disturbance } from './disturbance-log.ts'
import { type Course, coursesOf, type Sample, takeSample } from './figures.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { exceedLimit } from './logins.ts'
import { doSomething } from './operations.ts'
import { createRandom, type Random } from './random.ts'
import { createVisitor } from './visitor.ts'

export interface SoakOptions {
  readonly seconds: number
  /** It goes on until the visitors have done so many operations, on a slow machine for longer. */
  readonly least?: number
  readonly seed: number
  /** Operations per second of all visitors together. */
  readonly rate: number
  /** Called with a line of progress every few seconds. */
  readonly progress?: (line: string) => void
}

export interface SoakReport {
  readonly ledger: Ledger
  /** Undefined if the run was too short. */
  readonly courses: readonly Course[] | undefined
  readonly disturbances: Readonly<Record<string, number>>
  /** Everything that went wrong, in words. The run passes if it is empty. */
  readonly faults: readonly string[]
}

/** How many clients run concurrently. */
const VISITORS = 16

/** The most operations of one visitor: fewer than the rate limit of its address. */
const OPERATIONS_PER_VISITOR = 20

/** Runs a real sidecar with a device that restarts, and clients that check every response. */
export async function soak({
  seconds,
  least = 0,
  seed,
  rate,
  progress = () => {},
}: SoakOptions): Promise<SoakReport> {
  const random = createRandom(seed)
  const now = (): number => performance.now()
  const device = await startSoakDevice()
  const passwords = { now: 'the first password', before: '', changes: 0 }
  const site = await prepareSite({
    device,
    transport: 'h2',
    password: passwords.now,
    config: {
      limits: { api: { requests: 60 }, oauth: { requests: 30 } },
      oauth: { revocation_path: '/oauth/revoke' },
      tokens: { capacity: 1000 },
      log: { access: false },
    },
  })
  const served = await site.serve()
  const socketsAtRest = figuresOf(served.pid).sockets
  const ledger = createLedger()
  const disturbanceLog = createDisturbanceLog(now)
  const context: SoakContext = { site, served, device, disturbanceLog, ledger, password: passwords, now }
  const end = now() + seconds * 1000
  const goesOn = (): boolean => now() < end || ledger.total < least
  const samples: Sample[] = []
  const disturbances: Record<string, number> = { 'device restarts': 0, 'password changes': 0, reloads: 0 }

  async function runVisitors(chance: Random): Promise<void> {
    const pause = (1000 * VISITORS) / rate
    while (goesOn()) {
      const visitor = createVisitor(context, chance.fork())
      if (chance.below(20) === 0) await exceedLimit(visitor)
      for (let i = 0; i < OPERATIONS_PER_VISITOR && goesOn(); i++) {
        const next = now() + pause * (0.5 + chance.below(1000) / 1000)
        await doSomething(visitor)
        await delay(Math.max(0, next - now()))
      }
      visitor.leave()
    }
  }

  async function disturb(chance: Random): Promise<void> {
    const calm = Math.min(8000, seconds * 150)
    while (now() < end - calm) {
      await delay(calm * (0.5 + chance.below(1000) / 1000))
      const kind = chance.pick<Disturbance>(['device', 'password', 'configuration'])
      const over = disturbanceLog.begin(kind, EFFECTS[kind])
      if (kind === 'device') {
        disturbances['device restarts'] = (disturbances['device restarts'] ?? 0) + 1
        await device.takeDown()
        await delay(chance.below(1000))
        await device.bringUp()
      } else if (kind === 'password') {
        passwords.before = passwords.now
        passwords.now = `password ${chance.below(1_000_000)}`
        passwords.changes += 1
        disturbances['password changes'] = passwords.changes
        site.setPassword(`${passwords.now}\n`)
      } else {
        disturbances.reloads = (disturbances.reloads ?? 0) + 1
        if (chance.below(2) === 0) site.configure({ realm: `realm ${chance.below(1000)}` })
        served.signal('SIGHUP')
      }
      over()
    }
  }

  async function watch(): Promise<void> {
    const interval = Math.min(5000, seconds * 100)
    for (let next = now() + interval; now() < end; next += interval) {
      await delay(Math.max(0, Math.min(next, end) - now()))
      const sample = await takeSample(served)
      samples.push(sample)
      const left = Math.max(0, Math.round((end - now()) / 1000))
      progress(
        `${left} s left: ${ledger.total} done, ${ledger.failures.length} failed, ${sample.resident.toFixed(0)} MiB, ` +
          `heap ${sample.heap.toFixed(0)} MiB, ${sample.sockets} sockets`,
      )
    }
  }

  let ended = ''
  void served.exit.then(({ code, signal }) => {
    ended = `the process ended with ${code ?? signal}`
  })
  const forks = Array.from({ length: VISITORS }, () => random.fork())
  await Promise.all([...forks.map(runVisitors), disturb(random.fork()), watch()])
  // Idle connections to the device do not count as left behind, so the device closes them first.
  await device.takeDown()
  const left = ended === '' ? await leftBehind(served, socketsAtRest) : [ended]
  const exit = await served.stop()
  const courses = coursesOf(samples)
  // The device restarts.
  const bugs = served.log.filter(({ level, msg }) => level >= 50 && msg !== TROUBLES.PosternDeviceDown.line)
  return {
    ledger,
    courses,
    disturbances,
    faults: [
      ...ledger.failures,
      ...device.complaints.map((complaint) => `the device received ${complaint}`),
      ...left,
      ...(exit.code === 0 ? [] : [`it stopped with ${exit.code ?? exit.signal}`]),
      ...bugs.map((line) => `logged: ${JSON.stringify(line)}`),
      ...(courses ?? []).filter(({ flat }) => !flat).map(({ name }) => `${name} is not flat`),
    ],
  }
}
