import { type Contestant, compete, startPeers, stopPeers } from '../contest/contest.ts'
import { busyNotes, latencyRow, PERCENTILES, type Row, rowFaults, rowsTable } from '../contest/row.ts'
import { DEVICE_BODY } from '../device.ts'
import type { Check, Figure, Table } from '../figure.ts'
import { fixed } from '../format.ts'
import { notInstalled } from '../growth/point.ts'
import type { Lab } from '../lab.ts'
import type { Generator } from '../load/generator.ts'
import { runSteadily, type SteadyReport } from '../load/steady.ts'
import { alternate, ratioOf, summarize, summarizePairs } from '../measure.ts'
import type { Peer } from '../peers/peer.ts'
import { posternPeer } from '../peers/postern.ts'
import { say } from '../run-program.ts'
import { sharing, type WindowsAt } from './fleet-sidecar.ts'
import { type Client, type Server, serverVersion, startServer } from './server.ts'
import { readCounters, type Usage, usageBetween } from './usage.ts'

/** Requests per second of the client whose latency is measured. */
const PACE = 200

const LOCAL = 'postern'
const NAMES: Readonly<Record<WindowsAt, string>> = {
  local: 'shared tokens',
  shared: 'shared tokens and windows',
}

/** Commands per request: below the first no request asks the store, above the second each does (many share a question). */
const NO_QUESTION = 0.01
const COUNTED = 0.001

/** What the sidecars ask on their own: commands per second. Each follows the revocations, and reads the state now and then. */
const OWN_QUESTIONS = 4

/** What a request of one run cost the server, and the length of the run (seconds). */
export interface RunUsage extends Usage {
  readonly requests: number
  readonly seconds: number
}

export const requestCost: Figure = {
  id: 'F1',
  title: 'What sharing costs a request',
  about: `A sidecar with a local store, one that shares its tokens, and one that shares its windows, too, in turn. The redis-server shares the core of the device and the load. Then the latency at ${PACE} requests/s on one connection.`,
  async measure(lab) {
    const version = await serverVersion()
    if (version === undefined) return notInstalled('redis-server')
    const server = await startServer(lab.otherCore)
    const usages = new Map<string, RunUsage[]>()
    const contestants = (await startPeers(lab, peers(lab, server), lab.device.port)).map((contestant) => ({
      ...contestant,
      generator: counting(contestant, server.client, usages),
    }))
    const rows = await compete(lab, contestants, { status: 200, body: DEVICE_BODY })
    const reports = await alternate(contestants, lab.rounds, async ({ peer, running }, round) => {
      const load = { ...running, rate: PACE, status: 200, body: DEVICE_BODY, address: '127.0.0.1' }
      const report = await runSteadily({ ...load, seconds: lab.seconds }, lab.otherCore)
      say(`  round ${round + 1}: ${peer.name}: p50 ${report.p50.toFixed(3)} ms`)
      return report
    })
    await stopPeers(contestants)
    await server.stop()

    const latencies = new Map([...reports].map(([{ peer }, of]) => [peer.name, of]))
    return {
      checks: [
        ...costChecks(rows),
        ...Object.values(NAMES).flatMap((name) => latencyChecks(name, latencies)),
      ],
      charts: [
        {
          kind: 'bars',
          title: `Latency at ${PACE} requests per second`,
          unit: 'ms',
          series: PERCENTILES,
          rows: [...latencies].map(([name, of]) => latencyRow(name, name === LOCAL, of)),
        },
      ],
      tables: [
        rowsTable('Requests per second, 64 connections, beside a sidecar with a local store', rows),
        latencyTable(latencies),
        serverTable(usages, lab.rounds),
      ],
      notes: [`redis-server ${version}`, ...busyNotes(rows)],
      faults: [...rowFaults(rows), ...questionFaults(usages)],
    }
  },
}

function peers({ program }: Lab, server: Server): Peer[] {
  const windows = Object.entries(NAMES) as [WindowsAt, string][] // of a record with these keys
  return [
    posternPeer({ program }),
    ...windows.map(([at, name]): Peer => {
      const set = sharing(server, `f1-${at}`, at)
      return { ...posternPeer({ program, set }), name, does: 'the same' }
    }),
  ]
}

/** The same generator. It also notes what each request of a run cost the server. */
function counting(
  { peer, generator }: Contestant,
  client: Client,
  usages: Map<string, RunUsage[]>,
): Generator {
  return {
    ...generator,
    async run(load) {
      const before = await readCounters(client)
      const begin = performance.now()
      const result = await generator.run(load)
      const seconds = (performance.now() - begin) / 1000
      const requests = Math.max(1, result.requests)
      const usage = usageBetween(before, await readCounters(client), requests)
      usages.set(peer.name, [...(usages.get(peer.name) ?? []), { ...usage, requests, seconds }])
      return result
    },
  }
}

function costChecks(rows: readonly Row[]): Check[] {
  const costs = (name: string): (number | undefined)[] =>
    rows.find((row) => row.name === name)?.samples.map(({ cpuPerRequest }) => cpuPerRequest) ?? []
  const check = (at: WindowsAt, what: string, reach?: number): Check =>
    ratioOf(costs(NAMES[at]), costs(LOCAL), { id: `F1 ${at} windows`, what, better: 'less', reach })
  return [
    check('local', 'processor time of a request with shared tokens, beside a local store', 1.1),
    check('shared', 'the same with shared windows, too'),
  ]
}

function latencyChecks(name: string, latencies: ReadonlyMap<string, readonly SteadyReport[]>): Check[] {
  return (['p50', 'p99'] as const).map((percentile): Check => {
    const values = (of: string): number[] => latencies.get(of)?.map((report) => report[percentile]) ?? []
    const added = summarizePairs(values(name), values(LOCAL), (ours, local) => ours - local)
    return {
      id: `F1 ${percentile} ${name}`,
      what: `${percentile} at ${PACE} requests/s that it adds to a local store`,
      unit: 'ms',
      better: 'less',
      value: added?.median,
      range: added?.range,
      comparable: 'never',
    }
  })
}

function latencyTable(latencies: ReadonlyMap<string, readonly SteadyReport[]>): Table {
  return {
    caption: `Latency at ${PACE} requests per second (ms)`,
    head: ['sidecar', ...PERCENTILES],
    rows: [...latencies].map(([name, of]) => [
      name,
      ...latencyRow(name, false, of).values.map((value) => fixed(value, 3)),
    ]),
  }
}

/** What a request of the load cost the server. The warm-up came before the rounds. */
function serverTable(usages: ReadonlyMap<string, readonly RunUsage[]>, rounds: number): Table {
  const median = (of: readonly Usage[], measure: keyof Usage): number | undefined =>
    summarize(of.slice(-rounds).map((usage) => usage[measure]))?.median
  return {
    caption:
      'What a request of this load costs the redis-server: requests that come together share a command',
    head: ['sidecar', 'µs', 'commands', 'bytes received', 'bytes sent'],
    rows: [...usages]
      .filter(([name]) => name !== LOCAL)
      .map(([name, of]) => [
        name,
        fixed(median(of, 'processor'), 2),
        fixed(median(of, 'commands'), 4),
        fixed(median(of, 'received'), 1),
        fixed(median(of, 'sent'), 1),
      ]),
  }
}

/**
 * An admitted request must not ask the store for its token, and must be counted there if the windows are shared. On a busy machine
 * few requests come beside what the sidecars ask on their own.
 */
export function questionFaults(usages: ReadonlyMap<string, readonly RunUsage[]>): string[] {
  const asked = ({ commands, requests, seconds }: RunUsage): number =>
    commands - (OWN_QUESTIONS * seconds) / requests
  const most = (name: string, of: (usage: RunUsage) => number): number =>
    Math.max(...(usages.get(name) ?? []).map(of))
  return [
    ...(most(NAMES.local, asked) > NO_QUESTION
      ? [`${NAMES.local}: admitted requests asked the shared store`]
      : []),
    ...(most(NAMES.shared, ({ commands }) => commands) < COUNTED
      ? [`${NAMES.shared}: requests were not counted in the shared store`]
      : []),
  ]
}
