import { execFileSync } from 'node:child_process'
import { appendFileSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { firstConfiguration } from '../../src/config/first-configuration.ts'
import { validityOf } from '../../src/listen/tls-pair.ts'
import { DAY, KINDS, SECOND } from '../../src/overview/alarm-kinds.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { blocksOf, readPage, replaceIn, shellBlock } from '../support/pages.ts'
import { needs, run } from '../support/tools.ts'
import { ROOT } from './dashboard.ts'
import { readRules } from './rules.ts'

interface Case {
  readonly name: string
  readonly input_series: readonly { readonly series: string }[]
  readonly promql_expr_test?: readonly { readonly exp_samples: readonly { readonly labels: string }[] }[]
}

const deploy = (name: string): string => join(ROOT, 'deploy', name)
const rules = readRules()
// A file of this repository; promtool checks its form in test/deploy.test.ts.
const { tests } = parse(readFileSync(deploy('postern.rules.test.yml'), 'utf8')) as { tests: readonly Case[] }

describe('H165 each alert', () => {
  const page = readPage('docs/alerts.md')
  const [ofRules = '', ofThePage = ''] = page.split('\n## Alarms without an alert\n')
  const sectionsIn = (text: string): readonly string[] => text.split(/^### /m).slice(1)

  it('has a section that says how to check and what to do, in the order of the file', () => {
    const sections = sectionsIn(ofRules).map((section) => section.split('\n')[0])
    expect(sections, 'the sections of docs/alerts.md').toEqual(rules.map(({ alert }) => alert))
    for (const section of [...sectionsIn(ofRules), ...sectionsIn(ofThePage)]) {
      expect(section).toMatch(/^\w+\n\n[A-Z]/)
      expect(section).toMatch(/^\*\*Check\*\*: /m)
      expect(section).toMatch(/^\*\*Do\*\*: /m)
    }
  })

  it.each(rules.map((rule) => [rule.alert, rule] as const))(
    '%s explains itself and names its section',
    (alert, rule) => {
      const { summary = '', description = '', runbook } = rule.annotations
      expect(summary.length).toBeGreaterThan(20)
      expect(description.length).toBeGreaterThan(20)
      expect(runbook).toBe(`docs/alerts.md#${alert.toLowerCase()}`)
      expect(['critical', 'warning', 'info']).toContain(rule.labels.severity)
    },
  )

  // It is about no sidecar: none is scraped.
  const OF_NONE = 'PosternAbsent'

  it.each(rules.filter(({ alert }) => alert !== OF_NONE).map((rule) => [rule.alert, rule] as const))(
    'H326 %s says which sidecar it is about, and keeps the labels of its target',
    (_alert, { expr, annotations }) => {
      expect(annotations.summary).toContain('{{ $labels.instance }}')
      // `by`, and an aggregation without labels, drop those that the scrape job gives a target, such as `device`.
      expect(expr).not.toMatch(/\b(?:by|on|ignoring)\b/)
      expect(expr).not.toMatch(/\b(?:sum|max|min|avg|count)\s*\(/)
      const dropped = [...expr.matchAll(/\bwithout \(([^)]*)\)/g)].flatMap(([, labels = '']) =>
        labels.split(', '),
      )
      for (const own of ['instance', 'device', 'job']) expect(dropped).not.toContain(own)
    },
  )

  it.each(rules.map((rule) => [rule.alert, rule] as const))(
    '%s writes figures as people do: no thousandths, and nothing that is the address of the sidecar passes for the device',
    (_alert, { annotations }) => {
      const text = Object.values(annotations).join('\n')
      // It writes 0.39 as "390.7m", and 2000 as "2k".
      expect(text).not.toMatch(/\bhumanize\s*}}/)
      expect(text).not.toContain('behind {{ $labels.instance }}')
    },
  )

  it('fires in a test, and has the metrics of a healthy sidecar in one where nothing fires', () => {
    const fired = new Set(
      tests
        .flatMap(({ promql_expr_test = [] }) => promql_expr_test.flatMap(({ exp_samples }) => exp_samples))
        .map(({ labels }) => /alertname="(\w+)"/.exec(labels)?.[1]),
    )
    const silent = rules.filter(({ alert }) => !fired.has(alert)).map(({ alert }) => alert)
    expect(silent, 'no case of postern.rules.test.yml expects them to fire').toEqual([])

    const [healthy] = tests
    expect(healthy?.promql_expr_test?.flatMap(({ exp_samples }) => exp_samples)).toEqual([])
    const given = new Set(healthy?.input_series.map(({ series }) => /^\w+/.exec(series)?.[0]))
    const asked = rules.flatMap(({ expr }) =>
      [...expr.matchAll(/\b(?:up\b|(?:postern|process|nodejs)_\w+)/g)].map(([name]) => name),
    )
    const absent = asked.filter((name) => !given.has(name))
    expect(absent, 'the first case of postern.rules.test.yml, the healthy one, lacks them').toEqual([])
  })
})

const UNITS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A duration of Prometheus (ms): `5m`. */
function durationOf(text: string): number {
  const [, number, unit = ''] = /^(\d+)([smhd])$/.exec(text) ?? []
  // Proof of the cast: the pattern has only these.
  return Number(number) * UNITS[unit as keyof typeof UNITS]
}

describe('H291 an alarm of the sidecar', () => {
  const withAlert = Object.entries(KINDS).filter(([, { alert }]) => alert !== null)

  it.each(withAlert)('%s has the figure, the thresholds and the times of its alert', (name, kind) => {
    const { figure, level, alert } = kind
    const rule = rules.find((each) => each.alert === name) ?? expect.fail('there is no such alert')
    const { expr, labels } = rule
    expect(labels.severity).toBe(alert?.severity ?? level)
    expect(durationOf(rule.for ?? '0s')).toBe(alert?.for)
    const windows = [...expr.matchAll(/\[(\w+)\]/g)].map(([, window = '']) => durationOf(window))
    expect([...new Set([0, ...windows])]).toEqual([...new Set([0, alert?.over])])
    // `time()` and 0 are the bounds of a state.
    const bounds = [...expr.matchAll(/[<>=]=? (\d[\d.]*)(?: \* (\d+))?/g)]
      .map(([, number, times = 1]) => Number(number) * Number(times))
      .filter((bound) => bound !== 0)
    expect(bounds).toEqual([alert?.threshold, alert?.events].filter((bound) => bound !== 0))
    for (const [metric] of figure.matchAll(/\bpostern_\w+/g)) expect(expr).toContain(metric)
    expect(figure).toMatch(/^postern_/)
  })

  it('has a section under its alert, or under those without one', () => {
    const [ofRules = '', others = ''] = readPage('docs/alerts.md').split('\n## Alarms without an alert\n')
    const sections = (text: string) => [...text.matchAll(/^### (\w+)$/gm)].map(([, name = '']) => name)
    const without = Object.entries(KINDS).flatMap(([name, { alert }]) => (alert === null ? [name] : []))
    expect(sections(others).sort()).toEqual(without.sort())
    expect(sections(ofRules)).toEqual(expect.arrayContaining(withAlert.map(([name]) => name)))
  })

  it('warns of a certificate a day after the log and `check` do, when an ACME client should have renewed it', () => {
    const until = 90 * DAY
    const notice = KINDS.PosternCertificateExpires.here.threshold * SECOND + DAY
    const period = { from: { at: 0, of: '' }, until: { at: until, of: '' } }
    const states = [-1, 0].map((more) => validityOf(period, until - notice + more))
    expect(states).toEqual(['valid', 'expiring'])
  })
})

describe('docs/watching.md', () => {
  const EXAMPLES = '/usr/share/doc/postern/examples'
  const files = ['prometheus.yml', 'postern.rules.yml', 'grafana/postern.json', 'grafana/provisioning.yaml']

  /** Runs a block with the folders of a machine in a temporary one, which has the files of the package. */
  function tryOn(folder: string, block: string): void {
    const moved = block.replaceAll(/ \/(?:usr|etc|var)\//g, (path) => ` ${folder}${path.slice(1)}`)
    execFileSync('sh', ['-euc', moved], { stdio: 'pipe' })
  }

  function machine(): string {
    const folder = temporaryDirectory()
    const [examples, prometheus] = [join(folder, EXAMPLES), join(folder, 'etc/prometheus')]
    for (const made of [examples, prometheus]) mkdirSync(made, { recursive: true })
    for (const file of files) copyFileSync(deploy(file), join(examples, basename(file)))
    copyFileSync(deploy('prometheus.yml'), join(prometheus, 'prometheus.yml'))
    return folder
  }

  it('H165 sets up the alerts, and makes their runbooks links', async () => {
    needs('promtool')
    const folder = machine()
    tryOn(folder, shellBlock('docs/watching.md', 'promtool check config'))
    tryOn(folder, shellBlock('docs/watching.md', 'runbook_url'))
    const file = join(folder, 'etc/prometheus/postern.rules.yml')
    expect((await run('promtool', ['check', 'rules', file])).code).toBe(0)
    const links = readFileSync(file, 'utf8').match(/runbook_url: https:\/\/[\w./]+alerts\.md#\w+$/gm)
    expect(links).toHaveLength(rules.length)
  })

  it('H326 makes each device a target with its name, by the commands of docs/many-devices.md', async () => {
    needs('promtool')
    const folder = machine()
    const devices = join(folder, 'etc/postern/devices')
    mkdirSync(devices, { recursive: true })
    for (const [name, listen, admin] of [
      ['boiler', '0.0.0.0:8501', '127.0.0.1:9501'],
      ['rack-3-pdu', '0.0.0.0:8502', '127.0.0.1:9502'],
    ] as const) {
      const settings = { url: 'http://192.0.2.1', title: '# t', stateDir: '/s', password: { file: '/p' } }
      const text = firstConfiguration({ ...settings, file: '/f', addresses: { listen, admin } })
      writeFileSync(join(devices, `${name}.yaml`), text)
    }
    tryOn(folder, shellBlock('docs/many-devices.md', 'postern-devices.yml'))
    const targets = join(folder, 'etc/prometheus/postern-devices.yml')
    expect(parse(readFileSync(targets, 'utf8'))).toEqual([
      { targets: ['127.0.0.1:9501'], labels: { instance: 'boiler' } },
      { targets: ['127.0.0.1:9502'], labels: { instance: 'rack-3-pdu' } },
    ])
    const [found = expect.fail('the page has no file_sd_configs')] = blocksOf('docs/many-devices.md', 'yml')
    const file = join(folder, 'etc/prometheus/prometheus.yml')
    appendFileSync(file, found)
    copyFileSync(deploy('postern.rules.yml'), join(folder, 'etc/prometheus/postern.rules.yml'))
    const checked = await run('promtool', ['check', 'config', file])
    expect([checked.code, checked.stdout + checked.stderr]).toEqual([0, expect.stringContaining('SUCCESS')])
    // Without the file that the block names, promtool warns.
    expect(checked.stdout + checked.stderr).not.toContain('does not exist')
  })

  it('H163 puts the dashboard where the provisioning file looks for it', () => {
    const folder = machine()
    const block = shellBlock('docs/watching.md', 'provisioning.yaml')
    expect(replaceIn(block, EXAMPLES, '')).not.toContain('deploy')
    tryOn(folder, block)
    const provisioning = join(folder, 'etc/grafana/provisioning/dashboards/provisioning.yaml')
    const [, path = ''] = /^ +path: (.+)$/m.exec(readFileSync(provisioning, 'utf8')) ?? []
    const dashboard = JSON.parse(readFileSync(join(folder, path, 'postern.json'), 'utf8'))
    expect(dashboard).toMatchObject({ uid: 'postern', title: 'Postern' })
  })
})
