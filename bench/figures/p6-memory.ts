import { setTimeout as pause } from 'node:timers/promises'
import { CONNECTIONS, loadOf, startPeer } from '../contest/contest.ts'
import { failedFault } from '../contest/row.ts'
import { DEVICE_BODY } from '../device.ts'
import type { Check } from '../figure.ts'
import { fixed } from '../format.ts'
import type { Figure, Lab } from '../lab.ts'
import { alternate, medianOf, ratioOf } from '../measure.ts'
import { fixedResponsePeer } from '../peers/node-peers.ts'
import type { Peer } from '../peers/peer.ts'
import { posternPeer } from '../peers/postern.ts'
import { privateMemory, residentMemory, watchMemory } from '../process-usage.ts'
import { cleaningUp, say } from '../run-program.ts'

const REQUESTS = 1_000_000

/** Pause after the start and after the load, so that deferred work finishes (ms). */
const SETTLE_TIME = 3_000

/** The response of the bare server, as large as that of the device. */
const FIXED_RESPONSE = {
  status: 200,
  fields: ['Content-Type', 'application/json', 'Content-Length', String(DEVICE_BODY.length)],
  body: DEVICE_BODY,
}

/** Memory of a server in one round (MiB): private when idle, and resident. */
interface MemoryRun {
  readonly private: number
  readonly idle: number
  readonly peak: number
  readonly after: number
  readonly failed: number
}

export const memory: Figure = {
  id: 'P6',
  title: 'Memory',
  about:
    'Private memory when idle, and resident memory after a million requests over 64 connections, beside a bare node:http server with the same flags after the same load; both are restarted for each round. Private memory is what no file of the disk can give back: pages of the program that was just copied do not count.',
  async measure(lab) {
    const requests = Math.round(REQUESTS * lab.part)
    const ours = posternPeer({ program: lab.program })
    const peers = [ours, fixedResponsePeer(FIXED_RESPONSE, lab.program)]
    const run = (peer: Peer): Promise<MemoryRun> => cleaningUp(() => runLoad(lab, peer, requests))
    const runs = [...(await alternate(peers, lab.rounds, run))]
    const check = (id: string, what: string, when: 'private' | 'after', reach: number): Check => {
      const [own = [], theirs = []] = runs.map(([, of]) => of.map((one) => one[when]))
      return ratioOf(id, `${what}, of bare node:http`, own, theirs, { reach })
    }
    return {
      checks: [
        check('P6 private', 'private memory when idle', 'private', 2.8),
        check('P6 after', `resident memory after ${requests.toLocaleString('en')} requests`, 'after', 2),
      ],
      tables: [
        {
          caption: 'Memory (MiB), medians of the rounds',
          head: ['server', 'private, idle', 'resident, idle', 'peak', 'after'],
          rows: runs.map(([peer, of]) => [
            peer.name,
            ...(['private', 'idle', 'peak', 'after'] as const).map((when) =>
              fixed(medianOf(of.map((one) => one[when])), 1),
            ),
          ]),
        },
      ],
      notes: requests < REQUESTS ? [`${requests} requests, not a million: this was a quick run`] : [],
      faults: runs.flatMap(([peer, of]) => failedFault(peer.name, of)),
    }
  },
}

async function runLoad(lab: Lab, peer: Peer, requests: number): Promise<MemoryRun> {
  const contestant = await startPeer(lab, peer)
  const pid = contestant.running.children[0]?.pid ?? 0
  const peakOf = watchMemory(pid)
  await pause(SETTLE_TIME)
  const idle = { private: privateMemory(pid), idle: residentMemory(pid) }
  const load = { connections: CONNECTIONS, until: { requests }, core: lab.otherCore }
  const { failed } = await lab.autocannon.run(await loadOf(contestant, load))
  await pause(SETTLE_TIME)
  const after = residentMemory(pid)
  say(
    `  ${peer.name}: ${fixed(idle.private, 1)} MiB private, ${fixed(after, 1)} MiB after ${requests} requests`,
  )
  return { ...idle, after, failed, peak: peakOf() }
}
