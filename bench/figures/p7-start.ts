import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { outputOf } from '../child.ts'
import { fixed } from '../format.ts'
import type { Figure } from '../lab.ts'
import { alternate, checkOf, medianOf, ratioOf, summarize } from '../measure.ts'
import { requestOnce } from '../request.ts'
import { say } from '../run-program.ts'
import { askForToken, type PreparedSidecar, prepareSidecar } from '../sidecar.ts'

/** Starts in each round. */
const STARTS = 5

/** Milliseconds from the start of the process. */
const START_TIMEOUT = 20_000

export const start: Figure = {
  id: 'P7',
  title: 'Process start to the first 200',
  about:
    'Default configuration with TLS, a token that an earlier process issued, and a client that retries until a request reaches the device; beside `node -e 0`, which only starts Node and exits.',
  async measure(lab) {
    const device = `http://127.0.0.1:${lab.device.port}`
    const { program, proxyCore: core } = lab
    const set = ['limits.api.requests=1000']
    const sidecar = await prepareSidecar({ device, tls: true, set, core, program })
    const first = await sidecar.launch()
    await untilStatus(sidecar, 'none', 401)
    const token = await askForToken(sidecar.url)
    await first.stop()

    const faults: string[] = []
    const contestants = {
      async postern() {
        const begin = performance.now()
        const running = await sidecar.launch()
        await Promise.race([untilStatus(sidecar, token, 200), running.child.unexpectedExit])
        const took = performance.now() - begin
        faults.push(...(await running.stop()))
        return took
      },
      async node() {
        const begin = performance.now()
        await outputOf(process.execPath, ['-e', '0'], { core })
        return performance.now() - begin
      },
    }
    const names = ['postern', 'node'] as const
    const times = await alternate(names, lab.rounds * STARTS, async (name) => {
      const took = await contestants[name]()
      say(`  ${name}: ${took.toFixed(0)} ms`)
      return took
    })
    const [ours = [], bare = []] = names.map((name) => times.get(name))
    const what = 'start to first 200'
    return {
      checks: [
        checkOf('P7 ms', what, 'ms', summarize(ours), { reach: 350 }),
        ratioOf('P7 node', `${what}, as a multiple of \`node -e 0\``, ours, bare, { reach: 6 }),
      ],
      tables: [
        {
          caption: 'Time from starting the process, medians of all starts',
          head: ['program', 'ms'],
          rows: names.map((name) => [name, fixed(medianOf(times.get(name) ?? []), 1)]),
        },
      ],
      faults,
    }
  },
}

/** Repeats the request until the response has this status. A refused connection is known immediately. */
async function untilStatus({ url }: PreparedSidecar, token: string, wanted: number): Promise<void> {
  const headers = { Authorization: `Bearer ${token}` }
  for (const end = performance.now() + START_TIMEOUT; performance.now() < end; await pause(1)) {
    const { status } = await requestOnce(url, { headers }).catch(() => ({ status: 0 }))
    if (status === wanted) return
  }
  throw new Error(`no ${wanted} within ${START_TIMEOUT} ms`)
}
