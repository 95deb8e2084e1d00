import { CONNECTIONS, competeInTurn, type Loading, loadingsOf, startPeers } from '../contest/contest.ts'
import { besideCheck, busyNotes, OURS, type Row, rowFaults, seriesOf, spreadOf } from '../contest/row.ts'
import type { Check, Table } from '../figure.ts'
import { CAPABILITIES } from '../floor/capabilities.ts'
import { fixed, percent } from '../format.ts'
import type { Figure, Lab } from '../lab.ts'
import { HTTP2_CONNECTIONS, STREAMS } from '../load/h2load.ts'
import { medianOf } from '../measure.ts'
import { floorPeer } from '../peers/floor.ts'
import type { Peer } from '../peers/peer.ts'
import { posternPeer } from '../peers/postern.ts'
import { cleaningUp } from '../run-program.ts'

export const floor: Figure = {
  id: 'P1f',
  title: 'Processor time beside the floor',
  about: `The floor reads both heads as text, hashes and looks up the token, counts the request, rewrites fields and keeps connections to the device. It does nothing else. The ratio is the cost of the rest of Postern: over HTTP/1.1 and TLS with ${CONNECTIONS} connections, over HTTP/2 with ${HTTP2_CONNECTIONS} connections of ${STREAMS} streams each, each program started anew for each round. --floor adds the capabilities of Postern to the floor one by one.`,
  async measure(lab) {
    const starts: Row[][][] = []
    for (let round = 0; round < lab.rounds; round += 1)
      starts.push(await cleaningUp(() => oneStart({ ...lab, rounds: 1 })))
    const [http1 = [], tls = [], http2 = []] = joined(starts)
    const all = [http1, tls, http2]
    return {
      checks: [
        ratioToFloor('P1f HTTP/1.1', 'HTTP/1.1', http1, 1.28),
        ratioToFloor('P1f TLS', 'HTTP/1.1 over TLS', tls, 1.25),
        ratioToFloor('P1f HTTP/2', 'HTTP/2', http2, 1.28),
      ],
      tables: [costTable('HTTP/1.1', http1), costTable('HTTP/1.1 over TLS', tls), costTable('HTTP/2', http2)],
      notes: all.flatMap(busyNotes),
      faults: all.flatMap(rowFaults),
    }
  },
}

/** One round of every load, by programs that were started for it: two starts of the same program may differ by 5 %. */
async function oneStart(lab: Lab): Promise<Row[][]> {
  const { http1, http2 } = loadingsOf(lab)
  const contest = async (tls: boolean, loads: readonly Loading[]): Promise<Row[][]> =>
    competeInTurn(lab, await startPeers(lab, peersOf(lab, tls)), loads)
  const cleartext = await cleaningUp(() => contest(false, [http1]))
  return [...cleartext, ...(await contest(true, [http1, http2]))]
}

/** The rows of each load, with the samples of all starts. */
function joined(starts: readonly Row[][][]): Row[][] {
  const [first = []] = starts
  return first.map((rows, load) =>
    rows.map((row, at) => ({ ...row, samples: starts.flatMap((start) => start[load]?.[at]?.samples ?? []) })),
  )
}

function peersOf({ program, everyCapability }: Lab, tls: boolean): Peer[] {
  const steps = everyCapability ? CAPABILITIES.length : 0
  return [
    ...Array.from({ length: steps + 1 }, (_, count) => floorPeer(tls, CAPABILITIES[count - 1], program)),
    posternPeer({ tls, set: [`upstream.max_in_flight=${HTTP2_CONNECTIONS * STREAMS}`], program }),
  ]
}

/** Processor time per request of Postern as a multiple of that of the floor, round by round. */
export function ratioToFloor(id: string, protocol: string, rows: readonly Row[], reach: number): Check {
  const what = `multiple of the processor time of the floor, ${protocol}`
  return besideCheck(rows, [OURS, 'floor'], { id, what, reach })
}

/** The cost of each row, its difference to the row above, and its ratio to the floor. */
export function costTable(caption: string, rows: readonly Row[]): Table {
  const rounds = rows.map(({ name }) => seriesOf(rows, name, 'cpuPerRequest'))
  const costs = rounds.map(medianOf)
  const base = medianOf(seriesOf(rows, 'floor', 'cpuPerRequest'))
  return {
    caption: `${caption}: processor time per request`,
    head: ['program', 'does besides', 'load', 'CPU µs/req', '±', 'adds µs', '× floor', 'busy'],
    rows: rows.map(({ name, does, generator, samples }, i) => {
      const [cost = Number.NaN, above = Number.NaN] = [costs[i], costs[i - 1]]
      return [
        name,
        does,
        generator,
        fixed(cost, 1),
        percent(spreadOf(rounds[i] ?? [])),
        fixed(cost - above, 1),
        fixed(cost / base, 2),
        percent(medianOf(samples.map(({ busy }) => busy))),
      ]
    }),
  }
}
