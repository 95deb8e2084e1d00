import { count, latency, rate } from './format.js'

/** @import { Condition, Point } from '../overview/model.ts' */

/** The values of a series: null where there is none. @typedef {(number | null)[]} Column */
/** A second; without a point it makes a gap. @typedef {{ readonly time: number, readonly point: Point | null }} Row */

/** The reasons with a colour of their own, in the order of the stack, and their labels. */
const REASONS = /** @type {const} */ ([
  ['rate_limited', 'rate limited'],
  ['unauthorized', 'unauthorized'],
  ['upstream', 'device failed'],
  ['overloaded', 'overloaded'],
])
/** A second (ms). */
const STEP = 1_000

/** @template T @param {readonly T[]} values @param {(value: T) => number} amount */
export const sumOf = (values, amount) => values.reduce((sum, value) => sum + amount(value), 0)

/** @param {Point} point */
export const refusedOf = ({ refusals }) => sumOf(Object.values(refusals), (count) => count)

/**
 * The rows of a chart: the points after `from`, up to `until`. Where seconds are missing, one row without a point makes a gap.
 *
 * @param {readonly Point[]} points oldest first
 * @param {number} from ms since the Unix epoch
 * @param {number} until
 * @returns {Row[]}
 */
export function rowsBetween(points, from, until) {
  /** @type {Row[]} */
  const rows = []
  let last = from
  for (const point of points) {
    if (point.time <= from || point.time > until) continue
    if (point.time - last >= 2 * STEP) rows.push({ time: last + STEP, point: null })
    rows.push({ time: point.time, point })
    last = point.time
  }
  return rows
}

/**
 * A line or area of a chart.
 *
 * @typedef {object} Series
 * @property {string} key names the colour `--chart-KEY`
 * @property {string} label
 * @property {'area' | 'line' | 'dashed'} form areas are stacked in this order
 * @property {(point: Point) => number | null} value
 */

/**
 * @typedef {object} Plot
 * @property {string} id
 * @property {string} title
 * @property {readonly Series[]} series
 * @property {(value: number) => string} format
 * @property {boolean} log
 * @property {(points: readonly Point[]) => string} summary
 */

/** @param {readonly number[]} values */
const most = (values) => values.reduce((a, b) => Math.max(a, b), 0)
/** @param {readonly number[]} values */
const mean = (values) => sumOf(values, (value) => value) / Math.max(1, values.length)

/** @param {Point} point @param {string} reason */
const refusedAs = ({ refusals }, reason) => refusals[reason] ?? 0

/**
 * The charts of the page.
 *
 * @param {Pick<Condition, 'load' | 'enforce'>} condition
 * @returns {readonly Plot[]}
 */
export function plots({ load, enforce }) {
  /** @param {string} key @param {string} label @param {Series['value']} value @returns {Series} */
  const area = (key, label, value) => ({ key, label, form: 'area', value })
  return [
    {
      id: 'traffic',
      title: 'Requests per second',
      format: rate,
      log: false,
      series: [
        area('passed', 'passed', (p) => Math.max(0, p.requests - refusedOf(p))),
        ...REASONS.map(([reason, label]) => area(reason, label, (p) => refusedAs(p, reason))),
        area('other', 'other', (p) => refusedOf(p) - sumOf(REASONS, ([reason]) => refusedAs(p, reason))),
      ],
      summary(points) {
        const requests = points.map((point) => point.requests)
        const refused = `${rate(sumOf(points, refusedOf))} ${enforce ? 'refused' : 'would be refused'}`
        return `${rate(mean(requests))} requests a second on average, ${rate(most(requests))} at most; ${refused}.`
      },
    },
    {
      id: 'latency',
      title: 'Latency',
      format: latency,
      log: true,
      series: [
        { key: 'client', label: 'client p50', form: 'line', value: (p) => p.client?.p50 ?? null },
        { key: 'client', label: 'client p99', form: 'dashed', value: (p) => p.client?.p99 ?? null },
        { key: 'device', label: 'device p50', form: 'line', value: (p) => p.device?.p50 ?? null },
        { key: 'device', label: 'device p99', form: 'dashed', value: (p) => p.device?.p99 ?? null },
      ],
      summary(points) {
        const served = points.flatMap(({ client }) => client ?? [])
        if (served.length === 0) return 'No requests.'
        const [p50, p99] = [mean(served.map((each) => each.p50)), most(served.map((each) => each.p99))]
        return `Client p50 ${latency(p50)} on average, p99 at most ${latency(p99)}.`
      },
    },
    {
      id: 'load',
      title: 'Load of the device',
      format: rate,
      log: false,
      series: [
        { key: 'client', label: 'at the device', form: 'line', value: (p) => p.inFlight },
        { key: 'other', label: 'maximum', form: 'dashed', value: () => load.maxInFlight },
        { key: 'upstream', label: 'waiting', form: 'line', value: (p) => p.queued },
      ],
      summary(points) {
        const [inFlight, queued] = [points.map((each) => each.inFlight), points.map((each) => each.queued)]
        return `At most ${rate(most(inFlight))} at the device of ${rate(load.maxInFlight)}, ${rate(most(queued))} waiting.`
      },
    },
  ]
}

/**
 * What a chart draws for each series, row by row. An area is the sum of its series and all before it. An area of zeros has no value,
 * so it has no edge.
 *
 * @param {Plot} plot
 * @param {readonly Row[]} rows
 * @returns {Column[]}
 */
export function areasAndLines({ series }, rows) {
  const sums = rows.map(() => 0)
  return series.map(({ value, form }, index) => {
    const own = rows.map(({ point }) => (point === null ? null : value(point)))
    if (form !== 'area') return own
    return own.map((value, row) => {
      sums[row] = (sums[row] ?? 0) + (value ?? 0)
      const isEmpty = !own[row - 1] && !value && !own[row + 1]
      return value === null || (index > 0 && isEmpty) ? null : (sums[row] ?? 0)
    })
  })
}

/**
 * The axis of the values. Its ticks are equally far from each other, from the bottom to the top: steps of 1, 2 or 5 from zero, or whole
 * decades around the values.
 *
 * @param {Pick<Plot, 'log'>} plot
 * @param {readonly Column[]} columns
 * @returns {{ ticks: readonly { value: number, text: string }[], heightOf(value: number): number }} a height is between 0 and 1
 */
export function axisOf({ log }, columns) {
  const values = columns.flat().filter((value) => value !== null)
  const highest = most(values)
  if (log) {
    const lowest = Math.min(highest, ...values) || 1
    const low = Math.floor(Math.log10(Math.max(lowest, 0.01)))
    const decades = Math.max(1, Math.ceil(Math.log10(Math.max(highest, 0.02))) - low)
    return {
      ticks: ticksOf(
        decades,
        (i) => 10 ** (low + i),
        (ms) => (ms < 1_000 ? `${ms} ms` : `${ms / 1_000} s`),
      ),
      heightOf: (value) => Math.max(0, (Math.log10(value) - low) / decades),
    }
  }
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(highest / 4 || 1)))
  const step = [1, 2, 5, 10].map((times) => times * unit).find((each) => 4 * each >= highest) ?? unit
  const steps = Math.max(1, Math.ceil(highest / step))
  return { ticks: ticksOf(steps, (i) => i * step, count), heightOf: (value) => value / (steps * step) }
}

/** @param {number} last @param {(i: number) => number} level @param {(value: number) => string} textOf */
function ticksOf(last, level, textOf) {
  return Array.from({ length: last + 1 }, (_, i) => ({ value: level(i), text: textOf(level(i)) }))
}
