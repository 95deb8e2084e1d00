import { outputOf } from '../child.ts'
import { type Generator, patienceFor } from './generator.ts'

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
    const { url, headers, connections, until, expected, core, humble = false } = load
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
    const number = (pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? 0)
    const requests = number(/(\d+) done/)
    const ofClass = number(new RegExp(`(\\d+) ${Math.floor(expected.status / 100)}xx`))
    const errors = number(/(\d+) errored/) + number(/(\d+) timeout/)
    // The last answers of a timed run may be cut off within their bodies.
    const missing = ofClass * Buffer.byteLength(expected.body) - number(/\((\d+)\) data/)
    const cutOff = connections * STREAMS * Buffer.byteLength(expected.body)
    return {
      requests,
      requestsPerSecond: number(/, ([\d.]+) req\/s/),
      p50: undefined,
      p90: undefined,
      p99: undefined,
      statuses: new Map(),
      failed: requests - ofClass + errors + (Math.abs(missing) <= cutOff ? 0 : requests),
    }
  },
}
