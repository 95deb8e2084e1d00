import { loadOf, measure, startPeers } from '../contest/contest.ts'
import { failedFault, latencyTable, OURS } from '../contest/row.ts'
import { DEVICE_BODY } from '../device.ts'
import type { Figure } from '../lab.ts'
import { runSteadily } from '../load/steady.ts'
import { alternate, checkOf, ratioOf, summarize } from '../measure.ts'
import { nginxPeer } from '../peers/nginx.ts'
import { posternPeer } from '../peers/postern.ts'
import { say } from '../run-program.ts'

const PACE = 200

const DIRECT = 'the device itself'

export const latency: Figure = {
  id: 'P4',
  title: 'Latency added to a quiet client',
  about: `${PACE} requests/s on one connection, in turn directly to the device and through each proxy. The added latency is the difference of the percentiles within a round.`,
  async measure(lab) {
    const proxies = await startPeers(lab, [posternPeer({ program: lab.program }), nginxPeer])
    for (const proxy of proxies) {
      // V8 compiles the proxy before the measurement.
      const until = { seconds: Math.max(1, lab.warmUpSeconds) }
      await measure(proxy, await loadOf(proxy, { connections: 8, until, core: lab.otherCore }))
    }
    const direct = { name: DIRECT, url: `http://127.0.0.1:${lab.device.port}`, headers: {} }
    const routes = [direct, ...proxies.map(({ peer, running }) => ({ name: peer.name, ...running }))]
    const reports = await alternate(routes, lab.rounds, async ({ name, url, headers }, round) => {
      const load = { url, headers, rate: PACE, body: DEVICE_BODY, address: '127.0.0.1' }
      const report = await runSteadily({ ...load, seconds: lab.seconds }, lab.otherCore)
      say(`  round ${round + 1}: ${name}: p50 ${report.p50.toFixed(3)} ms, p99 ${report.p99.toFixed(3)} ms`)
      return report
    })

    const named = new Map([...reports].map(([{ name }, of]) => [name, of]))
    const added = (name: string, percentile: 'p50' | 'p99'): number[] =>
      (named.get(name) ?? []).map((report, round) => {
        return report[percentile] - (named.get(DIRECT)?.[round]?.[percentile] ?? Number.NaN)
      })
    const what = (percentile: string, name: string): string =>
      `${percentile} that ${name} adds at ${PACE} requests/s`
    const beside = `${what('p50', OURS)}, as a multiple of what nginx adds`
    return {
      checks: [
        ratioOf('P4 p50', beside, added(OURS, 'p50'), added('nginx', 'p50'), {
          reach: 1.15,
          comparable: 'never',
        }),
        checkOf('P4 p99', what('p99', OURS), 'ms', summarize(added(OURS, 'p99')), { reach: 1 }),
        ...([OURS, 'nginx'] as const).map((name) =>
          checkOf(`P4 p50 ${name}`, what('p50', name), 'ms', summarize(added(name, 'p50'))),
        ),
        checkOf('P4 p99 nginx', what('p99', 'nginx'), 'ms', summarize(added('nginx', 'p99'))),
      ],
      tables: [latencyTable(`Latency at ${PACE} requests per second`, named)],
      faults: [...named].flatMap(([name, of]) => failedFault(name, of)),
    }
  },
}
