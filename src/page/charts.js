import { areasAndLines, axisOf, plots, rowsBetween } from './chart-data.js'
import { byId, el, setText, svg } from './dom.js'
import { now, timeOfDay } from './format.js'

/** @import { Plot, Row } from './chart-data.js' */
/** @import { State } from './state.js' */

/** The rows of a chart, and what its axis of time shows. @typedef {{ rows: readonly Row[], from: number, until: number }} View */

const MINUTE = 60_000
/** The distance of two ticks of the axis of time (ms), by the minutes that it shows. */
const TICKS = new Map([
  [1, 15_000],
  [5, 60_000],
  [15, 180_000],
])
/** A drawing in units of its own, which stretch to the place that it has. */
const [WIDTH, HEIGHT] = [1_000, 150]

/**
 * The charts. All of them show their values at the time under the pointer. A finger moves that time sideways; upwards and downwards it
 * scrolls (`touch-action` in panels.css).
 *
 * @param {State} state
 * @returns {() => void} draws the present state, if a point came since
 */
export function showCharts(state) {
  const charts = plots(() => state.condition).map(createChart)
  /** @type {View} */
  let view = { rows: [], from: 0, until: 0 }
  /** Where the pointer is between the edges of a chart, from 0 to 1; undefined if it is on none. @type {number | undefined} */
  let pointer
  let minutes = 5
  let drawn = 0

  function read() {
    const { rows, from, until } = view
    const time = pointer === undefined ? until : from + pointer * (until - from)
    const row = rows.toSorted((a, b) => Math.abs(a.time - time) - Math.abs(b.time - time))[0]
    for (const chart of charts)
      chart.read(row, pointer === undefined ? undefined : across(view, row?.time ?? 0))
  }

  function draw() {
    const until = state.points.at(-1)?.time ?? now()
    const from = until - minutes * MINUTE
    view = { from, until, rows: rowsBetween(state.points, from, until) }
    for (const chart of charts) chart.draw(view, TICKS.get(minutes) ?? MINUTE)
    read()
  }

  /** @param {PointerEvent} event */
  function point({ type, pointerType, clientX, currentTarget }) {
    if (!(currentTarget instanceof Element) || (type === 'pointerleave' && pointerType !== 'mouse')) return
    const { left, width } = currentTarget.getBoundingClientRect()
    pointer = type === 'pointerleave' ? undefined : (clientX - left) / width
    read()
  }

  for (const { drawing } of charts)
    for (const type of /** @type {const} */ (['pointerdown', 'pointermove', 'pointerleave']))
      drawing.addEventListener(type, point)
  for (const choice of document.querySelectorAll('input[name=minutes]')) {
    if (!(choice instanceof HTMLInputElement)) continue
    if (choice.checked) minutes = Number(choice.value)
    choice.addEventListener('change', () => {
      minutes = Number(choice.value)
      draw()
    })
  }
  return () => {
    const latest = state.points.at(-1)?.time ?? 0
    if (latest !== drawn) draw()
    drawn = latest
  }
}

/** @param {Plot} plot */
function createChart(plot) {
  const { id, series } = plot
  const [grid, cursor] = [svg('path', { class: 'grid' }), svg('path', { class: 'cursor' })]
  const shapes = series.map(({ key, form }) => coloured(svg('path', { class: form }), key))
  const size = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none' }
  // A lower area is drawn over a higher one.
  const drawing = svg('svg', size, grid, ...shapes.toReversed(), cursor)
  const [levels, times] = [el('ul', { class: 'levels' }), el('ul', { class: 'times' })]
  const summary = el('p', { id: `summary-${id}`, class: 'summary' })
  const values = series.map(() => el('span', { class: 'value' }))
  const items = series.map(({ key, label, form }, i) =>
    el(
      'li',
      {},
      coloured(el('span', { class: `mark ${form}`, 'aria-hidden': 'true' }), key),
      ` ${label} `,
      values[i] ?? '',
    ),
  )
  const when = el('li', { class: 'when' })
  const body = el('tbody')
  const heads = ['time', ...series.map(({ label }) => label)].map((text) => el('th', { scope: 'col' }, text))
  const region = { class: 'scroll', role: 'region', tabindex: '0', 'aria-label': `Table of the chart ${id}` }
  const table = el('div', region, el('table', {}, el('thead', {}, el('tr', {}, ...heads)), body))
  const details = el('details', { id: `table-${id}` }, el('summary', {}, 'As a table'), table)
  /** @type {readonly Row[]} */
  let rows = []
  const fillTable = () => details.open && body.replaceChildren(...tableRows(plot, rows))
  details.addEventListener('toggle', fillTable)
  byId(`plot-${id}`, HTMLElement).append(
    summary,
    el('div', { id: `chart-${id}`, class: 'canvas', 'aria-hidden': 'true' }, levels, drawing, times),
    el('ul', { id: `legend-${id}`, class: 'legend' }, ...items, when),
    details,
  )

  return {
    drawing,
    /** @param {View} view @param {number} distance of two ticks of time (ms) */
    draw(view, distance) {
      rows = view.rows
      const columns = areasAndLines(plot, rows)
      const { ticks, heightOf } = axisOf(plot, columns)
      /** @param {number} value */
      const y = (value) => (HEIGHT * (1 - heightOf(value))).toFixed(1)
      columns.forEach((column, i) => {
        const isArea = series[i]?.form === 'area'
        shapes[i]?.setAttribute(
          'd',
          pathOf(column, (row) => across(view, rows[row]?.time ?? 0).toFixed(1), y, isArea),
        )
      })
      grid.setAttribute('d', ticks.map(({ value }) => `M0 ${y(value)}H${WIDTH}`).join(''))
      levels.replaceChildren(...ticks.map(({ text }) => el('li', {}, text)))
      times.replaceChildren(...timesOf(view, distance))
      const points = rows.flatMap(({ point }) => (point === null ? [] : [point]))
      series.forEach(({ form, value }, i) => {
        const item = items[i]
        if (form === 'area' && i > 0 && item) item.hidden = !points.some((point) => value(point))
      })
      setText(summary, plot.summary(points))
      fillTable()
    },
    /** Writes the values of a row. @param {Row | undefined} row @param {number | undefined} x of the pointer */
    read(row, x) {
      series.forEach(({ value }, i) => {
        const own = row?.point ? value(row.point) : null
        setText(/** @type {Element} */ (values[i]), own === null ? '–' : plot.format(own))
      })
      setText(when, row === undefined ? '' : timeOfDay(row.time))
      cursor.setAttribute('d', x === undefined ? '' : `M${x} 0V${HEIGHT}`)
    },
  }
}

/** @param {View} view @param {number} time */
const across = ({ from, until }, time) => (WIDTH * (time - from)) / (until - from)

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

/** The ticks of the axis of time, without those that an edge would cut. @param {View} view @param {number} distance */
function timesOf(view, distance) {
  const first = Math.ceil(view.from / distance) * distance
  const ticks = Array.from({ length: (view.until - first) / distance + 1 }, (_, i) => first + i * distance)
  return ticks.flatMap((time) => {
    const x = across(view, time) / WIDTH
    if (x < 0.06 || x > 0.94) return []
    const tick = el('li', {}, timeOfDay(time).slice(0, time % MINUTE === 0 ? 5 : 8))
    tick.style.insetInlineStart = `${100 * x}%`
    return [tick]
  })
}

/** One row for each minute: its last second. @param {Plot} plot @param {readonly Row[]} rows */
function tableRows({ series, format }, rows) {
  const minutes = new Map(
    rows.flatMap(({ time, point }) => (point ? [[Math.floor(time / MINUTE), point]] : [])),
  )
  return [...minutes.values()].reverse().map((point) => {
    const values = series.map(({ value }) => value(point))
    const cells = values.map((own) => el('td', {}, own === null ? '–' : format(own)))
    return el('tr', {}, el('th', { scope: 'row' }, timeOfDay(point.time)), ...cells)
  })
}

/** @template {SVGElement | HTMLElement} T @param {T} element @param {string} key of the colour @returns {T} */
function coloured(element, key) {
  element.style.setProperty('--colour', `var(--chart-${key})`)
  return element
}
