import { setTimeout as pause } from 'node:timers/promises'
import { ask } from '../ask.ts'
import { DEVICE_BODY, startNodeDevice } from '../device.ts'
import type { Figure } from '../figure.ts'
import type { Lab } from '../lab.ts'
import type { LoadResult } from '../load/generator.ts'
import { runSteadily, type SteadyReport, WARM_UP } from '../load/steady.ts'
import { summarize } from '../measure.ts'
import { posternPeer } from '../peers/postern.ts'
import { say } from '../say.ts'
import { latencyRow, PERCENTILES } from './percentiles.ts'

const FLOODERS = 64

/** Requests per second of the client that keeps to its limit. */
const PACE = 200

/** The flood comes from 127.0.0.1. */
const OTHER_ADDRESS = '127.0.0.2'

/** By which the flood begins before the other client, and by about which it ends after it (ms). */
const HEAD_START = 1_000

export const shield: Figure = {
  id: 'P3',
  title: 'A flood does not touch the others',
  about: `${FLOODERS} connections of one client ask for more than their limit, as fast as they can; another client keeps to its own with ${PACE} requests/s. The flood gives way to that client on the core that both run on, so that what is measured is the sidecar and not their fight for it.`,
  async measure(lab) {
    const device = await startNodeDevice(lab.otherCore)
    const paced = PACE * (WARM_UP + lab.seconds)
    // Both clients have the same limit: enough for all rounds of the one, used up at once by the other.
    const limit = Math.ceil(2 * lab.rounds * paced)
    const set = [`limits.api.requests=${limit}`, 'limits.api.window=1d']
    const peer = posternPeer({ lifted: false, set, program: lab.program })
    const running = await peer.start({ devicePort: device.port, core: lab.proxyCore })
    const { url, headers } = running
    const client = { url, headers, rate: PACE, status: 200, body: DEVICE_BODY, address: OTHER_ADDRESS }

    const first = await flood(lab, running, { requests: limit + FLOODERS * 100 })
    const faults: string[] = []
    if (first.statuses.get(200) !== limit)
      faults.push(`${first.statuses.get(200)} of the flood passed instead of ${limit}`)

    const alone: SteadyReport[] = []
    const flooded: SteadyReport[] = []
    let refused = first.statuses.get(429) ?? 0
    for (let round = 0; round < lab.rounds; round += 1) {
      alone.push(await runSteadily({ ...client, seconds: lab.seconds }, lab.otherCore))
      const flooding = flood(lab, running, { seconds: WARM_UP + lab.seconds + (2 * HEAD_START) / 1000 })
      await pause(HEAD_START)
      flooded.push(await runSteadily({ ...client, seconds: lab.seconds }, lab.otherCore))
      const { statuses, failed } = await flooding
      refused += statuses.get(429) ?? 0
      if (failed > 0) faults.push(`${failed} answers to the flood were not 429`)
      say(
        `  round ${round + 1}: p99 ${flooded.at(-1)?.p99.toFixed(2)} ms, alone ${alone.at(-1)?.p99.toFixed(2)} ms`,
      )
    }
    const failures = [...alone, ...flooded].reduce((sum, { failed }) => sum + failed, 0)
    if (failures > 0) faults.push(`${failures} requests of the admitted client failed`)
    const admitted = limit + [...alone, ...flooded].reduce((sum, { answered }) => sum + answered, 0)
    const seen = Number((await ask(`http://127.0.0.1:${device.port}/seen`)).body)
    if (seen !== admitted) faults.push(`the device saw ${seen} requests, ${admitted} were admitted`)
    await Promise.all([...running.children, device.child].map((child) => child.stop()))

    const p99 = summarize(flooded.map((report) => report.p99))
    return {
      checks: [
        {
          id: 'P3 p99',
          what: `p99 of an admitted client while ${FLOODERS} connections flood`,
          unit: 'ms',
          better: 'less',
          reach: 5,
          value: p99?.median,
          range: p99?.range,
          comparable: 'never',
        },
      ],
      charts: [
        {
          kind: 'bars',
          title: 'Latency of the admitted client',
          unit: 'ms',
          series: PERCENTILES,
          rows: [latencyRow('alone', false, alone), latencyRow('during the flood', true, flooded)],
        },
      ],
      tables: [],
      notes: [`the flood got ${refused} refusals; the device saw ${seen} requests, all of them admitted`],
      faults,
    }
  },
}

interface Flooded {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

function flood(
  lab: Lab,
  { url, headers }: Flooded,
  until: { seconds: number } | { requests: number },
): Promise<LoadResult> {
  return lab.autocannon.run({
    url,
    headers,
    connections: FLOODERS,
    until,
    // By its status; what a 429 says is proved elsewhere.
    expected: { status: 429, body: '', headBytes: 0 },
    core: lab.otherCore,
    humble: true,
  })
}
