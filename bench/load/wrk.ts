import { fileURLToPath } from 'node:url'
import { outputOf, type ProgramError } from '../child.ts'
import { type Generator, type Load, rightSize, timeoutFor } from './generator.ts'

/** Output of `report.lua`. Percentiles in milliseconds; `refused` counts statuses of 400 and above. */
interface WrkReport {
  readonly requests: number
  readonly microseconds: number
  readonly bytes: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly refused: number
  readonly errors: number
}

/** wrk, for peers that are faster than autocannon. It reports only statuses of 400 and above, and the number of bytes. */
export const wrkGenerator: Generator = {
  name: 'wrk',
  async version() {
    // `wrk -v` exits with 1.
    const text = await outputOf('wrk', ['-v']).catch((error: ProgramError) => error.output)
    return /wrk (\S+)/.exec(text)?.[1]
  },
  async run(load) {
    const { url, headers, connections, until, core, idlePriority = false, many } = load
    if (!('seconds' in until)) throw new Error('wrk needs a duration, not a number of requests')
    const fields = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
    const script = new URL(many === undefined ? 'report.lua' : 'many.lua', import.meta.url)
    const options = [
      '-t1',
      `-c${connections}`,
      `-d${until.seconds}s`,
      '--timeout',
      '10s',
      '-s',
      fileURLToPath(script),
    ]
    const text = await outputOf('wrk', [...options, ...fields, url, '--', ...(many ?? [])], {
      core,
      idlePriority,
      timeout: timeoutFor(load),
    })
    const line = text.split('\n').find((candidate) => candidate.startsWith('{'))
    if (line === undefined) throw new Error(`wrk printed no result: ${text}`)
    const report = JSON.parse(line) as WrkReport // `report.lua` prints it
    return {
      requests: report.requests,
      requestsPerSecond: report.requests / (report.microseconds / 1e6),
      p50: report.p50,
      p90: report.p90,
      p99: report.p99,
      statuses: new Map(),
      failed: failures(report, load),
    }
  },
}

function failures(report: WrkReport, { expected, connections }: Load): number {
  const { requests, refused, errors } = report
  const wrongStatus = expected.status < 400 ? refused : requests - refused
  // Counts every response, because wrk does not report which one was wrong.
  const wrongSize = requests === 0 || rightSize(report, expected, connections) ? 0 : requests
  return Math.max(wrongStatus, wrongSize) + errors
}
