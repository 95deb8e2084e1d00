const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const NUMBER = new Intl.NumberFormat('en')
const TIME = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const DATE = new Intl.DateTimeFormat('sv-SE', { year: 'numeric', month: '2-digit', day: '2-digit' })

/**
 * A whole number with thousands separators.
 *
 * @param {number} value
 */
export function count(value) {
  return NUMBER.format(Math.round(value))
}

/**
 * A rate or mean: one decimal below ten, none above.
 *
 * @param {number} value
 */
export function rate(value) {
  return value < 10 && !Number.isInteger(value) ? value.toFixed(1) : count(value)
}

/**
 * A length of time in its largest unit: `12 s`, `3 min`, `5 h`, `61 d`.
 *
 * @param {number} ms
 */
export function span(ms) {
  if (ms < MINUTE) return `${Math.max(0, Math.floor(ms / SECOND))} s`
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)} h`
  return `${NUMBER.format(Math.floor(ms / DAY))} d`
}

/**
 * A countdown: like `span`, with the seconds below an hour. `3:07`, `12 s`.
 *
 * @param {number} ms
 */
export function countdown(ms) {
  const seconds = Math.max(0, Math.ceil(ms / SECOND))
  if (seconds < 60 || seconds >= 3_600) return span(seconds * SECOND)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/**
 * A latency: `0.4 ms`, `38 ms`, `1.24 s`.
 *
 * @param {number} ms
 */
export function latency(ms) {
  if (ms < 10) return `${ms.toFixed(1)} ms`
  if (ms < SECOND) return `${Math.round(ms)} ms`
  return `${(ms / SECOND).toFixed(ms < 10 * SECOND ? 2 : 1)} s`
}

/**
 * A time of day of this machine's zone: `12:03:10`.
 *
 * @param {number} time ms since the Unix epoch
 */
export function timeOfDay(time) {
  return TIME.format(time)
}

/**
 * A date of this machine's zone: `2026-11-22`.
 *
 * @param {number} time ms since the Unix epoch
 */
export function date(time) {
  return DATE.format(time)
}

/**
 * The time of day if it is less than 12 hours from now, and with the date otherwise.
 *
 * @param {number} time ms since the Unix epoch
 * @param {number} present
 */
export function moment(time, present) {
  return Math.abs(present - time) < DAY / 2 ? timeOfDay(time) : `${date(time)} ${timeOfDay(time)}`
}

/**
 * The name of a refusal as words: `rate_limited` is `rate limited`.
 *
 * @param {string} reason
 */
export function words(reason) {
  return reason.replaceAll(/[_-]/g, ' ')
}
