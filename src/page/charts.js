import { areasAndLines, axisOf, plots, rowsBetween } from './chart-data.js'
import { byId, el, show, svg } from './dom.js'
import { now, timeOfDay } from './format.js'

/** @import { Plot, Row } from './chart-data.js' */
/** @import { State } from './state.js' */

/**
 * What all charts show.
 *
 * @typedef {object} View
 * @property {readonly Row[]} rows
 * @property {number} from the beginning of the axis of time (ms since the Unix epoch)
 * @property {number} until its end
 * @property {Row | undefined} row the one to read: under the pointer, or the last
 * @property {boolean} isPointed whether the pointer is on a chart
 */

const MINUTE = 60_000
/** A drawing in units of its own, which stretch to the place that it has. */
const [WIDTH, HEIGHT] = [1_000, 150]

/**
 * The charts. All of them show their values at the time under the pointer. A finger moves that time sideways; upwards and downwards it
 * scrolls (`touch-action` in panels.css).
 *
 * @param {State} state
 * @returns {() => void} draws the present state
 */
export function showCharts(state) {
  /** Where the pointer is on a chart, from 0 to 1 of its width; null if it is on none. @type {number | null} */
  let pointer = null

  function draw() {
    const { condition, points } = state
    if (condition === null) return
    const minutes = Number(document.querySelector('input[name=minutes]:checked')?.getAttribute('value'))
    const until = points.at(-1)?.time ?? now()
    const from = until - minutes * MINUTE
    const rows = rowsBetween(points, from, until)
    const time = pointer === null ? until : from + pointer * (until - from)
    const offBy = (/** @type {Row} */ { time: at }) => Math.abs(at - time)
    const row = rows.reduce((best, each) => (best && offBy(best) <= offBy(each) ? best : each), rows[0])
    const view = { rows, from, until, row, isPointed: pointer !== null }
    show('plots', ...plots(condition).map((plot) => chartOf(plot, view)))
  }

  /** @param {PointerEvent} event */
  function point({ target, clientX }) {
    const drawing = target instanceof Element ? target.closest('.drawing') : null
    if (drawing === null && pointer === null) return
    const { left = 0, width = 1 } = drawing?.getBoundingClientRect() ?? {}
    pointer = drawing && (clientX - left) / width
    draw()
  }

  for (const type of /** @type {const} */ (['pointerdown', 'pointermove', 'pointerleave']))
    document.addEventListener(type, point)
  byId('charts', HTMLElement).addEventListener('change', draw)
  return draw
}

/** @param {Plot} plot @param {View} view */
function chartOf(plot, view) {
  const { id, title, series, format, summary } = plot
  const { rows, row } = view
  const points = rows.flatMap(({ point }) => (point === null ? [] : [point]))
  const legend = series
    .filter(({ form, value }, i) => form !== 'area' || i === 0 || points.some((point) => value(point)))
    .map(({ key, label, form, value }) => {
      const mark = coloured(el('span', { class: `mark ${form}`, 'aria-hidden': 'true' }), key)
      const own = el('span', { class: 'value' }, textOf(row?.point ? value(row.point) : null, format))
      return el('li', { 'data-key': label }, mark, ` ${label} `, own)
    })
  const heads = ['time', ...series.map(({ label }) => label)].map((text) => el('th', { scope: 'col' }, text))
  const head = el('thead', {}, el('tr', {}, ...heads))
  const table = el('table', {}, head, el('tbody', {}, ...tableRows(plot, rows)))
  const region = { class: 'scroll', role: 'region', tabindex: '0', 'aria-label': `Table of the chart ${id}` }
  const when = el('li', { class: 'when' }, row === undefined ? '' : timeOfDay(row.time))
  return el(
    'div',
    { 'data-key': id, class: 'panel plot' },
    el('h3', {}, el('button', { type: 'button', 'aria-describedby': `why-${id}` }, title)),
    el('p', { id: `summary-${id}`, class: 'summary' }, summary(points)),
    el('div', { id: `chart-${id}`, class: 'canvas', 'aria-hidden': 'true' }, ...drawingOf(plot, view)),
    el('ul', { id: `legend-${id}`, class: 'legend' }, ...legend, when),
    el('details', { id: `table-${id}` }, el('summary', {}, 'As a table'), el('div', region, table)),
  )
}

/** The levels, the drawing and the times. @param {Plot} plot @param {View} view */
function drawingOf(plot, { rows, from, until, row, isPointed }) {
  const columns = areasAndLines(plot, rows)
  const { ticks, heightOf } = axisOf(plot, columns)
  /** @param {number} time */
  const x = (time) => ((WIDTH * (time - from)) / (until - from)).toFixed(1)
  /** @param {number} value */
  const y = (value) => (HEIGHT * (1 - heightOf(value))).toFixed(1)
  const shapes = plot.series.map(({ key, form }, i) => {
    const d = pathOf(columns[i] ?? [], (row) => x(rows[row]?.time ?? 0), y, form === 'area')
    return coloured(svg('path', { class: form, d }), key)
  })
  const size = { class: 'drawing', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none' }
  const grid = svg('path', { d: ticks.map(({ value }) => `M0 ${y(value)}H${WIDTH}`).join('') })
  const cursor = isPointed && row ? `M${x(row.time)} 0V${HEIGHT}` : ''
  const distance = Math.max(15_000, MINUTE * Math.floor((until - from) / MINUTE / 5))
  const times = timesBetween(from, until, distance).map((time) => {
    const text = timeOfDay(time).slice(0, time % MINUTE === 0 ? 5 : 8)
    return svg('text', { x: `${Number(x(time)) / 10}%`, y: '1.2em' }, new Text(text))
  })
  return [
    el('ul', { class: 'levels' }, ...ticks.map(({ text }) => el('li', {}, text))),
    // A lower area is drawn over a higher one.
    svg('svg', size, grid, ...shapes.toReversed(), svg('path', { class: 'cursor', d: cursor })),
    svg('svg', { class: 'times' }, ...times),
  ]
}

/**
 * The path of a series, with a gap where it has no value. A value between two gaps is a path without length, which shows as a dot.
 *
 * @param {readonly (number | null)[]} column
 * @param {(row: number) => string} x
 * @param {(value: number) => string} y
 * @param {boolean} isArea down to zero
 */
function pathOf(column, x, y, isArea) {
  let path = ''
  column.forEach((value, row) => {
    if (value === null) return
    const begins = column[row - 1] == null
    path += begins ? `M${x(row)} ${isArea ? `${HEIGHT}V` : ''}${y(value)}` : `L${x(row)} ${y(value)}`
    if (column[row + 1] == null) path += isArea ? `V${HEIGHT}` : begins ? 'h0' : ''
  })
  return path
}

/** The ticks of the axis of time, without those that an edge would cut, also at 320 px. @param {number} from @param {number} until @param {number} distance ms */
function timesBetween(from, until, distance) {
  const edge = 0.1 * (until - from)
  const first = Math.ceil((from + edge) / distance) * distance
  return Array.from({ length: (until - edge - first) / distance + 1 }, (_, i) => first + i * distance)
}

/** One row for each minute: its last second. @param {Plot} plot @param {readonly Row[]} rows */
function tableRows({ series, format }, rows) {
  const minutes = new Map(
    rows.flatMap(({ time, point }) => (point ? [[Math.floor(time / MINUTE), point]] : [])),
  )
  return [...minutes.values()].reverse().map((point) => {
    const cells = series.map(({ value }) => el('td', {}, textOf(value(point), format)))
    return el('tr', {}, el('th', { scope: 'row' }, timeOfDay(point.time)), ...cells)
  })
}

/** @param {number | null} value @param {(value: number) => string} format */
const textOf = (value, format) => (value === null ? '–' : format(value))

/** @template {SVGElement | HTMLElement} T @param {T} element @param {string} key of the colour @returns {T} */
function coloured(element, key) {
  element.style.setProperty('--colour', `var(--chart-${key})`)
  return element
}
