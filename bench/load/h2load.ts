import { outputOf, versionOf } from '../child.ts'
import { type Generator, type Load, type LoadResult, timeoutFor } from './generator.ts'

/** Connections of a load over HTTP/2, unless a figure says otherwise. */
export const HTTP2_CONNECTIONS = 32

/** Requests in flight per connection. */
export const STREAMS = 8

/** h2load, for HTTP/2, which autocannon and wrk do not support. It reports statuses by class and the size of all bodies. */
export const h2loadGenerator: Generator = {
  name: 'h2load',
  version: () => versionOf('h2load', '--version', /nghttp2\/(\S+)/),
  async run(load) {
    const { url, headers, connections, until, core, idlePriority = false } = load
    const fields = Object.entries(headers).map(([name, value]) => `--header=${name.toLowerCase()}: ${value}`)
    const length = 'seconds' in until ? ['-D', String(until.seconds)] : ['-n', String(until.requests)]
    const options = ['-t1', '-c', String(connections), '-m', String(STREAMS), ...length]
    const limits = { core, idlePriority, timeout: timeoutFor(load) }
    return readReport(await outputOf('h2load', [...options, ...fields, url], limits), load)
  },
}

/** Parses the output of h2load. */
export function readReport(text: string, { expected, connections }: Load): LoadResult {
  const number = (pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? 0)
  const requests = number(/(\d+) done/)
  const [, ...classes] = /status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx/.exec(text) ?? []
  const right = Number(classes[Math.floor(expected.status / 100) - 2] ?? 0)
  const others = classes.reduce((sum, count) => sum + Number(count), 0) - right
  const broken = number(/(\d+) errored/) + number(/(\d+) timeout/)
  // h2load counts a status when the head arrives. At the end of a timed run the body of each stream may be missing.
  const size = Buffer.byteLength(expected.body)
  const missing = right * size - number(/\((\d+)\) data/)
  const wrongSize = missing < 0 || missing > connections * STREAMS * size
  return {
    requests,
    requestsPerSecond: number(/, ([\d.]+) req\/s/),
    p50: Number.NaN,
    p90: Number.NaN,
    p99: Number.NaN,
    failed: wrongSize ? requests : others + broken,
  }
}
