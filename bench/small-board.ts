import { resolve } from 'node:path'
import process from 'node:process'
import { HASH_COSTS, hashPassword } from '../src/password/key-derivation.ts'
import { makeCgroup } from './cgroup.ts'
import { listening } from './child.ts'
import { loadOf } from './contest/contest.ts'
import { startFastDevice } from './device.ts'
import { fixed, formatTable } from './format.ts'
import { autocannonGenerator } from './load/autocannon.ts'
import { describeMachine } from './machine.ts'
import { alternate, medianOf, type Series } from './measure.ts'
import { LIFTED, posternPeer } from './peers/postern.ts'
import { type Program, shippedProgram } from './program.ts'
import { requestOnce } from './request.ts'
import { runProgram, say } from './run-program.ts'
import { askForToken, PASSWORD, prepareSidecar, tokenRequest } from './sidecar.ts'

// `node bench/small-board.ts [EXECUTABLE]`, as root: what Postern does on a small board, which is a cgroup here. Without an executable, it
// makes the one that is released.

const BOARD = {
  processor: 0.05,
  memory: 128,
}
const LOGINS = 20
/** How long a login waits for its response (ms). */
const PATIENCE = 60_000
const CONNECTIONS = 8
const SECONDS = 10
const ROUNDS = 3

/** One start of Postern on the board, and what it does then. Times in seconds. */
interface Round {
  /** From the start of the process until it accepts connections. */
  readonly start: number
  readonly firstLogin: number
  /** Until the last of twenty logins at once has its response, and how many of them got a token. */
  readonly logins: number
  readonly right: number
  /** Over TLS, on connections that are kept. */
  readonly requestsPerSecond: number
}

async function main(): Promise<0 | 1> {
  const cgroup = await makeCgroup(BOARD)
  if (typeof cgroup === 'string') {
    say(`skipped: no cgroup for the board can be made: ${cgroup}`)
    return 0
  }
  const { processor, cores, loadAverage } = await describeMachine()
  const executable = process.argv[2]
  const program = await shippedProgram([], executable === undefined ? undefined : resolve(executable))
  const onBoard = { ...program, command: [...cgroup, ...program.command] }
  const device = `http://127.0.0.1:${(await startFastDevice(undefined)).port}`
  const costs = ['usual', 'board'] as const
  const rounds = await alternate(costs, ROUNDS, async (cost) => {
    const measured = await measure(onBoard, device, await hashPassword(PASSWORD, HASH_COSTS[cost]))
    say(`  ${cost}: ${JSON.stringify(measured)}`)
    return measured
  })
  const rows = [...rounds].map(([cost, of]) => {
    const times = (key: keyof Round, digits: number): string =>
      span(
        of.map((one) => one[key]),
        digits,
      )
    return [
      cost === 'board' ? 'hash-password --for-board' : 'hash-password',
      ...[times('start', 1), times('firstLogin', 1), times('logins', 1)],
      ...[times('right', 0), times('requestsPerSecond', 0)],
    ]
  })
  const { processor: share, memory } = BOARD
  process.stdout.write(
    `${share * 100} % of one of ${cores} cores (${processor}, load ${loadAverage}), ${memory} MiB: medians (range) of ${ROUNDS} rounds\n\n`,
  )
  const head = ['the password by', 'start, s', 'first login, s', `${LOGINS} logins, s`, 'of them right']
  process.stdout.write(`${formatTable([...head, 'requests/s over TLS'], rows)}\n`)
  return [...rounds.values()].flat().every(({ right }) => right === LOGINS) ? 0 : 1
}

async function measure(program: Program, device: string, password: string): Promise<Round> {
  const sidecar = await prepareSidecar({ device, tls: true, set: LIFTED, program, password })
  // The first start makes the certificate, and reads the executable from the disk.
  const first = await sidecar.launch()
  await listening(sidecar.port, first.child)
  await first.stop()

  const [start, running] = await timed(async () => {
    const launched = await sidecar.launch()
    await listening(sidecar.port, launched.child)
    return launched
  })
  const { url } = sidecar
  const [firstLogin, token] = await timed(() => askForToken(url))
  const login = { ...tokenRequest(), timeout: PATIENCE }
  const [logins, statuses] = await timed(() =>
    Promise.all(
      Array.from({ length: LOGINS }, async () => {
        const response = await requestOnce(`${url}/oauth/token`, login).catch(() => undefined)
        return response?.status
      }),
    ),
  )
  const peer = posternPeer()
  const headers = { Authorization: `Bearer ${token}` }
  const load = { connections: CONNECTIONS, until: { seconds: SECONDS }, core: undefined }
  const whole = await loadOf({ peer, running: { url, headers, children: [] } }, load)
  const { requestsPerSecond } = await autocannonGenerator.run(whole)
  await running.stop()
  return {
    start,
    firstLogin,
    logins,
    right: statuses.filter((each) => each === 200).length,
    requestsPerSecond,
  }
}

/** How long it took (s), and its result. */
async function timed<T>(run: () => Promise<T>): Promise<readonly [seconds: number, result: T]> {
  const begin = performance.now()
  const result = await run()
  return [(performance.now() - begin) / 1000, result]
}

/** The median, and the range. */
function span(values: Series, digits: number): string {
  const [least, most] = [Math.min(...values), Math.max(...values)].map((value) => fixed(value, digits))
  return `${fixed(medianOf(values), digits)} (${least} to ${most})`
}

await runProgram(main, 20 * 60_000)
