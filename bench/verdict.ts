import type { Check } from './figure.ts'

/** `short`: worse than the threshold. `measured`: it has none. `absent`: a program to measure against is missing. */
export type Verdict = 'aim' | 'pass' | 'short' | 'measured' | 'absent'

/** A value at the threshold passes. */
export function verdictOf({ value, reach, aim, better }: Check): Verdict {
  if (value === undefined || Number.isNaN(value)) return 'absent'
  const meets = (bound: number): boolean => (better === 'more' ? value >= bound : value <= bound)
  if (aim !== undefined && meets(aim)) return 'aim'
  if (reach === undefined) return 'measured'
  return meets(reach) ? 'pass' : 'short'
}

/** What a check has to be, in words: `≥ 0.6 ×, aim 0.75`. */
export function boundOf({ reach, aim, better, unit }: Check): string {
  if (reach === undefined) return ''
  return `${better === 'more' ? '≥' : '≤'} ${reach} ${unit}${aim === undefined ? '' : `, aim ${aim}`}`
}
