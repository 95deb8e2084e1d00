import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { temporaryDirectory } from '../support/certificate.ts'
import { readPage, replaceIn, shellBlock } from '../support/pages.ts'
import { needs, run } from '../support/tools.ts'
import { ROOT } from './dashboard.ts'
import { readRules } from './rules.ts'

interface Case {
  readonly name: string
  readonly input_series: readonly { readonly series: string }[]
  readonly promql_expr_test: readonly { readonly exp_samples: readonly { readonly labels: string }[] }[]
}

const deploy = (name: string): string => join(ROOT, 'deploy', name)
const rules = readRules()
// A file of this repository; promtool checks its form in test/deploy.test.ts.
const { tests } = parse(readFileSync(deploy('postern.rules.test.yml'), 'utf8')) as { tests: readonly Case[] }

describe('H165 each alert', () => {
  const page = readPage('docs/alerts.md')
  const [ofRules = '', ofThePage = ''] = page.split('\n## Only on the live page\n')
  const sectionsIn = (text: string): readonly string[] => text.split(/^### /m).slice(1)

  it('has a section that says how to check and what to do, in the order of the file', () => {
    expect(sectionsIn(ofRules).map((section) => section.split('\n')[0])).toEqual(
      rules.map(({ alert }) => alert),
    )
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

  it('fires in a test, and has the metrics of a healthy sidecar in one where nothing fires', () => {
    const fired = new Set(
      tests
        .flatMap((each) => each.promql_expr_test.flatMap(({ exp_samples }) => exp_samples))
        .map(({ labels }) => /alertname="(\w+)"/.exec(labels)?.[1]),
    )
    expect(rules.filter(({ alert }) => !fired.has(alert)).map(({ alert }) => alert)).toEqual([])

    const [healthy] = tests
    expect(healthy?.promql_expr_test.flatMap(({ exp_samples }) => exp_samples)).toEqual([])
    const given = new Set(healthy?.input_series.map(({ series }) => /^\w+/.exec(series)?.[0]))
    const asked = rules.flatMap(({ expr }) =>
      [...expr.matchAll(/\b(?:up\b|(?:postern|process|nodejs)_\w+)/g)].map(([name]) => name),
    )
    expect(asked.filter((name) => !given.has(name))).toEqual([])
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
