import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDirectory } from '../support/certificate.ts'
import { run } from '../support/tools.ts'
import { ROOT } from './dashboard.ts'

/** The minutes for which the first scrape lasts, and when the alert is looked for: after the longest `for` of a rule. */
const CALM = 5
const END = 240

type Sample = readonly [series: string, value: number]

/** The samples in the text of `/metrics`. */
function samplesOf(text: string): readonly Sample[] {
  const lines = text.matchAll(/^([a-z]\w*(?:\{.*\})?) (\S+)$/gm)
  return [...lines].map(([, series = '', value]) => [series, Number(value)])
}

/** The names of the families that only rise. */
function countersOf(text: string): readonly string[] {
  return [...text.matchAll(/^# TYPE (\w+) (?:counter|histogram)$/gm)].map(([, name = '']) => name)
}

/**
 * Whether promtool says that an alert of deploy/postern.rules.yml fires when what was scraped goes on: counters rise each minute by what they
 * rose between the two scrapes, and the other metrics keep their last value. Throws what promtool says if the alert does not fire then, or
 * fires already on the first scrape.
 *
 * @param before the text of `/metrics` before the trouble
 * @param after the text during it
 */
export async function expectFiring(alert: string, before: string, after: string): Promise<void> {
  const now = Date.now() / 1_000
  const first = new Map(samplesOf(before))
  const counters = countersOf(after)
  const series = samplesOf(after).flatMap(([name, value]) => {
    // The clock of promtool begins at 0.
    const since = /^\w+_timestamp_seconds\b/.test(name) ? now : 0
    const [calm, present] = [(first.get(name) ?? 0) - since, value - since]
    if (!Number.isFinite(calm) || !Number.isFinite(present)) return []
    const family = /^\w+?(?=(?:_bucket|_sum|_count)?(?:\{|$))/.exec(name)?.[0] ?? ''
    const rise = counters.includes(family) ? Math.max(0, present - calm) : 0
    return [{ series: name, values: `${calm}+0x${CALM - 1} ${present}+${rise}x${END}` }]
  })
  const fires = `ALERTS{alertname="${alert}", alertstate="firing"}`
  const promql_expr_test = [
    { expr: fires, eval_time: `${CALM - 1}m`, exp_samples: [] },
    { expr: `count(${fires}) > bool 0`, eval_time: `${END}m`, exp_samples: [{ labels: '{}', value: 1 }] },
  ]
  const file = join(temporaryDirectory(), 'rules.test.yml')
  const cases = {
    rule_files: [join(ROOT, 'deploy/postern.rules.yml')],
    evaluation_interval: '1m',
    tests: [{ interval: '1m', input_series: series, promql_expr_test }],
  }
  writeFileSync(file, JSON.stringify(cases)) // JSON is YAML
  const { code, stdout, stderr } = await run('promtool', ['test', 'rules', file])
  if (code !== 0) throw new Error(`${alert}: ${stdout}${stderr}`)
}
