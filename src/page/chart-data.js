import { count, latency, rate, words } from './format.js'

/** @import { Condition, Point } from '../overview/model.ts' */

/** The values of a series: null where there is none. @typedef {(number | null)[]} Column */
/** A second; without a point it makes a gap. @typedef {{ readonly time: number, readonly point: Point | null }} Row */

/** The reasons with a colour of their own, in the order of the stack. */
const REASONS = ['rate_limited', 'unauthorized', 'upstream', 'overloaded']
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
 * What a chart draws, one line per series.
 *
 * @typedef {object} Series
 * @property {string} key names the colour `--chart-KEY`
 * @property {string} label
 * @property {(point: Point) => number | null} value
 * @property {'area' | 'line' | 'dashed'} form areas are stacked in this order
 */

/**
 * @typedef {object} Plot
 * @property {string} id
 * @property {readonly Series[]} series
 * @property {(value: number) => string} format
 * @property {boolean} log
 * @property {(points: readonly Point[]) => string} summary
 */

/** @param {readonly number[]} values */
const most = (values) => values.reduce((a, b) => Math.max(a, b), 0)
/** @param {readonly number[]} values */
const mean = (values) => sumOf(values, (value) => value) / Math.max(1, values.length)

/**
 * The charts of the page.
 *
 * @param {() => Pick<Condition, 'load' | 'enforce'> | null} condition the present one
 * @returns {readonly Plot[]}
 */
export function plots(condition) {
  const maximum = () => condition()?.load.maxInFlight ?? null
  return [
    {
      id: 'traffic',
      format: rate,
      log: false,
      series: [
        {
          key: 'passed',
          label: 'passed',
          form: 'area',
          value: (p) => Math.max(0, p.requests - refusedOf(p)),
        },
        ...REASONS.map((reason) => ({
          key: reason,
          label: reason === 'upstream' ? 'device failed' : words(reason),
          form: /** @type {const} */ ('area'),
          value: (/** @type {Point} */ { refusals }) => refusals[reason] ?? 0,
        })),
        {
          key: 'other',
          label: 'other',
          form: 'area',
          value: (p) => refusedOf(p) - sumOf(REASONS, (reason) => p.refusals[reason] ?? 0),
        },
      ],
      summary: (points) => {
        const requests = points.map((point) => point.requests)
        const refused = sumOf(points, refusedOf)
        return `${rate(mean(requests))} requests a second on average, ${rate(most(requests))} at most; ${rate(refused)} ${condition()?.enforce === false ? 'would be refused' : 'refused'}.`
      },
    },
    {
      id: 'latency',
      format: latency,
      log: true,
      series: [
        { key: 'client', label: 'client p50', form: 'line', value: (p) => p.client?.p50 ?? null },
        { key: 'client', label: 'client p99', form: 'dashed', value: (p) => p.client?.p99 ?? null },
        { key: 'device', label: 'device p50', form: 'line', value: (p) => p.device?.p50 ?? null },
        { key: 'device', label: 'device p99', form: 'dashed', value: (p) => p.device?.p99 ?? null },
      ],
      summary: (points) => {
        const p50 = points.flatMap(({ client }) => (client === null ? [] : [client.p50]))
        const p99 = points.flatMap(({ client }) => (client === null ? [] : [client.p99]))
        return p50.length === 0
          ? 'No requests.'
          : `Client p50 ${latency(mean(p50))} on average, p99 at most ${latency(most(p99))}.`
      },
    },
    {
      id: 'load',
      format: rate,
      log: false,
      series: [
        { key: 'client', label: 'at the device', form: 'line', value: (p) => p.inFlight },
        { key: 'other', label: 'maximum', form: 'dashed', value: maximum },
        { key: 'upstream', label: 'waiting', form: 'line', value: (p) => p.queued },
      ],
      summary: (points) => {
        const inFlight = most(points.map((point) => point.inFlight))
        const queued = most(points.map((point) => point.queued))
        const of = maximum()
        return `At most ${rate(inFlight)} at the device${of === null ? '' : ` of ${rate(of)}`}, ${rate(queued)} waiting.`
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
