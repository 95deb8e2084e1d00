import { describe, expect, it } from 'vitest'
import type { Table } from '../../bench/figure.ts'
import { renderPage } from '../../bench/report/page.ts'
import { aCheck, aResult } from './a-result.ts'

const RATES: Table = {
  caption: 'Rates <b>',
  head: ['peer', 'requests/s'],
  rows: [
    ['postern', '38123'],
    ['a "peer" & co', '-'],
  ],
}

const page = renderPage(
  aResult({
    checks: [
      aCheck({ id: 'P1 peer', reach: 0.6, value: 0.55 }),
      aCheck({ id: 'P1 other', reach: 1, value: undefined }),
    ],
    tables: [RATES, { ...RATES, caption: 'Nothing', rows: [] }],
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

  it('has a title over each table with rows, and its numbers stand right', () => {
    expect([...page.matchAll(/<h3>/g)]).toHaveLength(1)
    expect(page).not.toContain('Nothing')
    expect(page).toContain('<tr class="ours"><th scope="row">postern</th><td class="number">38123</td></tr>')
  })

  it('contains no invalid number', () => {
    expect(page).not.toMatch(/NaN|Infinity|undefined/)
  })
})
