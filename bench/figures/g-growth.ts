import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '../child.ts'
import { type Contestant, loadOf, measure, startPeer, startPeers } from '../contest/contest.ts'
import { type Figure, type Lab, notInstalled } from '../lab.ts'
import type { Load } from '../load/generator.ts'
import { haproxyPeer } from '../peers/haproxy.ts'
import { posternPeer } from '../peers/postern.ts'
import { watchMemory } from '../process-usage.ts'
import { say } from '../run-program.ts'
import { tokenRequest } from '../sidecar.ts'
import { curveFindings, type Point } from './curve.ts'

interface PointLoad extends Partial<Pick<Load, 'connections' | 'many'>> {
  /** In place of the token. */
  readonly headers?: Load['headers']
}

/** Measures one point of a curve. Every response must be that of the device. */
async function measurePoint(
  lab: Lab,
  contestant: Contestant,
  [x, what]: readonly [number, string],
  { headers, ...load }: PointLoad,
): Promise<Point> {
  const common = { connections: 64, until: { seconds: lab.seconds }, core: lab.otherCore, ...load }
  const checked = await loadOf(contestant, common)
  const peakOf = watchMemory(contestant.running.children[0]?.pid ?? 0)
  const sample = await measure(contestant, { ...checked, headers: headers ?? checked.headers })
  const { requestsPerSecond: rate, busy, failed } = sample
  say(`  ${contestant.peer.name}, ${x} ${what}: ${rate.toFixed(0)}/s`)
  return { x, rate, busy, memory: peakOf(), failed }
}

const CONNECTIONS = [1, 2, 4, 16, 64, 256, 1_000]

/** By default Postern accepts 1,000 connections; 64 requests are at the device and 128 wait. */
const ROOM = ['listen.max_connections=2000', 'upstream.queue.size=2000']

const connections: Figure = {
  id: 'G1',
  title: 'Throughput by connections',
  about:
    'Admitted requests over 1 to 1,000 keep-alive connections. At most 64 requests are at the device at once (`upstream.max_in_flight`) and the others wait; here the queue is long enough for all of them.',
  async measure(lab) {
    const curves: Record<string, Point[]> = {}
    for (const contestant of await startPeers(lab, [
      posternPeer({ set: ROOM, program: lab.program }),
      haproxyPeer,
    ])) {
      const points: Point[] = []
      const loaded = { ...contestant, generator: lab.wrk ?? lab.autocannon }
      for (const count of CONNECTIONS)
        points.push(await measurePoint(lab, loaded, [count, 'connections'], { connections: count }))
      curves[contestant.peer.name] = points
    }
    const about = {
      what: 'connections',
      rises: 'one connection waits for its own response; from here on there is always a request to process',
      falls:
        'requests past upstream.max_in_flight wait in the queue, and each connection is one more socket to poll',
    }
    return curveFindings(about, curves)
  },
}

const CLIENTS = [1, 100, 10_000, 100_000, 1_000_000]

/** Time limit for the sidecar to see all clients of a step (seconds). */
const MAX_FILL_TIME = 60

const clients: Figure = {
  id: 'G3',
  title: 'Throughput by distinct clients',
  about:
    'Each request comes from another of up to a million addresses, which a trusted proxy in front states in X-Forwarded-For; each address has a window that stays open (see P8 for its memory). wrk sends the requests, because autocannon would have to build each of them again.',
  async measure(lab) {
    const { wrk: generator, program } = lab
    if (generator === undefined) return notInstalled('wrk')
    const set = ['listen.trusted_proxies=127.0.0.1', 'limits.api.window=1d']
    const contestant = { ...(await startPeer(lab, posternPeer({ set, program }))), generator }
    const points: Point[] = []
    let seen = 0
    for (const most of CLIENTS) {
      const run = (count: number, first: number): Promise<Point> =>
        measurePoint(lab, contestant, [count, 'clients'], { many: ['clients', `${most}`, `${first}`] })
      // First only new clients, until the sidecar has seen `most` of them.
      for (let filled = 0; seen < most && filled < MAX_FILL_TIME * lab.part; filled += lab.seconds) {
        const { rate } = await run(most, seen)
        seen = Math.min(most, seen + Math.floor(rate * lab.seconds))
      }
      points.push(await run(seen, 0))
      if (seen < most) break
    }
    const falls =
      'the hash table of windows no longer fits the processor caches, and the address of a client that is not among the last 4,096 is parsed again'
    return curveFindings({ what: 'distinct clients', falls }, { postern: points })
  },
}

/** Live tokens: each login issues two. */
const TOKENS = [2, 100, 1_000, 10_000, 100_000]

/** Concurrent logins. */
const LOGINS = 10

const tokens: Figure = {
  id: 'G4',
  title: 'Throughput by live tokens',
  about:
    'Each request carries another of up to 50,000 access tokens. Their refresh tokens are live too, in memory (see P8) and in the token file. wrk sends the requests, because autocannon would have to build each of them again.',
  async measure(lab) {
    const { wrk: generator, program } = lab
    if (generator === undefined) return notInstalled('wrk')
    const most = Math.max(...TOKENS)
    const peer = posternPeer({ set: [`tokens.capacity=${2 * most}`], program })
    const contestant = { ...(await startPeer(lab, peer)), generator }
    const { url, headers } = contestant.running
    const file = join(await temporaryFolder(), 'tokens')
    const issued = [(headers.Authorization ?? '').replace('Bearer ', '')]
    const points: Point[] = []
    for (const live of TOKENS.filter((count) => count <= most * lab.part || count <= 1_000)) {
      while (issued.length < live / 2) {
        const some = Math.min(LOGINS, live / 2 - issued.length)
        issued.push(...(await Promise.all(Array.from({ length: some }, () => logIn(url)))))
      }
      await writeFile(file, `${issued.join('\n')}\n`)
      // many.lua adds the token of the file.
      const load = { headers: {}, many: ['tokens', file] }
      points.push(await measurePoint(lab, contestant, [2 * issued.length, 'tokens'], load))
    }
    const falls = 'the hash table of tokens no longer fits the processor caches'
    return curveFindings({ what: 'live tokens', falls }, { postern: points })
  },
}

/** Logs in over one of the connections that `fetch` keeps. */
async function logIn(url: string): Promise<string> {
  const response = await fetch(`${url}/oauth/token`, tokenRequest())
  if (response.status !== 200) throw new Error(`the sidecar issues no token: ${response.status}`)
  return ((await response.json()) as { access_token: string }).access_token // C4
}

export const GROWTH: readonly Figure[] = [connections, clients, tokens]
