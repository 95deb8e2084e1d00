import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { dashboardText } from '../../deploy/grafana/dashboard.ts'
import { createMetrics } from '../../src/record/metrics.ts'
import { anchorsOf } from '../support/pages.ts'
import { colourAt, panelOf, panelsOf, queriesOf, ROOT, readDashboard } from './dashboard.ts'
import { readRules } from './rules.ts'

const dashboard = readDashboard()
const panels = panelsOf(dashboard)

describe('the dashboard', () => {
  it('is up to date; `npm run dashboard` writes it', () => {
    expect(readFileSync(join(ROOT, 'deploy/grafana/postern.json'), 'utf8')).toBe(dashboardText())
  })

  it('H163 explains every panel, and links only to headings that exist', () => {
    const unexplained = panels.filter(
      ({ type, description = '' }) => type !== 'row' && description.length < 30,
    )
    expect(unexplained.map(({ title }) => title)).toEqual([])
    const cited = panels.flatMap(({ description = '' }) => [
      ...description.matchAll(/\b((?:docs|deploy)\/[\w-]+\.md)(?:#([\w-]+))?/g),
    ])
    expect(cited.length).toBeGreaterThan(15)
    for (const [text, page = '', anchor] of cited) {
      expect(existsSync(join(ROOT, page)), text).toBe(true)
      if (anchor !== undefined) expect(anchorsOf(page), text).toContain(anchor)
    }
  })

  it('H163 shows a certificate red when it has ended, orange while its alert fires, then green', () => {
    const panel = panelOf(dashboard, 'Certificate ends in')
    const early = thresholdOf('PosternCertificateExpires', /< (\d+) \* 86400/) * 86_400
    const times = [-86_400, -1, 0, 1, early - 1, early, 2 * early]
    expect(times.map((time) => colourAt(panel, time))).toEqual([
      'red',
      'red',
      'red',
      'orange',
      'orange',
      'green',
      'green',
    ])
  })

  it('H326 has a row for each sidecar, which opens it for that one alone', () => {
    const { targets = [], fieldConfig } = panelOf(dashboard, 'Sidecars')
    expect(targets.length).toBeGreaterThan(8)
    for (const { expr } of targets) expect(expr).toMatch(/^max by \(instance\b/)
    const links = (fieldConfig?.overrides ?? [])
      .filter(({ matcher }) => matcher.options === 'Sidecar')
      .flatMap(({ properties }) => properties.filter(({ id }) => id === 'links'))
    const [, url = ''] = /"url":"([^"]*)"/.exec(JSON.stringify(links)) ?? []
    expect(url).toMatch(new RegExp(`^/d/${dashboard.uid}/`))
    // Grafana puts the value of the cell in, with the time and the data source of the board.
    expect(url).toContain(`var-instance=\${__value.raw}&$__url_time_range`)
    // Every other panel asks only for the sidecars that are chosen.
    for (const { expr } of queriesOf(dashboard)) expect(expr).toContain('instance=~"$instance"')
  })

  it.each([
    ['Response time (p95)', 'PosternDeviceSlow', / > (\S+)$/, 0],
    ['Time of the device', 'PosternDeviceSlow', / > (\S+)$/, 0],
    ['Delay of the event loop (p99)', 'PosternBusy', / > (\S+)$/, 0],
    ['Devices down', 'PosternDeviceDown', / == (\S+)$/, 1],
    ['Tokens that a restart would lose', 'PosternTokensUnsaved', / > (\S+)$/, 1],
    ['Requests waiting for the device', 'PosternQueueing', / > (\S+)$/, 1],
  ] as const)('H163 colours "%s" from the threshold of %s on', (title, alert, pattern, more) => {
    const panel = panelOf(dashboard, title)
    const threshold = thresholdOf(alert, pattern) + more
    expect([0, threshold - 0.01, threshold, threshold + 1].map((value) => colourAt(panel, value))).toEqual([
      'green',
      'green',
      expect.stringMatching(/^(?:orange|red)$/),
      expect.stringMatching(/^(?:orange|red)$/),
    ])
  })

  it('fills its lines: no panel beside, above or below another leaves a gap', () => {
    const lines = Map.groupBy(panels, ({ gridPos }) => gridPos.y)
    for (const [y, line] of lines) {
      expect([y, line.reduce((sum, { gridPos }) => sum + gridPos.w, 0)]).toEqual([y, 24])
      expect(new Set(line.map(({ gridPos }) => gridPos.h)).size).toBe(1)
    }
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
  })

  it('asks for metrics that the sidecar exports, and for every metric of its own', async () => {
    const metrics = createMetrics({ version: '0', node: '0' })
    metrics.sharedStore()
    const known = [...(await metrics.text()).matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name)
    const asked = new Set(
      queriesOf(dashboard).flatMap(({ expr }) =>
        [...expr.matchAll(/\b(?:postern|process|nodejs)_\w+/g)].map(([name]) =>
          name.replace(/_(?:bucket|sum|count)$/, ''),
        ),
      ),
    )
    expect([...asked].filter((name) => !known.includes(name))).toEqual([])
    const own = known.filter((name) => name?.startsWith('postern_') && !asked.has(name))
    // The start of the certificate's life matters to an alert only.
    expect(own).toEqual(['postern_certificate_not_before_timestamp_seconds'])
  })
})

/** The number in the expression of an alert. */
function thresholdOf(alert: string, pattern: RegExp): number {
  const expr =
    readRules()
      .find((rule) => rule.alert === alert)
      ?.expr.trim() ?? ''
  const found = Number(pattern.exec(expr)?.[1])
  if (Number.isNaN(found)) throw new Error(`${alert} has no ${pattern}: ${expr}`)
  return found
}
