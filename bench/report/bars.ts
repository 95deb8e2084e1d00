import type { BarChart, BarRow } from '../figure.ts'
import { rounded } from '../format.ts'
import { at, escapeText, short } from './markup.ts'
import { linearScale, type Scale } from './scale.ts'

const WIDTH = 760
const BAR = 16
const GAP = 8
const CHARACTER = 7.4
const WIDEST_LABEL = 370
const VALUE = 64
const BELOW = 22

/** Horizontal bars: long names fit beside them. */
export function drawBars({ series, rows, mark }: BarChart): string {
  const label = Math.min(WIDEST_LABEL, 12 + CHARACTER * Math.max(...rows.map((row) => row.label.length)))
  const top = mark === undefined ? 4 : 20
  const rowHeight = BAR * series.length + GAP
  const bottom = top + rowHeight * rows.length
  const largest = Math.max(
    ...rows.flatMap(({ values, range }) => [...values, ...(range ?? [])].map((v) => v ?? 0)),
  )
  const scale = linearScale(Math.max(largest, mark?.value ?? 0), [label, WIDTH - VALUE])
  return [
    `<svg viewBox="0 0 ${WIDTH} ${bottom + BELOW}" role="img"`,
    ' aria-labelledby="%TITLE%">',
    ...scale.ticks.map((tick) => {
      const x = at(scale.place(tick))
      return (
        `<line class="grid" x1="${x}" x2="${x}" y1="${top}" y2="${bottom}"/>` +
        `<text class="tick" x="${x}" y="${bottom + 15}" text-anchor="middle">${short(tick)}</text>`
      )
    }),
    ...rows.map((row, i) => drawRow(row, series.length, scale, label, top + i * rowHeight)),
    ...(mark === undefined ? [] : [drawMark(mark, scale, top, bottom)]),
    '</svg>',
  ].join('')
}

function drawRow(row: BarRow, series: number, scale: Scale, label: number, top: number): string {
  const middle = top + (BAR * series + GAP) / 2
  const name = `<text class="${row.ours ? 'label ours' : 'label'}" x="${at(label - 8)}" y="${at(middle + 4)}" text-anchor="end">${escapeText(row.label)}</text>`
  const bars = row.values.map((value, i) => {
    const y = top + GAP / 2 + i * BAR
    const number = `<text class="value" x="%X%" y="${at(y + BAR / 2 + 4)}">${rounded(value)}</text>`
    if (value === undefined) return number.replace('%X%', at(label + 4))
    const end = scale.place(Math.max(0, value))
    const whisker = i === 0 && row.range !== undefined ? drawRange(row.range, scale, y + BAR / 2) : ''
    const far = i === 0 && row.range !== undefined ? scale.place(row.range[1]) : end
    return (
      `<rect class="bar ${row.ours ? 'ours' : 'other'} part${i}" x="${at(label)}" y="${at(y + 1)}"` +
      ` width="${at(Math.max(1, end - label))}" height="${BAR - 2}" rx="2"/>` +
      whisker +
      number.replace('%X%', at(Math.max(end, far) + 6))
    )
  })
  return name + bars.join('')
}

/** A whisker from the lowest round to the highest. */
function drawRange([low, high]: readonly [number, number], scale: Scale, y: number): string {
  const [from, to] = [scale.place(low), scale.place(high)]
  if (to - from < 3) return ''
  const end = (x: number): string => `M${at(x)} ${at(y - 4)}v8`
  return `<path class="range" d="M${at(from)} ${at(y)}H${at(to)}${end(from)}${end(to)}"/>`
}

function drawMark(mark: NonNullable<BarChart['mark']>, scale: Scale, top: number, bottom: number): string {
  const x = at(scale.place(mark.value))
  return (
    `<line class="mark" x1="${x}" x2="${x}" y1="${top - 4}" y2="${bottom}"/>` +
    `<text class="tick" x="${x}" y="${top - 8}" text-anchor="middle">${escapeText(mark.label)}</text>`
  )
}
