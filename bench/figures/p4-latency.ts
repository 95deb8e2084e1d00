import { loadOf, measure, startPeers } from '../contest/contest.ts'
import { failedFault, latencyTable, OURS } from '../contest/row.ts'
import { DEVICE_BODY } from '../device.ts'
import type { Figure } from '../lab.ts'
import { runSteadily } from '../load/steady.ts'
import { alternate, checkOf, ratioOf, summarize } from '../measure.ts'
import { floorPeer } from '../peers/floor.ts'
import { nginxPeer } from '../peers/nginx.ts'
import { posternPeer } from '../peers/postern.ts'
import { say } from '../run-program.ts'

const PACE = 200

/** A round is cut into so many: the machine changes its pace between two turns, by more than a proxy adds. */
const SLICES = 5

const DIRECT = 'the device itself'

export const latency: Figure = {
  id: 'P4',
  title: 'Latency added to a quiet client',
  about: `${PACE} requests/s on one connection, in short turns directly to the device and through each proxy: nginx, Postern, and the floor of P1f, which shows what Node.js itself adds. The added latency is the difference of the percentiles within a round.`,
  async measure(lab) {
    const peers = [posternPeer({ program: lab.program }), floorPeer(false, undefined, lab.program), nginxPeer]
    const proxies = await startPeers(lab, peers)
    for (const proxy of proxies) {
      // V8 compiles the proxy before the measurement.
      const until = { seconds: Math.max(1, lab.warmUpSeconds) }
      await measure(proxy, await loadOf(proxy, { connections: 8, until, core: lab.otherCore }))
    }
    const direct = { name: DIRECT, url: `http://127.0.0.1:${lab.device.port}`, headers: {} }
    const routes = [direct, ...proxies.map(({ peer, running }) => ({ name: peer.name, ...running }))]
    const seconds = lab.seconds / SLICES
    const reports = await alternate(routes, lab.rounds * SLICES, async ({ name, url, headers }, round) => {
      const load = { url, headers, rate: PACE, body: DEVICE_BODY, address: '127.0.0.1' }
      const report = await runSteadily({ ...load, seconds }, lab.otherCore)
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
          reach: 1.5,
          comparable: 'never',
        }),
        ratioOf(
          'P4 p50 beside the floor',
          `${what('p50', OURS)}, as a multiple of what the floor adds`,
          added(OURS, 'p50'),
          added('floor', 'p50'),
        ),
        ratioOf(
          'P4 p50 floor beside nginx',
          `${what('p50', 'the floor')}, as a multiple of what nginx adds`,
          added('floor', 'p50'),
          added('nginx', 'p50'),
        ),
        checkOf('P4 p99', what('p99', OURS), 'ms', summarize(added(OURS, 'p99')), { reach: 1 }),
        ...([OURS, 'floor', 'nginx'] as const).map((name) =>
          checkOf(`P4 p50 ${name}`, what('p50', name), 'ms', summarize(added(name, 'p50'))),
        ),
        checkOf('P4 p99 nginx', what('p99', 'nginx'), 'ms', summarize(added('nginx', 'p99'))),
      ],
      tables: [latencyTable(`Latency at ${PACE} requests per second`, named)],
      faults: [...named].flatMap(([name, of]) => failedFault(name, of)),
    }
  },
}
