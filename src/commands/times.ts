import { parseDuration } from '../config/units.ts'

// How commands print times for people, and read the times that people type.

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** A length of time (ms) in its largest unit: `12s`, `3m`, `5h`, `61d`. */
export function spanOf(time: number): string {
  if (time < MINUTE) return `${Math.max(0, Math.floor(time / SECOND))}s`
  if (time < HOUR) return `${Math.floor(time / MINUTE)}m`
  return time < 2 * DAY ? `${Math.floor(time / HOUR)}h` : `${Math.floor(time / DAY)}d`
}

/** A time (ms since the Unix epoch) to the second: `2026-11-22T08:16:12Z`. */
export function timeText(time: number): string {
  return `${new Date(time).toISOString().slice(0, -'.000Z'.length)}Z`
}

/**
 * A length of time that a person typed for a flag (ms); undefined if it is invalid. It needs a unit: a bare number would be seconds, as in
 * the configuration, but is probably meant as days.
 */
export function typedDuration(text: string): number | undefined {
  const parsed = /[a-z]$/.test(text) ? parseDuration(text) : undefined
  return parsed !== undefined && 'value' in parsed ? parsed.value : undefined
}
