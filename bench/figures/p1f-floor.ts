import { CONNECTIONS, type Contestant, compete, startPeers, stopPeers } from '../contest/contest.ts'
import { busyNotes, type Row, rowFaults } from '../contest/row.ts'
import { DEVICE_BODY } from '../device.ts'
import type { Check, Figure, Table } from '../figure.ts'
import { CAPABILITIES } from '../floor/capabilities.ts'
import { fixed, percent } from '../format.ts'
import type { Lab } from '../lab.ts'
import type { Generator } from '../load/generator.ts'
import { STREAMS } from '../load/h2load.ts'
import { ratioOf, type Summary, summarize } from '../measure.ts'
import { floorPeer, relayPeer } from '../peers/floor.ts'
import type { Peer } from '../peers/peer.ts'
import { posternPeer } from '../peers/postern.ts'

const HTTP2_CONNECTIONS = 32

/** Multiple of the usual warm-up. Over HTTP/2, V8 optimizes for about 100,000 requests; until then the floor costs twice. */
const HTTP2_WARM_UP = 3

export const floor: Figure = {
  id: 'P1f',
  title: 'Processor time beside the floor',
  about: `The floor reads both heads as text, hashes and looks up the token, counts the request, rewrites fields and keeps connections to the device. It does nothing else. The ratio is the cost of the rest of Postern: over HTTP/1.1 and TLS with ${CONNECTIONS} connections, over HTTP/2 with ${HTTP2_CONNECTIONS} connections of ${STREAMS} streams each. --floor adds the capabilities of Postern to the floor one by one.`,
  async measure(lab) {
    const plain = await contest(lab, false, [
      { generator: lab.wrk ?? lab.autocannon, connections: CONNECTIONS },
    ])
    const secure = await contest(lab, true, [
      { generator: lab.wrk ?? lab.autocannon, connections: CONNECTIONS },
      { generator: lab.h2load, connections: HTTP2_CONNECTIONS, warmUp: HTTP2_WARM_UP },
    ])
    const [http1 = [], tls = [], http2 = []] = [...plain, ...secure]
    const all = [http1, tls, http2]
    return {
      checks: [
        ratioToFloor('P1f HTTP/1.1', 'HTTP/1.1', http1, 1.4),
        ratioToFloor('P1f TLS', 'HTTP/1.1 over TLS', tls, 1.4),
        ratioToFloor('P1f HTTP/2', 'HTTP/2', http2, 1.35),
      ],
      charts: [],
      tables: [costTable('HTTP/1.1', http1), costTable('HTTP/1.1 over TLS', tls), costTable('HTTP/2', http2)],
      notes: all.flatMap(busyNotes),
      faults: all.flatMap(rowFaults),
    }
  },
}

interface Loading {
  /** Undefined if it is not installed. */
  readonly generator: Generator | undefined
  readonly connections: number
  /** Multiple of the usual warm-up. */
  readonly warmUp?: number
}

/** Runs one load after the other against the same processes. Returns the rows of each load. */
async function contest(lab: Lab, tls: boolean, loads: readonly Loading[]): Promise<Row[][]> {
  const started = await startPeers(lab, peersOf(lab, tls), lab.device.port)
  const results: Row[][] = []
  for (const { generator, connections, warmUp = 1 } of loads) {
    const patient = { ...lab, warmUpSeconds: lab.warmUpSeconds * warmUp }
    const under = (contestant: Contestant, by: Generator): Contestant => ({ ...contestant, generator: by })
    const contestants =
      generator === undefined ? [] : started.map((contestant) => under(contestant, generator))
    results.push(await compete(patient, contestants, { status: 200, body: DEVICE_BODY, connections }))
  }
  await stopPeers(started)
  return results
}

function peersOf({ program, everyCapability }: Lab, tls: boolean): Peer[] {
  const steps = everyCapability ? CAPABILITIES.length : 0
  return [
    ...(tls ? [] : [relayPeer(program)]),
    ...Array.from({ length: steps + 1 }, (_, count) =>
      floorPeer({ tls, capabilities: CAPABILITIES.slice(0, count), program }),
    ),
    posternPeer({ tls, set: [`upstream.max_in_flight=${HTTP2_CONNECTIONS * STREAMS}`], program }),
  ]
}

/** Processor time per request of Postern as a multiple of that of the floor, round by round. */
export function ratioToFloor(id: string, protocol: string, rows: readonly Row[], reach: number): Check {
  const what = `multiple of the processor time of the floor, ${protocol}`
  return ratioOf(costsOf(rows, 'postern'), costsOf(rows, 'floor'), { id, what, better: 'less', reach })
}

function costsOf(rows: readonly Row[], name: string): (number | undefined)[] {
  const row = rows.find((candidate) => candidate.name === name)
  return row?.samples.map(({ cpuPerRequest }) => cpuPerRequest) ?? []
}

/** The cost of each row, its difference to the row above, and its ratio to the floor. */
export function costTable(caption: string, rows: readonly Row[]): Table {
  const costs = rows.map(({ name }) => summarize(costsOf(rows, name)))
  const base = costs[rows.findIndex(({ name }) => name === 'floor')]
  return {
    caption: `${caption}: processor time per request`,
    head: ['program', 'does besides', 'load', 'CPU µs/req', '±', 'adds µs', '× floor', 'busy'],
    rows: rows.map(({ name, does, generator, samples }, i) => {
      const cost = costs[i]
      return [
        name,
        does,
        generator,
        fixed(cost?.median, 1),
        percent(spreadOf(cost)),
        fixed(difference(cost, costs[i - 1]), 1),
        fixed(cost && base && cost.median / base.median, 2),
        percent(summarize(samples.map(({ busy }) => busy))?.median),
      ]
    }),
  }
}

function spreadOf(cost: Summary | undefined): number | undefined {
  return cost && (cost.range[1] - cost.range[0]) / 2 / cost.median
}

function difference(cost: Summary | undefined, before: Summary | undefined): number | undefined {
  return cost && before && cost.median - before.median
}
