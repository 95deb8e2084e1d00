import { type Contestant, compete, startPeers } from '../contest/contest.ts'
import { besideCheck, busyNotes, latencyTable, OURS, rowFaults, rowsTable } from '../contest/row.ts'
import { DEVICE_BODY } from '../device.ts'
import type { Check, Table } from '../figure.ts'
import { fixed } from '../format.ts'
import { type Figure, notInstalled } from '../lab.ts'
import type { Generator } from '../load/generator.ts'
import { runSteadily } from '../load/steady.ts'
import { alternate, checkOf, medianOf, summarizePairs } from '../measure.ts'
import type { Peer } from '../peers/peer.ts'
import { posternPeer } from '../peers/postern.ts'
import { say } from '../run-program.ts'
import { type Client, serverVersion, sharing, startServer, type WindowsAt } from './server.ts'
import { readCounters, type Usage, usageBetween } from './usage.ts'

/** Requests per second of the client whose latency is measured. */
const PACE = 200

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
    const ours = posternPeer({ program: lab.program })
    const sharers = (['local', 'shared'] as const).map((at): Peer => {
      const set = sharing(server, `f1-${at}`, at)
      return { ...posternPeer({ program: lab.program, set }), name: NAMES[at], does: 'the same' }
    })
    const contestants = (await startPeers(lab, [ours, ...sharers])).map((contestant) => {
      return { ...contestant, generator: counting(contestant, server.client, usages) }
    })
    const rows = await compete(lab, contestants)
    const reports = await alternate(contestants, lab.rounds, async ({ peer, running }, round) => {
      const { url, headers } = running
      const load = { url, headers, rate: PACE, body: DEVICE_BODY, address: '127.0.0.1', seconds: lab.seconds }
      const report = await runSteadily(load, lab.otherCore)
      say(`  round ${round + 1}: ${peer.name}: p50 ${report.p50.toFixed(3)} ms`)
      return report
    })

    const costCheck = (at: WindowsAt, reach?: number): Check => {
      const what = `processor time of a request with ${NAMES[at]}, beside a local store`
      return besideCheck(rows, [NAMES[at], OURS], { id: `F1 ${at} windows`, what, reach })
    }
    const what = `p50 at ${PACE} requests/s that it adds to a local store`
    const p50 = (of: string): number[] =>
      [...reports].flatMap(([{ peer }, taken]) => (peer.name === of ? taken.map((report) => report.p50) : []))
    return {
      checks: [
        costCheck('local', 1.1),
        costCheck('shared'),
        ...Object.values(NAMES).map((name) => {
          const added = summarizePairs(p50(name), p50(OURS), (shared, local) => shared - local)
          return checkOf(`F1 p50 ${name}`, what, 'ms', added)
        }),
      ],
      tables: [
        rowsTable('Requests per second, 64 connections, beside a sidecar with a local store', rows),
        serverTable(usages, lab.rounds),
        latencyTable(
          `Latency at ${PACE} requests per second`,
          [...reports].map(([{ peer }, of]) => [peer.name, of]),
        ),
      ],
      notes: [`redis-server ${version}`, ...busyNotes(rows)],
      faults: [...rowFaults(rows), ...questionFaults(usages)],
    }
  },
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

/** What a request of the load cost the server. The warm-up came before the rounds. */
function serverTable(usages: ReadonlyMap<string, readonly RunUsage[]>, rounds: number): Table {
  const caption =
    'What a request of this load costs the redis-server: requests that come together share a command'
  return {
    caption,
    head: ['sidecar', 'µs', 'commands', 'bytes received', 'bytes sent'],
    rows: Object.values(NAMES).map((name) => [
      name,
      ...(['processor', 'commands', 'received', 'sent'] as const).map((measure) =>
        fixed(medianOf((usages.get(name) ?? []).slice(-rounds).map((usage) => usage[measure])), 4),
      ),
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
  const { local, shared } = NAMES
  return [
    ...(most(local, asked) > NO_QUESTION ? [`${local}: admitted requests asked the shared store`] : []),
    ...(most(shared, ({ commands }) => commands) < COUNTED
      ? [`${shared}: requests were not counted in the shared store`]
      : []),
  ]
}
