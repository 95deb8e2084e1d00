import { count, timeOfDay } from './format.js'

/** @typedef {import('./chart-data.js').Plot} Plot */
/** @typedef {import('./chart-data.js').Series} Series */
/** @typedef {import('uplot')} UPlot */
/** @typedef {import('uplot').Options} Options */
/** @typedef {import('uplot').Axis} Axis */
/** @typedef {import('uplot').Series} Line */

/** The chart library: uplot.js is a classic script, which index.html loads first. */
export const { uPlot } = /** @type {Window & { uPlot: typeof import('uplot') }} */ (window)

/** A colour of the present theme: a canvas does not understand `light-dark()`. @param {string} name of a custom property in style.css */
function colour(name) {
  const { style } = document.head
  style.color = `var(--${name})`
  return getComputedStyle(document.head).color
}

/**
 * Whole decades around the values: a tick at each power of ten.
 *
 * @param {number | null} min
 * @param {number | null} max
 * @returns {[number, number]}
 */
export function logRange(min, max) {
  const low = Math.floor(Math.log10(Math.max(min ?? 1, 0.01)))
  const high = Math.ceil(Math.log10(Math.max(max ?? 10, 0.02)))
  return [10 ** low, 10 ** Math.max(high, low + 1)]
}

/** @param {number} tick s */
export const shortTime = (tick) => timeOfDay(tick * 1_000).slice(0, tick % 60 === 0 ? 5 : 8)

/** @param {Partial<Axis>} more @returns {Axis} */
export function axis(more) {
  const [text, line] = [colour('muted'), colour('grid')]
  return {
    stroke: text,
    font: '11px system-ui, sans-serif',
    grid: { stroke: line, width: 1 },
    ticks: { stroke: line, width: 1, size: 4 },
    gap: 3,
    ...more,
  }
}

/** @param {Plot} plot @returns {Axis} */
export function yAxis({ log }) {
  if (!log)
    return axis({
      size: (_, values) => Math.max(38, ...(values ?? []).map((text) => 12 + 7 * text.length)),
      space: 30,
      values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? count(tick) : '')),
    })
  return axis({
    size: 56,
    splits: (_, _axis, min, max) => decades(min, max),
    values: (_, ticks) => ticks.map(decadeText),
  })
}

/**
 * The text of a decade (ms). uPlot passes null for a tick that gets no text, because it is too near to another one.
 *
 * @param {number | null} tick
 */
export function decadeText(tick) {
  if (tick === null) return ''
  return tick >= 1_000 ? `${tick / 1_000} s` : `${tick} ms`
}

/** The powers of ten between two of them. @param {number} min @param {number} max */
function decades(min, max) {
  const first = Math.round(Math.log10(min))
  return Array.from({ length: Math.round(Math.log10(max)) - first + 1 }, (_, i) => 10 ** (first + i))
}

/** @param {Series} series @returns {Line} */
export function lineOf({ key, label, form }) {
  const stroke = colour(`chart-${key}`)
  return {
    label,
    stroke,
    width: form === 'area' ? 0 : 1.5,
    ...(form === 'area' ? { fill: stroke } : {}),
    ...(form === 'dashed' ? { dash: [3, 3] } : {}),
    // A second between two gaps has no line, so it gets a point.
    points: {
      size: 3,
      fill: stroke,
      filter: (self, index) => alone(/** @type {readonly (number | null)[]} */ (self.data[index] ?? [])),
    },
  }
}

/** The indexes of the values between two gaps. @param {readonly (number | null)[]} column */
function alone(column) {
  return column.flatMap((value, i) =>
    value !== null && column[i - 1] == null && column[i + 1] == null ? [i] : [],
  )
}
