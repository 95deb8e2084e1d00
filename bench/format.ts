/** A number with so many digits behind the point; `-` for none. */
export function fixed(value: number | undefined, digits: number): string {
  return value === undefined || !Number.isFinite(value) ? '-' : value.toFixed(digits)
}

export function percent(part: number | undefined): string {
  return part === undefined ? '-' : `${fixed(part * 100, 0)} %`
}

/** Three digits that count, or all before the point: 0.0234, 1.25, 48.1, 1534; whole numbers as they are. */
export function rounded(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return '-'
  if (Number.isInteger(value)) return String(value)
  const before = Math.floor(Math.log10(Math.abs(value))) + 1
  return value.toFixed(Math.min(4, Math.max(0, 3 - before)))
}

/** The lowest and the highest round; empty where there was one only. */
export function rangeText(range: readonly [low: number, high: number] | undefined): string {
  return range === undefined || range[0] === range[1] ? '' : range.map(rounded).join(' to ')
}

/** Seconds as `3:07`. */
export function clockTime(seconds: number): string {
  const whole = Math.floor(seconds)
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`
}
