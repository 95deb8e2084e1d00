import { setTimeout as pause } from 'node:timers/promises'
import { ask } from '../ask.ts'
import { CONNECTIONS, startPeers, stopPeers } from '../contest/contest.ts'
import { DEVICE_BODY } from '../device.ts'
import type { Check, Figure, Line } from '../figure.ts'
import type { Lab } from '../lab.ts'
import { alternate, ratioOf, summarize } from '../measure.ts'
import { answeringPeer } from '../peers/answering.ts'
import type { Peer } from '../peers/peer.ts'
import { posternPeer } from '../peers/postern.ts'
import { MEBIBYTE, type MemoryRecord, residentMemory, watchMemory } from '../resident-memory.ts'
import { say } from '../say.ts'

const REQUESTS = 1_000_000

/** After the start, and after the load: long enough for what is only put off to be done (ms). */
const REST = 3_000

/** What the bare server answers, of the size of the device's answer. */
const HELLO = {
  status: 200,
  fields: ['Content-Type', 'application/json', 'Content-Length', String(DEVICE_BODY.length)],
  body: DEVICE_BODY,
}

/** Bytes. */
interface Course extends MemoryRecord {
  readonly idle: number | undefined
  readonly after: number | undefined
  readonly failed: number
}

export const memory: Figure = {
  id: 'P6',
  title: 'Memory',
  about:
    'Resident memory when idle, and after a million requests over 64 connections, beside a bare node:http server with the same flags after the same load; both are started anew for each round.',
  async measure(lab) {
    const requests = Math.round(REQUESTS * lab.part)
    const [ours, bare] = [posternPeer({ program: lab.program }), answeringPeer(HELLO, lab.program)]
    const courses = await alternate([ours, bare], lab.rounds, (peer) => run(lab, peer, requests))
    const coursesOf = (peer: Peer): readonly Course[] => courses.get(peer) ?? []
    const check = (id: string, what: string, when: 'idle' | 'after', reach: number): Check => {
      const [own, theirs] = [ours, bare].map((peer) => coursesOf(peer).map((course) => course[when]))
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
      points: coursesOf(peer).at(-1)?.points ?? [],
    })
    const row = (peer: Peer): string[] =>
      (['idle', 'peak', 'after'] as const).map((when) =>
        mebibytes(summarize(coursesOf(peer).map((course) => course[when]))?.median),
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
        coursesOf(peer).flatMap(({ failed }) =>
          failed === 0 ? [] : [`${peer.name}: ${failed} answers were wrong or missing`],
        ),
      ),
    }
  },
}

async function run(lab: Lab, peer: Peer, requests: number): Promise<Course> {
  const [contestant] = await startPeers(lab, [peer], lab.device.port)
  if (contestant === undefined) throw new Error(`${peer.name} does not start`)
  const { url, headers, children } = contestant.running
  const pid = children[0]?.pid ?? 0
  const watch = watchMemory(pid)
  await pause(REST)
  const idle = await residentMemory(pid)
  const { headBytes } = await ask(url, { headers })
  const { failed } = await lab.autocannon.run({
    url,
    headers,
    connections: CONNECTIONS,
    until: { requests },
    expected: { status: 200, body: DEVICE_BODY, headBytes },
    core: lab.otherCore,
  })
  await pause(REST)
  const after = await residentMemory(pid)
  const record = await watch.stop()
  say(`  ${peer.name}: ${mebibytes(idle)} MiB idle, ${mebibytes(after)} MiB after ${requests} requests`)
  await stopPeers([contestant])
  return { idle, after, failed, ...record }
}

function mebibytes(bytes: number | undefined): string {
  return bytes === undefined ? '-' : (bytes / MEBIBYTE).toFixed(1)
}
