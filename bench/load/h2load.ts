import { outputOf } from '../child.ts'
import { type Generator, type Load, type LoadResult, patienceFor } from './generator.ts'

/** Requests under way at once on each connection. */
export const STREAMS = 8

/** h2load, for HTTP/2, which autocannon and wrk do not speak. It counts statuses by class, and the bytes of bodies. */
export const h2loadGenerator: Generator = {
  name: 'h2load',
  async version() {
    const text = await outputOf('h2load', ['--version']).catch(() => '')
    return /nghttp2\/(\S+)/.exec(text)?.[1]
  },
  async run(load) {
    const { url, headers, connections, until, core, humble = false } = load
    const fields = Object.entries(headers).flatMap(([name, value]) => [
      '-H',
      `${name.toLowerCase()}: ${value}`,
    ])
    const length = 'seconds' in until ? ['-D', String(until.seconds)] : ['-n', String(until.requests)]
    const options = ['-t1', '-c', String(connections), '-m', String(STREAMS), ...length]
    const text = await outputOf('h2load', [...options, ...fields, url], {
      core,
      humble,
      longest: patienceFor(load),
    })
    return readReport(text, load)
  },
}

/** What h2load printed of a load. */
export function readReport(text: string, { expected, connections }: Load): LoadResult {
  const number = (pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? 0)
  const requests = number(/(\d+) done/)
  const [, ...classes] = /status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx/.exec(text) ?? []
  const right = Number(classes[Math.floor(expected.status / 100) - 2] ?? 0)
  const others = classes.reduce((sum, count) => sum + Number(count), 0) - right
  const broken = number(/(\d+) errored/) + number(/(\d+) timeout/)
  // A status is counted when the head is there. At the end of a timed run each stream may lack its body.
  const size = Buffer.byteLength(expected.body)
  const missing = right * size - number(/\((\d+)\) data/)
  const wrongSize = missing < 0 || missing > connections * STREAMS * size
  return {
    requests,
    requestsPerSecond: number(/, ([\d.]+) req\/s/),
    p50: undefined,
    p90: undefined,
    p99: undefined,
    statuses: new Map(),
    failed: wrongSize ? requests : others + broken,
  }
}
