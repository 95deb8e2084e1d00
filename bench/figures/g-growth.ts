import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '../child.ts'
import { type Contestant, loadOf, measure, startPeers, stopPeers, under } from '../contest/contest.ts'
import { type Figure, type Lab, notInstalled } from '../lab.ts'
import type { Load } from '../load/generator.ts'
import { haproxyPeer } from '../peers/haproxy.ts'
import { posternPeer } from '../peers/postern.ts'
import { mebibytes, watchMemory } from '../process-usage.ts'
import { say } from '../run-program.ts'
import { tokenRequest } from '../sidecar.ts'
import { curveFindings, type Point } from './curve.ts'

/** Starts Postern as the only contestant. */
async function startPostern(lab: Lab, set: readonly string[]): Promise<Contestant> {
  const [contestant] = await startPeers({ ...lab, peers: undefined }, [
    posternPeer({ set, program: lab.program }),
  ])
  if (contestant === undefined) throw new Error('Postern does not start')
  return contestant
}

/** Measures one point of a curve. Every response must be that of the device. */
async function measurePoint(
  lab: Lab,
  contestant: Contestant,
  [x, what]: readonly [number, string],
  load: PointLoad,
): Promise<Point> {
  const common = { until: { seconds: lab.seconds }, core: lab.otherCore, ...load }
  const checked = await loadOf(contestant, common)
  const watch = watchMemory(contestant.running.children[0]?.pid ?? 0)
  const sample = await measure(contestant, { ...checked, headers: load.headers ?? checked.headers })
  const { peak } = await watch.stop()
  const { requestsPerSecond: rate, busy, failed } = sample
  say(`  ${contestant.peer.name}, ${x} ${what}: ${rate.toFixed(0)}/s`)
  return { x, rate, busy, memory: mebibytes(peak), failed }
}

interface PointLoad extends Pick<Load, 'connections' | 'many'> {
  /** In place of the token. */
  readonly headers?: Load['headers']
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
    const peers = [posternPeer({ set: ROOM, program: lab.program }), haproxyPeer]
    const started = under(lab.wrk ?? lab.autocannon, await startPeers(lab, peers))
    const curves: Record<string, Point[]> = {}
    for (const contestant of started) {
      const points: Point[] = []
      for (const count of CONNECTIONS)
        points.push(await measurePoint(lab, contestant, [count, 'connections'], { connections: count }))
      curves[contestant.peer.name] = points
    }
    await stopPeers(started)
    const about = {
      id: 'G1',
      what: 'connections',
      rate: 'requests/s',
      unit: 'connection',
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
    if (lab.wrk === undefined) return notInstalled('wrk')
    const set = ['listen.trusted_proxies=127.0.0.1', 'limits.api.window=1d']
    const [contestant] = under(lab.wrk, [await startPostern(lab, set)]) as [Contestant] // there is a generator
    const points: Point[] = []
    let seen = 0
    for (const most of CLIENTS) {
      const run = (count: number, first: number): Promise<Point> => {
        const many = ['clients', String(most), String(first)]
        return measurePoint(lab, contestant, [count, 'clients'], { connections: 64, many })
      }
      // First only new clients, until the sidecar has seen `most` of them.
      for (let filled = 0; seen < most && filled < MAX_FILL_TIME * lab.part; filled += lab.seconds) {
        const { rate } = await run(most, seen)
        seen = Math.min(most, seen + Math.floor(rate * lab.seconds))
      }
      points.push(await run(seen, 0))
      if (seen < most) break
    }
    await stopPeers([contestant])
    const about = {
      id: 'G3',
      what: 'distinct clients',
      rate: 'requests/s',
      rises: 'this is noise: fewer clients cost no more',
      falls:
        'the hash table of windows no longer fits the processor caches, and the address of a client that is not among the last 4,096 is parsed again',
    }
    return curveFindings(about, { postern: points })
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
    if (lab.wrk === undefined) return notInstalled('wrk')
    const set = [`tokens.capacity=${2 * Math.max(...TOKENS)}`]
    const [contestant] = under(lab.wrk, [await startPostern(lab, set)]) as [Contestant] // there is a generator
    const { url, headers } = contestant.running
    const file = join(await temporaryFolder(), 'tokens')
    const issued = [(headers.Authorization ?? '').replace('Bearer ', '')]
    const points: Point[] = []
    for (const live of TOKENS.filter((count) => count <= Math.max(...TOKENS) * lab.part || count <= 1_000)) {
      while (issued.length < live / 2) {
        const some = Math.min(LOGINS, live / 2 - issued.length)
        issued.push(...(await Promise.all(Array.from({ length: some }, () => logIn(url)))))
      }
      await writeFile(file, `${issued.join('\n')}\n`)
      // many.lua adds the token of the file.
      const load = { headers: {}, connections: 64, many: ['tokens', file] }
      points.push(await measurePoint(lab, contestant, [2 * issued.length, 'tokens'], load))
    }
    await stopPeers([contestant])
    const about = {
      id: 'G4',
      what: 'live tokens',
      rate: 'requests/s',
      rises: 'this is noise: fewer tokens cost no more',
      falls: 'the hash table of tokens no longer fits the processor caches',
    }
    return curveFindings(about, { postern: points })
  },
}

/** Logs in over one of the connections that `fetch` keeps. */
async function logIn(url: string): Promise<string> {
  const response = await fetch(`${url}/oauth/token`, tokenRequest())
  if (response.status !== 200) throw new Error(`the sidecar issues no token: ${response.status}`)
  return ((await response.json()) as { access_token: string }).access_token // C4
}

export const GROWTH: readonly Figure[] = [connections, clients, tokens]
