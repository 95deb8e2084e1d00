import { describe, expect, it } from 'vitest'
import type { Chart } from '../../bench/figure.ts'
import { renderPage } from '../../bench/report/page.ts'
import { aCheck, aResult } from './a-result.ts'

const RATES: Chart = {
  title: 'Rates <b>',
  unit: 'requests/s',
  series: ['rate'],
  rows: [
    { label: 'postern', ours: true, values: [38_123], range: [36_000, 39_000] },
    { label: 'a "peer" & co', ours: false, values: [undefined] },
  ],
}

const CURVES: Chart = {
  title: 'Memory',
  unit: 'MiB',
  by: 'clients',
  series: ['postern', 'other'],
  rows: [
    { label: '1', ours: true, values: [10, undefined] },
    { label: '1,000', ours: true, values: [0, 12.5] },
  ],
}

const page = renderPage(
  aResult({
    checks: [
      aCheck({ id: 'P1 peer', reach: 0.6, value: 0.55 }),
      aCheck({ id: 'P1 other', reach: 1, value: undefined }),
    ],
    charts: [RATES, CURVES, { ...RATES, rows: [] }],
    notes: ['a note about `this`'],
    faults: ['<script>'],
  }),
)

describe('The page', () => {
  it('loads no other resource', () => {
    expect(page).not.toMatch(/(?:src|href)="(?!#)|@import|url\(|<script/i)
  })

  it('escapes text', () => {
    expect(page).toContain('Rates &#60;b&#62;')
    expect(page).toContain('a &#34;peer&#34; &#38; co')
    expect(page).toContain('a note about <code>this</code>')
    expect(page).not.toContain('<script>')
  })

  it('shows which thresholds were missed and which were not measured', () => {
    expect(page).toContain('0.550 ×')
    expect(page).toMatch(/class="verdict short">SHORT/)
    expect(page).toMatch(/class="verdict absent">not measured/)
    expect(page).toMatch(/<b class="short">1<\/b>thresholds missed/)
    expect(page).toMatch(/<b class="fault">1<\/b>faults/)
  })

  it('has a title for every chart, and a number beside each bar', () => {
    const titles = [...page.matchAll(/<table aria-labelledby="([^"]+)"/g)].map(([, id]) => id)
    expect(titles).toHaveLength(2)
    for (const id of titles) expect(page).toContain(`<figcaption id="${id}">`)
    expect(page).toContain(
      '38123<div class="bar"><b style="width:97.8%"></b><i style="left:92.3%;width:7.7%">',
    )
    expect(page).toContain('</td><td class="number">36000</td><td class="number">39000</td>')
    expect(page).toContain('12.5<div class="bar"><b style="width:100%">')
    expect(page).toContain('0<div class="bar"><b style="width:0%">')
  })

  it('contains no invalid number', () => {
    expect(page).not.toMatch(/NaN|Infinity|undefined/)
  })
})
