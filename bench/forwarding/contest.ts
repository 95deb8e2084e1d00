import type { Generator } from '../load/generator.ts'
import type { Sample } from '../measure.ts'
import type { Peer, RunningPeer } from '../peers/peer.ts'
import { processorTime } from '../processor-time.ts'

/** Keep-alive HTTP/1.1 connections of the load. */
export const CONNECTIONS = 64

/** A peer that runs, under one load generator. */
export interface Contestant {
  readonly peer: Peer
  readonly version: string
  readonly running: RunningPeer
  readonly generator: Generator
}

/** Loads a contestant for some time, and reads what processor time that cost it. */
export async function measure(
  { running: { url, headers, child }, generator }: Contestant,
  seconds: number,
  core: number | undefined,
): Promise<Sample> {
  const before = await processorTime(child.pid)
  const result = await generator.run({ url, headers, connections: CONNECTIONS, seconds, core })
  const after = await processorTime(child.pid)
  const used = before === undefined || after === undefined ? undefined : after - before
  const { requests, requestsPerSecond, p50, p99, failed } = result
  return {
    requestsPerSecond,
    p50,
    p99,
    // A run without a single answer is a failure, whatever the generator says.
    failed: requests === 0 ? 1 : failed,
    cpuPerRequest: used === undefined ? undefined : (used * 1000) / requests,
    busy: used === undefined ? undefined : (used * requestsPerSecond) / requests / 1000,
  }
}

/** Fails where a peer does not forward the device's answer, so that no figure is of something else. */
export async function mustForward(
  { peer, running: { url, headers } }: Contestant,
  body: string,
): Promise<void> {
  const answer = await fetch(url, { headers, signal: AbortSignal.timeout(5_000) })
  const text = await answer.text()
  if (answer.status !== 200 || text !== body) throw new Error(`${peer.name} answers ${answer.status} ${text}`)
}
