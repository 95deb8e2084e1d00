import type { Parsed } from './yaml-value.ts'

const UNITS = [
  ['GiB', 1024 ** 3],
  ['MiB', 1024 ** 2],
  ['KiB', 1024],
] as const

export const SIZE_PATTERN: RegExp = /^(\d+(?:\.\d+)?)(B|KiB|MiB|GiB)?$/

/** Reads bytes, or a number with a binary unit (`8KiB`, `1MiB`), as whole bytes. */
export function parseSize(given: string | number): Parsed<number> {
  const [, digits, unit] = SIZE_PATTERN.exec(String(given)) ?? []
  if (digits === undefined) return { problem: 'must be a size: a number of bytes, or 8KiB, 1MiB' }
  const value = Number(digits) * (UNITS.find(([name]) => name === unit)?.[1] ?? 1)
  return Number.isSafeInteger(value) ? { value } : { problem: 'must be whole bytes' }
}

/** Writes bytes in the largest unit that divides them, so that `parseSize` reads the same again. */
export function formatSize(bytes: number): string | number {
  const [unit, factor] = UNITS.find(([, each]) => bytes > 0 && bytes % each === 0) ?? ['', 1]
  return unit === '' ? bytes : `${bytes / factor}${unit}`
}
