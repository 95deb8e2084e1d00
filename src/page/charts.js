import { columns, plots, rowsBetween } from './chart-data.js'
import { byId, el, setText } from './dom.js'
import { now, timeOfDay } from './format.js'
import { axis, lineOf, logRange, shortTime, uPlot, yAxis } from './plot.js'

/** @typedef {import('./chart-data.js').Plot} Plot */
/** @typedef {import('./state.js').State} State */
/** @typedef {import('./plot.js').UPlot} UPlot */
/** @typedef {import('./plot.js').Options} Options */

const SYNC = 'charts'
const HEIGHT = 150
const MINUTE = 60_000

/**
 * The charts: drawn anew when the theme or the width changes. uPlot itself follows the resolution of the screen.
 *
 * @param {State} state
 * @returns {() => void} draws the present state, if a point came since
 */
export function showCharts(state) {
  const charts = plots(() => state.condition).map((plot) => createChart(plot))
  let minutes = 5
  const draw = () => {
    const until = state.points.at(-1)?.time ?? now()
    const from = until - minutes * MINUTE
    const rows = rowsBetween(state.points, from, until)
    for (const chart of charts) chart.draw(rows, from, until)
  }
  for (const choice of document.querySelectorAll('input[name=minutes]')) {
    if (!(choice instanceof HTMLInputElement)) continue
    if (choice.checked) minutes = Number(choice.value)
    choice.addEventListener('change', () => {
      minutes = Number(choice.value)
      draw()
    })
  }
  const rebuild = () => {
    for (const chart of charts) chart.rebuild()
    draw()
  }
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', rebuild)
  new ResizeObserver(() => {
    for (const chart of charts) chart.resize()
  }).observe(byId('charts', HTMLElement))
  let drawn = 0
  return () => {
    const latest = state.points.at(-1)?.time ?? 0
    if (latest === drawn) return
    drawn = latest
    draw()
  }
}

/** @param {Plot} plot */
function createChart(plot) {
  const summary = el('p', { id: `summary-${plot.id}`, class: 'summary' })
  const place = el('div', { id: `chart-${plot.id}`, class: 'canvas', 'aria-hidden': 'true' })
  const legend = el('ul', { id: `legend-${plot.id}`, class: 'legend' })
  const table = el('tbody')
  const details = el('details', { id: `table-${plot.id}` }, el('summary', {}, 'As a table'))
  byId(`plot-${plot.id}`, HTMLElement).append(summary, place, legend, details)
  const heads = ['time', ...plot.series.map(({ label }) => label)].map((text) =>
    el('th', { scope: 'col' }, text),
  )
  const region = {
    class: 'scroll',
    role: 'region',
    tabindex: '0',
    'aria-label': `Table of the chart ${plot.id}`,
  }
  details.append(el('div', region, el('table', {}, el('thead', {}, el('tr', {}, ...heads)), table)))
  details.addEventListener('toggle', () => fillTable(table, plot, rows))
  const values = plot.series.map(({ key, label, form }) => {
    const value = el('span', { class: 'value' })
    const mark = el('span', { class: `mark ${form}`, 'aria-hidden': 'true' })
    mark.style.setProperty('--colour', `var(--chart-${key})`)
    legend.append(el('li', {}, mark, ` ${label} `, value))
    return value
  })
  const when = el('li', { class: 'when' })
  legend.append(when)
  /** @type {ReturnType<typeof rowsBetween>} */
  let rows = []
  let [from, until] = [0, 0]
  let chart = build()

  /** The values under the cursor, or the latest. @param {number | null | undefined} index */
  function read(index) {
    const row = rows[index ?? rows.length - 1]
    plot.series.forEach(({ value }, i) => {
      const own = row?.point ? value(row.point) : null
      const element = values[i]
      if (element) setText(element, own === null ? '–' : plot.format(own))
    })
    setText(when, row === undefined ? '' : timeOfDay(row.time))
  }

  /** @returns {UPlot} */
  function build() {
    /** @type {Options} */
    const options = {
      width: Math.max(1, place.clientWidth),
      height: HEIGHT,
      cursor: { sync: { key: SYNC }, drag: { x: false, y: false }, y: false, points: { size: 5 } },
      legend: { show: false },
      scales: {
        x: { time: true, range: () => [from / 1_000, until / 1_000] },
        y: plot.log
          ? { distr: 3, range: (_, min, max) => logRange(min, max) }
          : { range: (_, _min, max) => [0, Math.max(1, (max ?? 0) * 1.1)] },
      },
      axes: [
        axis({
          incrs: [15, 60, 180, 300],
          space: 40,
          size: 24,
          values: (_, ticks) => ticks.map((tick) => shortTime(tick)),
        }),
        yAxis(plot),
      ],
      series: [{}, ...plot.series.map(lineOf).reverse()],
      hooks: { setCursor: [(self) => read(self.cursor.idx)] },
    }
    const made = new uPlot(options, columns(plot, rows), place)
    followFinger(made)
    return made
  }

  return {
    /**
     * @param {typeof rows} present
     * @param {number} start
     * @param {number} end
     */
    draw(present, start, end) {
      ;[rows, from, until] = [present, start, end]
      chart.setData(columns(plot, rows))
      read(chart.cursor.idx)
      const points = rows.flatMap(({ point }) => (point === null ? [] : [point]))
      plot.series.forEach(({ form, value }, i) => {
        const item = values[i]?.parentElement
        if (form === 'area' && i > 0 && item) item.hidden = !points.some((point) => value(point))
      })
      setText(summary, plot.summary(points))
      if (details.open) fillTable(table, plot, rows)
    },
    rebuild() {
      chart.destroy()
      chart = build()
    },
    resize() {
      if (place.clientWidth > 0 && place.clientWidth !== chart.width)
        chart.setSize({ width: place.clientWidth, height: HEIGHT })
    },
  }
}

/** A finger that moves sideways reads the values; upwards and downwards it scrolls (`touch-action` in panels.css). @param {UPlot} chart */
function followFinger(chart) {
  /** @param {PointerEvent} event */
  const move = ({ pointerType, clientX, clientY }) => {
    if (pointerType === 'mouse') return
    const at = chart.over.getBoundingClientRect()
    chart.setCursor({ left: clientX - at.left, top: clientY - at.top })
  }
  chart.over.addEventListener('pointerdown', move)
  chart.over.addEventListener('pointermove', move)
}

/**
 * One row for each minute: its last second.
 *
 * @param {HTMLElement} body
 * @param {Plot} plot
 * @param {ReturnType<typeof rowsBetween>} rows
 */
function fillTable(body, { series, format }, rows) {
  const minutes = new Map(
    rows.flatMap(({ time, point }) => (point ? [[Math.floor(time / MINUTE), point]] : [])),
  )
  const lines = [...minutes.values()].reverse().map((point) => {
    const values = series.map(({ value }) => value(point))
    const cells = values.map((own) => el('td', {}, own === null ? '–' : format(own)))
    return el('tr', {}, el('th', { scope: 'row' }, timeOfDay(point.time)), ...cells)
  })
  body.replaceChildren(...lines)
}
