import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { unusedPort } from '../support/raw.ts'
import { until } from '../support/redis.ts'
import { ROOT } from './dashboard.ts'

/** The values of one series, oldest first. */
type Course = readonly number[]

export interface Prometheus {
  /** The series of a query since the start, a value each second. Rejects with what Prometheus says if the query is wrong. */
  courses(query: string): Promise<readonly Course[]>
  /** Resolves when every target has been scraped twice more, or has failed to be. */
  scrapedTwice(): Promise<void>
  /** The values of a label. */
  labelValues(label: string, match: string): Promise<readonly string[]>
}

/** Starts the Prometheus of this machine. It scrapes these admin listeners and evaluates the alerts once a second. */
export async function startPrometheus(targets: readonly string[]): Promise<Prometheus> {
  const folder = temporaryDirectory()
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: [join(ROOT, 'deploy/postern.rules.yml')],
    scrape_configs: [{ job_name: 'postern', static_configs: [{ targets }] }],
  }
  const file = join(folder, 'prometheus.yml')
  writeFileSync(file, JSON.stringify(config)) // JSON is YAML
  const address = `127.0.0.1:${await unusedPort()}`
  const child = spawn(
    'prometheus',
    [
      ...[`--config.file=${file}`, `--storage.tsdb.path=${join(folder, 'data')}`],
      ...[`--web.listen-address=${address}`, '--log.level=warn'],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  const complaints = text(child.stderr)
  const closed = once(child, 'close')
  closeLater(async () => {
    child.kill()
    await closed
  })
  const ended = closed.then(async () =>
    Promise.reject(new Error(`prometheus has ended: ${await complaints}`)),
  )
  ended.catch(() => {})
  const ready = until(async () => (await fetch(`http://${address}/-/ready`)).ok, 60_000)
  await Promise.race([ready, ended])
  const start = Date.now() / 1000

  async function ask(path: string, parameters: Readonly<Record<string, string>>): Promise<unknown> {
    const response = await fetch(`http://${address}/api/v1/${path}?${new URLSearchParams(parameters)}`)
    const answer = (await response.json()) as { status: string; error?: string; data: unknown } // the form of its API
    if (answer.status !== 'success') throw new Error(`${answer.error}: ${JSON.stringify(parameters)}`)
    return answer.data
  }

  async function courses(query: string): Promise<readonly Course[]> {
    const times = { start: String(start), end: String(Date.now() / 1000), step: '1s' }
    const { result } = (await ask('query_range', { query, ...times })) as {
      result: readonly { values: readonly (readonly [number, string])[] }[]
    }
    return result.map(({ values }) => values.map(([, value]) => Number(value)))
  }

  return {
    courses,
    async scrapedTwice() {
      // The first scrape from now on is within a second, so one that is later than that is the second.
      const second = Date.now() / 1000 + 1
      await pause(1_000)
      await until(async () => {
        const times = await courses('timestamp(up)')
        return times.length === targets.length && times.every((course) => (course.at(-1) ?? 0) > second)
      })
    },
    labelValues: async (label, match) =>
      (await ask(`label/${label}/values`, { 'match[]': match })) as readonly string[],
  }
}
