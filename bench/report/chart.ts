import type { BarChart, Chart, LineChart, Table } from '../figure.ts'
import { rounded } from '../format.ts'
import { drawBars } from './bars.ts'
import { drawLines, legend } from './lines.ts'
import { escapeText } from './markup.ts'

/** A chart with title, legend and data table. Empty if there is no data. */
export function chartFigure(chart: Chart, id: string): string {
  const empty =
    chart.kind === 'bars' ? chart.rows.length === 0 : chart.series.every(({ points }) => points.length === 0)
  if (empty) return ''
  const unit = chart.kind === 'bars' ? chart.unit : chart.y.label
  const drawing = (chart.kind === 'bars' ? drawBars(chart) : drawLines(chart)).replace('%TITLE%', id)
  return (
    `<figure class="chart"><figcaption id="${id}">${escapeText(chart.title)} <span class="unit">${escapeText(unit)}</span></figcaption>` +
    `${chart.kind === 'bars' ? barLegend(chart) : lineLegend(chart)}${drawing}` +
    `<details><summary>As a table</summary>${tableElement(tableOf(chart))}</details></figure>`
  )
}

function barLegend({ series }: BarChart): string {
  return legend(
    series,
    (i) =>
      `<svg class="key" viewBox="0 0 24 10" aria-hidden="true"><rect class="bar other part${i}" width="24" height="10" rx="2"/></svg>`,
  )
}

function lineLegend({ series }: LineChart): string {
  return legend(
    series.map(({ name }) => name),
    (i) =>
      `<svg class="key" viewBox="0 0 24 10" aria-hidden="true"><path class="line s${i}" d="M0 5H24"/></svg>`,
  )
}

/** The data of a chart. */
function tableOf(chart: Chart): Table {
  if (chart.kind === 'bars') {
    const ranged = chart.rows.some(({ range }) => range !== undefined)
    return {
      caption: `${chart.title} (${chart.unit})`,
      head: ['', ...chart.series, ...(ranged ? ['lowest round', 'highest round'] : [])],
      rows: chart.rows.map(({ label, values, range }) => [
        label,
        ...values.map(rounded),
        ...(ranged ? [rounded(range?.[0]), rounded(range?.[1])] : []),
      ]),
    }
  }
  const xs = [...new Set(chart.series.flatMap(({ points }) => points.map(([x]) => x)))].sort((a, b) => a - b)
  return {
    caption: `${chart.title} (${chart.y.label})`,
    head: [chart.x.label, ...chart.series.map(({ name }) => name)],
    rows: sampled(xs).map((x) => [
      rounded(x),
      ...chart.series.map(({ points }) => rounded(points.find(([pointX]) => pointX === x)?.[1])),
    ]),
  }
}

/** Limit on the rows of a data table. */
const MAX_ROWS = 40

function sampled(xs: readonly number[]): readonly number[] {
  const step = Math.ceil(xs.length / MAX_ROWS)
  return xs.filter((_, i) => i % step === 0 || i === xs.length - 1)
}

export function tableElement({ caption, head, rows }: Table): string {
  const [first = '', ...others] = head
  const heads = [first, ...others].map((name) => `<th scope="col">${escapeText(name)}</th>`)
  const lines = rows.map((row) => {
    const [name = '', ...cells] = row
    return `<tr><th scope="row">${escapeText(name)}</th>${cells.map(cell).join('')}</tr>`
  })
  return `<div class="scroll" role="region" aria-label="${escapeText(caption)}" tabindex="0"><table><caption>${escapeText(caption)}</caption><thead><tr>${heads.join('')}</tr></thead><tbody>${lines.join('')}</tbody></table></div>`
}

function cell(text: string): string {
  return /^[-\d.,× %µ]+$/.test(text)
    ? `<td class="number">${escapeText(text)}</td>`
    : `<td>${escapeText(text)}</td>`
}
