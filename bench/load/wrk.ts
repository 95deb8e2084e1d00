import { outputOf } from '../child.ts'
import type { Generator } from './generator.ts'

/** wrk, in C: where autocannon would be the bottleneck. */
export const wrkGenerator: Generator = {
  name: 'wrk',
  async version() {
    // wrk ends with 1 after `-v`.
    const text = await outputOf('wrk', ['-v']).catch((error: { stdout?: string }) => error.stdout ?? '')
    return /wrk (\S+)/.exec(text)?.[1]
  },
  async run({ url, headers, connections, seconds, core }) {
    const fields = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
    const options = ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency']
    const text = await outputOf('wrk', [...options, ...fields, url], {
      core,
      longest: (seconds + 20) * 1000,
    })
    const number = (pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? 0)
    const [, connect, read, write, timeout] =
      /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(text) ?? []
    const errors = [connect, read, write, timeout].reduce((sum, count) => sum + Number(count ?? 0), 0)
    return {
      requests: number(/(\d+) requests in/),
      requestsPerSecond: number(/Requests\/sec:\s+([\d.]+)/),
      p50: milliseconds(/\s50%\s+(\S+)/.exec(text)?.[1]),
      p99: milliseconds(/\s99%\s+(\S+)/.exec(text)?.[1]),
      failed: number(/Non-2xx or 3xx responses: (\d+)/) + errors,
    }
  },
}

function milliseconds(text: string | undefined): number | undefined {
  const [, value, unit] = /^([\d.]+)(us|ms|s)$/.exec(text ?? '') ?? []
  if (value === undefined) return undefined
  return Number(value) * (unit === 's' ? 1000 : unit === 'us' ? 0.001 : 1)
}
