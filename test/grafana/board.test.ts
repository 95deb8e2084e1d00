import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { boardText } from '../../deploy/grafana/dashboard.ts'
import { createMetrics } from '../../src/record/metrics.ts'
import { anchorsOf } from '../support/pages.ts'
import { panelsOf, queriesOf, ROOT, readBoard } from './board.ts'

const board = readBoard()
const panels = panelsOf(board)

describe('the dashboard', () => {
  it('is up to date; `npm run boards` writes it', () => {
    expect(readFileSync(join(ROOT, 'deploy/grafana/postern.json'), 'utf8')).toBe(boardText())
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
      queriesOf(board).flatMap(({ expr }) =>
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
