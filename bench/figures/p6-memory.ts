import { setTimeout as pause } from 'node:timers/promises'
import { CONNECTIONS, startPeers, stopPeers } from '../contest/contest.ts'
import { DEVICE_BODY } from '../device.ts'
import type { Check, Figure, Line } from '../figure.ts'
import type { Lab } from '../lab.ts'
import { alternate, ratioOf, summarize } from '../measure.ts'
import { fixedResponsePeer } from '../peers/node-peers.ts'
import type { Peer } from '../peers/peer.ts'
import { posternPeer } from '../peers/postern.ts'
import { MEBIBYTE, type MemoryRecord, residentMemory, watchMemory } from '../process-usage.ts'
import { requestOnce } from '../request.ts'
import { say } from '../run-program.ts'

const REQUESTS = 1_000_000

/** Pause after the start and after the load, so that deferred work finishes (ms). */
const SETTLE_TIME = 3_000

/** The response of the bare server, as large as that of the device. */
const FIXED_RESPONSE = {
  status: 200,
  fields: ['Content-Type', 'application/json', 'Content-Length', String(DEVICE_BODY.length)],
  body: DEVICE_BODY,
}

/** Resident memory of a server in one round (bytes). */
interface MemoryRun extends MemoryRecord {
  readonly idle: number | undefined
  readonly after: number | undefined
  readonly failed: number
}

export const memory: Figure = {
  id: 'P6',
  title: 'Memory',
  about:
    'Resident memory when idle, and after a million requests over 64 connections, beside a bare node:http server with the same flags after the same load; both are restarted for each round.',
  async measure(lab) {
    const requests = Math.round(REQUESTS * lab.part)
    const [ours, bare] = [
      posternPeer({ program: lab.program }),
      fixedResponsePeer(FIXED_RESPONSE, lab.program),
    ]
    const runs = await alternate([ours, bare], lab.rounds, (peer) => runLoad(lab, peer, requests))
    const runsOf = (peer: Peer): readonly MemoryRun[] => runs.get(peer) ?? []
    const check = (id: string, what: string, when: 'idle' | 'after', reach: number): Check => {
      const [own, theirs] = [ours, bare].map((peer) => runsOf(peer).map((run) => run[when]))
      return ratioOf(own ?? [], theirs ?? [], {
        id,
        what: `${what}, of bare node:http`,
        better: 'less',
        reach,
      })
    }
    const series = (peer: Peer): Line => ({
      name: peer.name,
      ours: peer === ours,
      points: runsOf(peer).at(-1)?.points ?? [],
    })
    const row = (peer: Peer): string[] =>
      (['idle', 'peak', 'after'] as const).map((when) =>
        mebibytes(summarize(runsOf(peer).map((run) => run[when]))?.median),
      )
    return {
      checks: [
        check('P6 idle', 'memory when idle', 'idle', 1.15),
        check('P6 after', `memory after ${requests.toLocaleString('en')} requests`, 'after', 1.3),
      ],
      charts: [
        {
          kind: 'lines',
          title: `Resident memory during ${requests.toLocaleString('en')} requests, in the last round`,
          x: { label: 'seconds', scale: 'linear' },
          y: { label: 'MiB', scale: 'linear' },
          series: [series(ours), series(bare)],
        },
      ],
      tables: [
        {
          caption: 'Resident memory (MiB), medians of the rounds',
          head: ['server', 'idle', 'peak', 'after'],
          rows: [ours, bare].map((peer) => [peer.name, ...row(peer)]),
        },
      ],
      notes: requests < REQUESTS ? [`${requests} requests, not a million: this was a quick run`] : [],
      faults: [ours, bare].flatMap((peer) =>
        runsOf(peer).flatMap(({ failed }) =>
          failed === 0 ? [] : [`${peer.name}: ${failed} responses were wrong or missing`],
        ),
      ),
    }
  },
}

async function runLoad(lab: Lab, peer: Peer, requests: number): Promise<MemoryRun> {
  const [contestant] = await startPeers(lab, [peer], lab.device.port)
  if (contestant === undefined) throw new Error(`${peer.name} does not start`)
  const { url, headers, children } = contestant.running
  const pid = children[0]?.pid ?? 0
  const watch = watchMemory(pid)
  await pause(SETTLE_TIME)
  const idle = await residentMemory(pid)
  const { headBytes } = await requestOnce(url, { headers })
  const { failed } = await lab.autocannon.run({
    url,
    headers,
    connections: CONNECTIONS,
    until: { requests },
    expected: { status: 200, body: DEVICE_BODY, headBytes },
    core: lab.otherCore,
  })
  await pause(SETTLE_TIME)
  const after = await residentMemory(pid)
  const record = await watch.stop()
  say(`  ${peer.name}: ${mebibytes(idle)} MiB idle, ${mebibytes(after)} MiB after ${requests} requests`)
  await stopPeers([contestant])
  return { idle, after, failed, ...record }
}

function mebibytes(bytes: number | undefined): string {
  return bytes === undefined ? '-' : (bytes / MEBIBYTE).toFixed(1)
}
