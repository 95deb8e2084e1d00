import { readFile } from 'node:fs/promises'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import type { Result } from 'autocannon'
import { outputOf } from '../child.ts'
import type { Generator } from './generator.ts'

/** autocannon in a process of its own, so that it can be pinned. */
export const autocannonGenerator: Generator = {
  name: 'autocannon',
  async version() {
    const manifest = new URL('package.json', import.meta.resolve('autocannon'))
    return (JSON.parse(await readFile(manifest, 'utf8')) as { version: string }).version // of npm, so it has one
  },
  async run({ url, headers, connections, seconds, core }) {
    const fields = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}=${value}`])
    const program = fileURLToPath(import.meta.resolve('autocannon'))
    const options = ['-c', String(connections), '-d', String(seconds), '--json', '--no-progress']
    const output = await outputOf(process.execPath, [program, ...options, ...fields, url], {
      core,
      longest: (seconds + 20) * 1000,
    })
    const line = output.split('\n').find((text) => text.startsWith('{'))
    if (line === undefined) throw new Error(`autocannon gave no result: ${output}`)
    const result = JSON.parse(line) as Result // what `--json` prints, by its documentation
    return {
      requests: result.requests.total,
      requestsPerSecond: result.requests.total / result.duration,
      p50: result.latency.p50,
      p99: result.latency.p99,
      failed: result.non2xx + result.errors,
    }
  },
}
