import type { Child } from '../child.ts'
import type { Lab } from '../lab.ts'
import type { ExpectedResponse, Generator, Load } from '../load/generator.ts'
import { alternate, type Sample } from '../measure.ts'
import type { Peer, RunningPeer } from '../peers/peer.ts'
import { processorTime } from '../process-usage.ts'
import { requestOnce } from '../request.ts'
import { say } from '../run-program.ts'
import { type Row, rowOf } from './row.ts'

/** Keep-alive connections of a load, unless a figure says otherwise. */
export const CONNECTIONS = 64

/** A running peer and the load generator that loads it. */
export interface Contestant {
  readonly peer: Peer
  readonly version: string
  readonly running: RunningPeer
  readonly generator: Generator
}

export interface Rules {
  /** Status and body of every response. The size of the head is measured once. */
  readonly status: number
  readonly body: string
  readonly connections?: number
}

/** Starts the peers that are installed and selected by `--peers`. */
export async function startPeers(
  lab: Lab,
  peers: readonly Peer[],
  devicePort: number,
): Promise<Contestant[]> {
  const contestants: Contestant[] = []
  for (const peer of peers) {
    if (lab.peers !== undefined && !lab.peers.includes(peer.name)) continue
    const version = await peer.version()
    if (version === undefined) say(`${peer.name} is not installed: skipped`)
    else {
      const running = await peer.start({ devicePort, core: lab.proxyCore })
      contestants.push({ peer, version, running, generator: lab.autocannon })
    }
  }
  return contestants
}

export async function stopPeers(contestants: readonly Contestant[]): Promise<void> {
  for (const { running } of contestants) await Promise.all(running.children.map((child) => child.stop()))
}

/** Checks the response of each contestant and warms it up, then measures all of them in turn, once per round. */
export async function compete(
  lab: Lab,
  contestants: readonly Contestant[],
  { status, body, connections = CONNECTIONS }: Rules,
): Promise<Row[]> {
  const loads = new Map<Contestant, Omit<Load, 'until'>>()
  for (const contestant of contestants) {
    const { running } = contestant
    const expected = await expectResponse(contestant, status, body)
    const load = { ...running, connections, expected, core: lab.otherCore }
    loads.set(contestant, load)
    if (lab.warmUpSeconds > 0) {
      await measure(contestant, { ...load, until: { seconds: lab.warmUpSeconds } })
    }
  }
  const samples = await alternate(contestants, lab.rounds, async (contestant, round) => {
    const load = loads.get(contestant)
    if (load === undefined) throw new Error('contestant without a load')
    const sample = await measure(contestant, { ...load, until: { seconds: lab.seconds } })
    const { peer, generator } = contestant
    say(`  round ${round + 1}: ${peer.name}, ${generator.name}: ${sample.requestsPerSecond.toFixed(0)}/s`)
    return sample
  })
  return [...samples].map(([contestant, taken]) => rowOf(contestant, taken))
}

/** Loads a contestant and measures the processor time that its processes used. */
export async function measure({ running, generator }: Contestant, load: Load): Promise<Sample> {
  const before = await timeOf(running.children)
  const result = await generator.run(load)
  const after = await timeOf(running.children)
  const { requests, requestsPerSecond, p50, p90, p99, failed } = result
  const used = before === undefined || after === undefined || requests === 0 ? undefined : after - before
  return {
    requestsPerSecond,
    p50,
    p90,
    p99,
    // A run without any response has failed, even if the generator reports no error.
    failed: requests === 0 ? 1 : failed,
    cpuPerRequest: used === undefined ? undefined : (used * 1000) / requests,
    busy: used === undefined ? undefined : (used * requestsPerSecond) / requests / 1000,
  }
}

async function timeOf(children: readonly Child[]): Promise<number | undefined> {
  const times = await Promise.all(children.map(({ pid }) => processorTime(pid)))
  return times.reduce((sum, time) => (sum === undefined || time === undefined ? undefined : sum + time), 0)
}

/** Throws if the peer responds differently: its figure would measure something else. */
async function expectResponse(
  { peer, running: { url, headers } }: Contestant,
  status: number,
  body: string,
): Promise<ExpectedResponse> {
  const response = await requestOnce(url, { headers })
  if (response.status !== status || response.body !== body) {
    throw new Error(`${peer.name} responds with ${response.status} ${response.body.slice(0, 200)}`)
  }
  return { status, body, headBytes: response.headBytes }
}
