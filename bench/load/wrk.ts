import { fileURLToPath } from 'node:url'
import { outputOf, versionOf } from '../child.ts'
import { type Generator, type Load, type LoadResult, rightSize, timeoutFor } from './generator.ts'

/** Output of `report.lua`. `refused` counts statuses of 400 and above. */
interface WrkReport extends Pick<LoadResult, 'requests' | 'p50' | 'p90' | 'p99'> {
  readonly microseconds: number
  readonly bytes: number
  readonly refused: number
  readonly errors: number
}

/** wrk, for peers that are faster than autocannon. It reports only statuses of 400 and above, and the number of bytes. */
export const wrkGenerator: Generator = {
  name: 'wrk',
  version: () => versionOf('wrk', '-v', /wrk (\S+)/),
  async run(load) {
    const { url, headers, connections, until, core, idlePriority = false } = load
    if (!('seconds' in until)) throw new Error('wrk needs a duration, not a number of requests')
    const fields = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
    const script = new URL('report.lua', import.meta.url)
    const options = ['-t1', `-c${connections}`, `-d${until.seconds}s`, '--timeout', '10s']
    const args = [...options, '-s', fileURLToPath(script), ...fields, url]
    const text = await outputOf('wrk', args, { core, idlePriority, timeout: timeoutFor(load) })
    const line = text.split('\n').find((candidate) => candidate.startsWith('{'))
    if (line === undefined) throw new Error(`wrk printed no result: ${text}`)
    const report = JSON.parse(line) as WrkReport // `report.lua` prints it
    const { requests, microseconds, p50, p90, p99 } = report
    const requestsPerSecond = requests / (microseconds / 1e6)
    return { requests, requestsPerSecond, p50, p90, p99, failed: failures(report, load) }
  },
}

function failures(report: WrkReport, { expected, connections }: Load): number {
  const { requests, refused, errors } = report
  const wrongStatus = expected.status < 400 ? refused : requests - refused
  // Counts every response, because wrk does not report which one was wrong.
  const wrongSize = requests === 0 || rightSize(report, expected, connections) ? 0 : requests
  return Math.max(wrongStatus, wrongSize) + errors
}
