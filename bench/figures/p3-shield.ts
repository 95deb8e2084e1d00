import { setTimeout as pause } from 'node:timers/promises'
import { failedFault, latencyTable } from '../contest/row.ts'
import { DEVICE_BODY, startNodeDevice } from '../device.ts'
import { fixed } from '../format.ts'
import type { Figure, Lab } from '../lab.ts'
import type { Load, LoadResult } from '../load/generator.ts'
import { runSteadily, type SteadyReport, WARM_UP } from '../load/steady.ts'
import { checkOf, ratioOf, summarize } from '../measure.ts'
import type { RunningPeer } from '../peers/peer.ts'
import { posternPeer } from '../peers/postern.ts'
import { requestOnce } from '../request.ts'
import { say } from '../run-program.ts'
import { measureAttacks } from './hostile-clients.ts'

const FLOODERS = 64

/** Requests per second of the client that stays within its limit. */
const PACE = 200

/** The flood comes from 127.0.0.1. */
const OTHER_ADDRESS = '127.0.0.2'

/** The flood begins this long before the other client, and ends about this long after it (ms). */
const HEAD_START = 1_000

export const shield: Figure = {
  id: 'P3',
  title: 'A flood does not slow other clients',
  about: `${FLOODERS} connections of one client send requests past their limit, as fast as they can; another client stays within its own limit with ${PACE} requests/s. Both run on one core, where the flood has idle priority: the figure measures the sidecar, not the competition for the core. Then clients of one address each do what keeps a server busy: another client and a health check ask beside them, because what is done for one client in a turn of the event loop is bounded.`,
  async measure(lab) {
    const device = await startNodeDevice(lab.otherCore)
    const paced = PACE * (WARM_UP + lab.seconds)
    // Both clients have the same limit: enough for all rounds of one client; the flood uses it up first.
    const limit = Math.ceil(2 * lab.rounds * paced)
    const set = [`limits.api.requests=${limit}`, 'limits.api.window=1d']
    const peer = posternPeer({ lifted: false, set, program: lab.program })
    const running = await peer.start({ devicePort: device.port, core: lab.proxyCore })
    const { url, headers } = running
    const client = { url, headers, rate: PACE, body: DEVICE_BODY, address: OTHER_ADDRESS }

    const first = await flood(lab, running, { requests: limit + FLOODERS * 100 })
    const faults: string[] = []
    if (first.statuses?.[200] !== limit)
      faults.push(`${first.statuses?.[200]} of the flood passed instead of ${limit}`)

    const alone: SteadyReport[] = []
    const flooded: SteadyReport[] = []
    let refused = first.statuses?.[429] ?? 0
    for (let round = 0; round < lab.rounds; round += 1) {
      const quiet = await runSteadily({ ...client, seconds: lab.seconds }, lab.otherCore)
      const flooding = flood(lab, running, { seconds: WARM_UP + lab.seconds + (2 * HEAD_START) / 1000 })
      await pause(HEAD_START)
      const during = await runSteadily({ ...client, seconds: lab.seconds }, lab.otherCore)
      const { statuses, failed } = await flooding
      refused += statuses?.[429] ?? 0
      if (failed > 0) faults.push(`${failed} responses to the flood were not 429`)
      say(`  round ${round + 1}: p99 ${fixed(during.p99, 2)} ms, alone ${fixed(quiet.p99, 2)} ms`)
      alone.push(quiet)
      flooded.push(during)
    }
    const all = [...alone, ...flooded]
    faults.push(...failedFault('the admitted client', all))
    const admitted = limit + all.reduce((sum, { answered }) => sum + answered, 0)
    const seen = Number((await requestOnce(`http://127.0.0.1:${device.port}/seen`)).body)
    if (seen !== admitted) faults.push(`the device saw ${seen} requests, ${admitted} were admitted`)

    const p99 = (reports: readonly SteadyReport[]): number[] => reports.map((report) => report.p99)
    const attacks = await measureAttacks(lab, device)
    const what = `p99 of an admitted client while ${FLOODERS} connections flood`
    return {
      checks: [
        checkOf('P3 p99', what, 'ms', summarize(p99(flooded)), { reach: 2.5 }),
        ratioOf('P3 alone', `${what}, as a multiple of its p99 alone`, p99(flooded), p99(alone), {
          reach: 1.3,
          comparable: 'never',
        }),
        ...(attacks.checks ?? []),
      ],
      tables: [
        latencyTable('Latency of the admitted client', [
          ['alone', alone],
          ['during the flood', flooded],
        ]),
        ...(attacks.tables ?? []),
      ],
      notes: [`the flood got ${refused} refusals; the device saw ${seen} requests, all of them admitted`],
      faults: [...faults, ...(attacks.faults ?? [])],
    }
  },
}

function flood(lab: Lab, { url, headers }: RunningPeer, until: Load['until']): Promise<LoadResult> {
  return lab.autocannon.run({
    url,
    headers,
    connections: FLOODERS,
    until,
    // Checks the status only: the proof of the limits checks the rest of a 429.
    expected: { status: 429, body: '', headBytes: 0 },
    core: lab.otherCore,
    idlePriority: true,
  })
}
