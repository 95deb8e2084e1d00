const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const SHORT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const NUMBER = new Intl.NumberFormat('en')
const TIME = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const DATE = new Intl.DateTimeFormat('sv-SE', { year: 'numeric', month: '2-digit', day: '2-digit' })

/** The difference between the sidecar's clock and this machine's (ms). */
let ahead = 0
/** A difference up to this (ms) is no difference of the clocks. */
const TRAVEL = 1_000

/**
 * Follows the clock of the sidecar, so ages and countdowns are right on a machine whose clock is wrong. A small difference is the time
 * that the event travelled: it changes nothing, so that countdowns do not jump.
 *
 * @param {number} sidecar its present time (ms since the Unix epoch)
 */
export function setClock(sidecar) {
  if (Math.abs(sidecar - now()) > TRAVEL) ahead = sidecar - Date.now()
}

/** The sidecar's present time (ms since the Unix epoch). */
export function now() {
  return Date.now() + ahead
}

/** This machine's time (ms since the Unix epoch), for how long the page has heard nothing. */
export function localNow() {
  return Date.now()
}

/** A whole number with thousands separators. @param {number} value */
export function count(value) {
  return NUMBER.format(Math.round(value))
}

/** A sum that may have grown for years: in short from a million on, `12.3M`. @param {number} value */
export function total(value) {
  return value < 1_000_000 ? count(value) : SHORT.format(value)
}

/** A part of a whole: `83 %`, `0.4 %`. @param {number} part @param {number} whole */
export function share(part, whole) {
  const percent = whole === 0 ? 0 : (100 * part) / whole
  return `${percent > 0 && percent < 10 ? percent.toFixed(1) : Math.round(percent)} %`
}

/** A rate or mean: one decimal below ten, none above. @param {number} value */
export function rate(value) {
  return value < 10 && !Number.isInteger(value) ? value.toFixed(1) : count(value)
}

/** A length of time in its largest unit: `12 s`, `3 min`, `5 h`, `61 d`. @param {number} ms */
export function span(ms) {
  if (ms < MINUTE) return `${Math.max(0, Math.floor(ms / SECOND))} s`
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)} h`
  return `${NUMBER.format(Math.floor(ms / DAY))} d`
}

/** A countdown: like `span`, with the seconds below an hour. `3:07`, `12 s`. @param {number} ms */
export function countdown(ms) {
  const seconds = Math.max(0, Math.ceil(ms / SECOND))
  if (seconds < 60 || seconds >= 3_600) return span(seconds * SECOND)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/** A latency: `0.4 ms`, `38 ms`, `1.24 s`. @param {number} ms */
export function latency(ms) {
  if (ms > 0 && ms < 0.1) return `${ms.toFixed(2)} ms`
  if (ms < 10) return `${ms.toFixed(1)} ms`
  if (ms < SECOND) return `${Math.round(ms)} ms`
  return `${(ms / SECOND).toFixed(ms < 10 * SECOND ? 2 : 1)} s`
}

/** A time of day of this machine's zone: `12:03:10`. @param {number} time ms since the Unix epoch */
export function timeOfDay(time) {
  return TIME.format(time)
}

/** A date of this machine's zone: `2026-11-22`. @param {number} time ms since the Unix epoch */
export function date(time) {
  return DATE.format(time)
}

/**
 * The time of day if it is less than 12 hours from now, and with the date otherwise.
 *
 * @param {number} time ms since the Unix epoch
 * @param {number} [present]
 */
export function moment(time, present = now()) {
  return Math.abs(present - time) < DAY / 2 ? timeOfDay(time) : `${date(time)} ${timeOfDay(time)}`
}

/** The name of a refusal as words: `rate_limited` is `rate limited`. @param {string} reason */
export function words(reason) {
  return reason.replaceAll(/[_-]/g, ' ')
}

/**
 * What the strict rules refuse in a response of the device.
 *
 * @param {{ readonly fault: string, readonly bytes: string }} malformed
 */
export function faultText({ fault, bytes }) {
  return `${fault} (${bytes})`
}
