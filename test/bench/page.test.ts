import { describe, expect, it } from 'vitest'
import type { BarChart, LineChart } from '../../bench/figure.ts'
import { renderPage } from '../../bench/report/page.ts'
import { linearScale, logScale } from '../../bench/report/scale.ts'
import { aCheck, aResult } from './a-result.ts'

const BARS: BarChart = {
  kind: 'bars',
  title: 'Rates <b>',
  unit: 'requests/s',
  series: ['rate'],
  rows: [
    { label: 'postern', ours: true, values: [38_123], range: [36_000, 39_000] },
    { label: 'a "peer" & co', ours: false, values: [undefined] },
  ],
  mark: { value: 60, label: 'the limit' },
}

const LINES: LineChart = {
  kind: 'lines',
  title: 'Memory',
  x: { label: 'clients', scale: 'log' },
  y: { label: 'MiB', scale: 'linear' },
  series: [
    {
      name: 'postern',
      ours: true,
      points: [
        [1, 10],
        [1_000, 12.5],
      ],
    },
    { name: 'other', ours: false, points: [] },
  ],
}

const page = renderPage(
  aResult({
    checks: [
      aCheck({ id: 'P1 peer', reach: 0.6, value: 0.55 }),
      aCheck({ id: 'P1 other', reach: 1, value: undefined }),
    ],
    charts: [BARS, LINES],
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

  it('has a title and a table of numbers for every chart', () => {
    const titles = [...page.matchAll(/<svg [^>]*role="img" aria-labelledby="([^"]+)"/g)].map(([, id]) => id)
    expect(titles).toHaveLength(2)
    for (const id of titles) expect(page).toContain(`<figcaption id="${id}">`)
    expect(page).toContain('<td class="number">38123</td><td class="number">36000</td>')
    expect(page).toContain('<td class="number">12.5</td>')
  })

  it('contains no invalid number', () => {
    expect(page).not.toMatch(/NaN|Infinity|undefined|%TITLE%|%X%/)
  })
})

describe('An axis', () => {
  it('begins at zero and ends at a round number beyond all values', () => {
    const { ticks, place } = linearScale(38_123, [100, 200])
    expect(ticks).toEqual([0, 10_000, 20_000, 30_000, 40_000])
    expect([place(0), place(20_000), place(40_000)]).toEqual([100, 150, 200])
  })

  it('has ticks if all values are 0', () => {
    expect(linearScale(0, [0, 10]).ticks).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1])
  })

  it('has powers of ten as ticks if it is logarithmic', () => {
    const { ticks, place } = logScale([2, 900], [0, 300])
    expect(ticks).toEqual([1, 10, 100, 1_000])
    expect(place(10)).toBeCloseTo(100)
    expect(logScale([1, 1], [0, 10]).ticks).toEqual([1, 10])
  })
})
