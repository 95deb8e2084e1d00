import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startChild } from '../child.ts'
import { startPeer } from '../contest/contest.ts'
import type { Check } from '../figure.ts'
import { fixed } from '../format.ts'
import type { Figure, Lab } from '../lab.ts'
import { makeCertificate } from '../peers/certificate.ts'
import { haproxyTlsPeer } from '../peers/haproxy.ts'
import { nginxTlsPeer } from '../peers/nginx.ts'
import type { Peer } from '../peers/peer.ts'
import { posternPeer } from '../peers/postern.ts'
import { residentMemory, watchMemory } from '../process-usage.ts'
import type { Program } from '../program.ts'
import { cleaningUp, say } from '../run-program.ts'

const FLOODS = fileURLToPath(new URL('../../test/machine/memory-floods.ts', import.meta.url))

/** Those that all three programs can get: they need no token. */
const NAMES = [
  'unread HTTP/2 answers',
  'heads of 12 KB',
  'bodies that never come',
  'CONTINUATION and HPACK that grow',
  'HTTP/1 heads in pieces',
  'HTTP/1 pipelines that nobody reads',
  'TLS handshakes that stop',
] as const

/** How long a flood lasts, and how long after it the memory is measured again (s). */
const FLOOD = 30
const AFTER = 30

/** The memory of the unit (MiB), the heap that it gives V8, and what its clients may hold (MiB). */
const MOST = 512
const HEAP = 205
const ACCOUNT = 182

/**
 * The most that the memory may be above idle half a minute after the flood (MiB): half of the unit's. The C library keeps free pages, and V8
 * garbage, for the next flood, so it is what the flood took: docs/sizing.md, "Memory".
 */
const LEFT = MOST / 2

/** Resident memory of a server (MiB). `ended`: it was killed, or ended by itself. */
interface FloodRun {
  readonly flood: string
  readonly idle: number
  readonly peak: number
  readonly after: number
  readonly ended: boolean
}

export const floods: Figure = {
  id: 'P11',
  title: 'Memory under floods',
  about: `Resident memory while clients try to make the server hold as much as they can, from at most four addresses, for ${FLOOD} s each, and half a minute later. Postern has the account of the unit with ${MOST} MiB. nginx and HAProxy get the same floods with their defaults.`,
  async measure(lab) {
    const pair = await makeCertificate()
    const set = [`listen.memory=${ACCOUNT}MiB`, 'listen.max_connections_per_client=250']
    const ours = posternPeer({ tls: true, set, program: withHeap(lab.program) })
    const peers: Peer[] = [ours]
    for (const peer of [nginxTlsPeer(pair), haproxyTlsPeer(pair)])
      if ((await peer.version()) !== undefined) peers.push(peer)
    const results: { readonly peer: Peer; readonly runs: readonly FloodRun[] }[] = []
    for (const peer of peers) {
      const runs: FloodRun[] = []
      for (const flood of NAMES) runs.push(await cleaningUp(() => runFlood(lab, peer, flood)))
      results.push({ peer, runs })
    }
    const own = results[0]?.runs ?? []
    const check = (id: string, what: string, value: number, reach: number): Check => ({
      ...{ id, what, value, reach, unit: 'MiB', better: 'less', comparable: 'same machine' },
    })
    return {
      checks: [
        check(
          'P11 peak',
          'highest resident memory in any flood',
          Math.max(...own.map(({ peak }) => peak)),
          MOST,
        ),
        check(
          'P11 after',
          'the most above idle, half a minute after a flood',
          Math.max(...own.map(({ after, idle }) => after - idle)),
          LEFT,
        ),
      ],
      tables: results.map(({ peer, runs }) => ({
        caption: `${peer.name}, resident (MiB)`,
        head: ['flood', 'idle', 'peak', 'half a minute after'],
        rows: runs.map(({ flood, idle, peak, after, ended }) => [
          flood,
          fixed(idle, 0),
          fixed(peak, 0),
          ended ? 'ended' : fixed(after, 0),
        ]),
      })),
      notes: lab.part < 1 ? ['short floods: this was a quick run'] : [],
      faults: own.flatMap(({ flood, ended }) => (ended ? [`the sidecar ended in the flood: ${flood}`] : [])),
    }
  },
}

/** The unit gives V8 a share of its memory. Without the unit that would be a share of the machine's. */
function withHeap(program: Program): Program {
  const nodeOptions = (folder: string): string =>
    program.nodeOptions(folder).replace(/--max-old-space-size-percentage=\d+/, `--max-old-space-size=${HEAP}`)
  return { ...program, nodeOptions }
}

async function runFlood(lab: Lab, peer: Peer, flood: string): Promise<FloodRun> {
  const { running } = await startPeer(lab, peer)
  const pid = running.children[0]?.pid ?? 0
  await pause(3_000)
  const idle = residentMemory(pid)
  const peakOf = watchMemory(pid)
  const seconds = Math.max(3, Math.round(FLOOD * lab.part))
  const { port } = new URL(running.url)
  const args = [FLOODS, flood, '--port', port, '--seconds', '600']
  const child = await startChild(process.execPath, args, { core: lab.otherCore })
  await pause(1_000 * seconds)
  const peak = peakOf()
  await child.stop()
  await pause(1_000 * Math.max(3, Math.round(AFTER * lab.part)))
  const after = residentMemory(pid)
  say(`  ${peer.name}, ${flood}: ${fixed(idle, 0)} MiB, at most ${fixed(peak, 0)}, then ${fixed(after, 0)}`)
  return { flood, idle, peak, after, ended: Number.isNaN(after) }
}
