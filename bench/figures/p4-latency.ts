import { type Contestant, measure, startPeers, stopPeers } from '../contest/contest.ts'
import { latencyRow, PERCENTILES } from '../contest/row.ts'
import { DEVICE_BODY } from '../device.ts'
import type { Check, Figure } from '../figure.ts'
import { runSteadily, type SteadyReport } from '../load/steady.ts'
import { alternate, summarizePairs } from '../measure.ts'
import { nginxPeer } from '../peers/nginx.ts'
import { posternPeer } from '../peers/postern.ts'
import { say } from '../run-program.ts'

const PACE = 200

/** Thresholds (ms). */
const REACH = { p50: 0.2, p99: 1 } as const

/** A route to the device: direct, or through a proxy. */
interface Route {
  readonly name: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

export const latency: Figure = {
  id: 'P4',
  title: 'Latency added to a quiet client',
  about: `${PACE} requests/s on one connection, in turn directly to the device and through each proxy. The added latency is the difference of the percentiles within a round.`,
  async measure(lab) {
    const proxies = await startPeers(lab, [posternPeer({ program: lab.program }), nginxPeer], lab.device.port)
    for (const proxy of proxies) await warmUp(proxy, lab.warmUpSeconds, lab.otherCore)
    const direct: Route = {
      name: 'the device itself',
      url: `http://127.0.0.1:${lab.device.port}`,
      headers: {},
    }
    const routes = [direct, ...proxies.map(({ peer, running }): Route => ({ name: peer.name, ...running }))]
    const reports = await alternate(routes, lab.rounds, async ({ name, url, headers }, round) => {
      const load = { url, headers, rate: PACE, status: 200, body: DEVICE_BODY, address: '127.0.0.1' }
      const report = await runSteadily({ ...load, seconds: lab.seconds }, lab.otherCore)
      say(`  round ${round + 1}: ${name}: p50 ${report.p50.toFixed(3)} ms, p99 ${report.p99.toFixed(3)} ms`)
      return report
    })
    await stopPeers(proxies)

    const of = (name: string): readonly SteadyReport[] =>
      [...reports].find(([route]) => route.name === name)?.[1] ?? []
    const added = (name: string): Check[] =>
      (['p50', 'p99'] as const).map((percentile) => {
        const values = (route: string): number[] => of(route).map((report) => report[percentile])
        const difference = summarizePairs(values(name), values(direct.name), (a, b) => a - b)
        const ours = name === 'postern'
        return {
          id: ours ? `P4 ${percentile}` : `P4 ${percentile} ${name}`,
          what: `${percentile} added at ${PACE} requests/s`,
          unit: 'ms',
          better: 'less',
          ...(ours ? { reach: REACH[percentile] } : {}),
          value: difference?.median,
          range: difference?.range,
          comparable: 'never',
        }
      })
    return {
      // nginx too: it shows the cost of a hop on this machine.
      checks: proxies.flatMap(({ peer }) => added(peer.name)),
      charts: [
        {
          kind: 'bars',
          title: `Latency at ${PACE} requests per second`,
          unit: 'ms',
          series: PERCENTILES,
          rows: routes.map(({ name }) => latencyRow(name, name === 'postern', of(name))),
        },
      ],
      tables: [],
      notes: [],
      faults: routes.flatMap(({ name }) => {
        const failed = of(name).reduce((sum, report) => sum + report.failed, 0)
        return failed === 0 ? [] : [`${name}: ${failed} responses were wrong or missing`]
      }),
    }
  },
}

/** Loads the proxy so that V8 has compiled it before the measurement. */
async function warmUp(contestant: Contestant, seconds: number, core: number | undefined): Promise<void> {
  if (seconds === 0) return
  const expected = { status: 200, body: DEVICE_BODY, headBytes: 0 }
  await measure(contestant, { ...contestant.running, connections: 8, until: { seconds }, expected, core })
}
