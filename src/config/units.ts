import type { Parsed } from './yaml.ts'

const DURATIONS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const

export const DURATION_PATTERN: RegExp = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/

/** Parses a number of seconds, or a number with a unit (`500ms`, `10s`, `5m`, `1h`, `7d`), to whole milliseconds. */
export function parseDuration(given: string | number): Parsed<number> {
  const [, digits, unit = 's'] = DURATION_PATTERN.exec(String(given)) ?? []
  const factor = DURATIONS.find(([name]) => name === unit)?.[1]
  if (digits === undefined || factor === undefined) {
    return { problem: 'must be a duration: a number of seconds, or 500ms, 10s, 5m, 1h, 7d' }
  }
  const exact = Number(digits) * factor
  const value = Math.round(exact)
  // Tolerates rounding errors (2.3 s is 2299.9999999999995 ms in binary), but not half a millisecond.
  if (Math.abs(exact - value) > 1e-6 * Math.max(1, value)) return { problem: 'must be whole milliseconds' }
  return { value }
}

/** Formats milliseconds in the largest unit that divides them; `parseDuration` parses the same value. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds === 0) return '0s'
  const [unit, factor] = DURATIONS.find(([, each]) => milliseconds % each === 0) ?? ['ms', 1]
  return `${milliseconds / factor}${unit}`
}

const SIZES = [
  ['GiB', 1024 ** 3],
  ['MiB', 1024 ** 2],
  ['KiB', 1024],
] as const

export const SIZE_PATTERN: RegExp = /^(\d+(?:\.\d+)?)(B|KiB|MiB|GiB)?$/

/** Parses bytes, or a number with a binary unit (`8KiB`, `1MiB`), to whole bytes. */
export function parseSize(given: string | number): Parsed<number> {
  const [, digits, unit] = SIZE_PATTERN.exec(String(given)) ?? []
  if (digits === undefined) return { problem: 'must be a size: a number of bytes, or 8KiB, 1MiB' }
  const value = Number(digits) * (SIZES.find(([name]) => name === unit)?.[1] ?? 1)
  return Number.isSafeInteger(value) ? { value } : { problem: 'must be whole bytes' }
}

/** Formats bytes in the largest unit that divides them; `parseSize` parses the same value. */
export function formatSize(bytes: number): string {
  const [unit, factor] = SIZES.find(([, each]) => bytes % each === 0) ?? ['B', 1]
  return `${bytes / factor}${unit}`
}
