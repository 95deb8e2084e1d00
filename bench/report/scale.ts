/** The position of a value on an axis, and the ticks of the axis. */
export interface Scale {
  readonly place: (value: number) => number
  readonly ticks: readonly number[]
}

type Span = readonly [from: number, to: number]

/** From zero to at least the largest value, with ticks at round numbers. */
export function linearScale(largest: number, [from, to]: Span): Scale {
  const top = largest > 0 ? largest : 1
  const step = roundStep(top / 5)
  const count = Math.ceil(top / step - 1e-9)
  const end = count * step
  return {
    place: (value) => from + (value / end) * (to - from),
    ticks: Array.from({ length: count + 1 }, (_, i) => Number((i * step).toPrecision(12))),
  }
}

/** From one power of ten to another, around all values. The values must be positive. */
export function logScale(values: readonly number[], [from, to]: Span): Scale {
  const low = Math.floor(Math.log10(Math.min(...values)) + 1e-9)
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values)) - 1e-9))
  return {
    place: (value) => from + ((Math.log10(value) - low) / (high - low)) * (to - from),
    ticks: Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i)),
  }
}

/** Rounds up to 1, 2, 2.5, 5 or 10 times a power of ten. */
function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least))
  const step = [1, 2, 2.5, 5, 10].find((factor) => factor * power >= least * (1 - 1e-9))
  return (step ?? 10) * power
}
