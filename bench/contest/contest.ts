import { DEVICE_BODY } from '../device.ts'
import type { Lab } from '../lab.ts'
import type { Generator, Load } from '../load/generator.ts'
import { HTTP2_CONNECTIONS } from '../load/h2load.ts'
import { alternate } from '../measure.ts'
import type { Peer, RunningPeer } from '../peers/peer.ts'
import { processorTime } from '../process-usage.ts'
import { requestOnce } from '../request.ts'
import { say } from '../run-program.ts'
import type { Row, Sample } from './row.ts'

/** Keep-alive connections of a load, unless a figure says otherwise. */
export const CONNECTIONS = 64

/** Multiple of the usual warm-up. Over HTTP/2, V8 optimizes for about 100,000 requests; until then the floor costs twice. */
const HTTP2_WARM_UP = 3

/** A running peer and the load generator that loads it. */
export interface Contestant {
  readonly peer: Peer
  readonly version: string
  readonly running: RunningPeer
  readonly generator: Generator
}

/** What every response must be, by default that of the device. */
interface Expected {
  readonly status?: number
  readonly body?: string
}

/** Starts the peers that are installed and selected by `--peers`. They end with their figure. */
export async function startPeers(
  lab: Lab,
  peers: readonly Peer[],
  devicePort: number = lab.device.port,
): Promise<Contestant[]> {
  const contestants: Contestant[] = []
  for (const peer of peers) {
    const version = await installed(lab, peer)
    if (version === undefined) continue
    const running = await peer.start({ devicePort, core: lab.proxyCore })
    contestants.push({ peer, version, running, generator: lab.autocannon })
  }
  return contestants
}

/** The version of a peer that is to be measured; undefined if it is not installed, or if `--peers` names others. */
export async function installed(
  { peers }: Pick<Lab, 'peers'>,
  { name, version }: Pick<Peer, 'name' | 'version'>,
): Promise<string | undefined> {
  if (peers !== undefined && !peers.includes(name)) return undefined
  const found = await version()
  if (found === undefined) say(`${name} is not installed: skipped`)
  return found
}

/** Starts one peer, also if `--peers` names others. */
export async function startPeer(lab: Lab, peer: Peer): Promise<Contestant> {
  const [contestant] = await startPeers({ ...lab, peers: undefined }, [peer])
  if (contestant === undefined) throw new Error(`${peer.name} is not installed`)
  return contestant
}

/** The same contestants under this load generator; none if it is not installed. */
export function under(generator: Generator | undefined, contestants: readonly Contestant[]): Contestant[] {
  return generator === undefined ? [] : contestants.map((contestant) => ({ ...contestant, generator }))
}

/** A load of one protocol. */
export interface Loading {
  /** Undefined if it is not installed. */
  readonly generator: Generator | undefined
  readonly connections: number
  /** Multiple of the usual warm-up. */
  readonly warmUp?: number
}

/** The loads over HTTP/1.1, and over HTTP/2, which need programs that were started with TLS. */
export function loadingsOf({ wrk, autocannon, h2load }: Lab): Readonly<Record<'http1' | 'http2', Loading>> {
  return {
    http1: { generator: wrk ?? autocannon, connections: CONNECTIONS },
    http2: { generator: h2load, connections: HTTP2_CONNECTIONS, warmUp: HTTP2_WARM_UP },
  }
}

/** Runs one load after the other against the same processes. Returns the rows of each load. */
export async function competeInTurn(
  lab: Lab,
  started: readonly Contestant[],
  loads: readonly Loading[],
): Promise<Row[][]> {
  const results: Row[][] = []
  for (const { generator, connections, warmUp = 1 } of loads) {
    const patient = { ...lab, warmUpSeconds: lab.warmUpSeconds * warmUp }
    results.push(await compete(patient, under(generator, started), { connections }))
  }
  return results
}

/** Checks the response of each contestant and warms it up, then measures all of them in turn, once per round. */
export async function compete(
  lab: Lab,
  contestants: readonly Contestant[],
  { connections = CONNECTIONS, ...expected }: Expected & { readonly connections?: number } = {},
): Promise<Row[]> {
  const loads = new Map<Contestant, Load>()
  for (const contestant of contestants) {
    const until = { seconds: lab.seconds }
    const load = await loadOf(contestant, { connections, until, core: lab.otherCore }, expected)
    loads.set(contestant, load)
    if (lab.warmUpSeconds > 0) await measure(contestant, { ...load, until: { seconds: lab.warmUpSeconds } })
  }
  const samples = await alternate([...loads], lab.rounds, async ([contestant, load], round) => {
    const sample = await measure(contestant, load)
    const { peer, generator } = contestant
    say(`  round ${round + 1}: ${peer.name}, ${generator.name}: ${sample.requestsPerSecond.toFixed(0)}/s`)
    return sample
  })
  return [...samples].map(([[{ peer, version, generator }], taken]) => {
    return { name: peer.name, version, does: peer.does, generator: generator.name, samples: taken }
  })
}

/**
 * A load that expects what the contestant responds now: the size of the head is not known otherwise. Throws if that has another
 * status or body: its figure would measure something else.
 */
export async function loadOf(
  { peer, running: { url, headers } }: Pick<Contestant, 'peer' | 'running'>,
  load: Omit<Load, 'expected' | 'url' | 'headers'>,
  { status = 200, body = DEVICE_BODY }: Expected = {},
): Promise<Load> {
  const response = await requestOnce(url, { headers })
  if (response.status !== status || response.body !== body) {
    throw new Error(`${peer.name} responds with ${response.status} ${response.body.slice(0, 200)}`)
  }
  return { url, headers, ...load, expected: { status, body, headBytes: response.headBytes } }
}

/** Loads a contestant and measures the processor time that its processes used. */
export async function measure({ running, generator }: Contestant, load: Load): Promise<Sample> {
  const time = (): number => running.children.reduce((sum, { pid }) => sum + processorTime(pid), 0)
  const before = time()
  const result = await generator.run(load)
  const { requests, requestsPerSecond, failed } = result
  const each = (time() - before) / requests
  return {
    ...result,
    // A run without any response has failed, even if the generator reports no error.
    failed: requests === 0 ? 1 : failed,
    cpuPerRequest: each * 1000,
    busy: (each * requestsPerSecond) / 1000,
  }
}
