import { parseDuration } from '../config/units.ts'

/**
 * A length of time that a person typed for a flag (ms); undefined if it is none. It needs its unit: a bare number would be seconds, as in the
 * configuration, and is probably meant as days.
 */
export function typedDuration(text: string): number | undefined {
  const parsed = /[a-z]$/.test(text) ? parseDuration(text) : undefined
  return parsed !== undefined && 'value' in parsed ? parsed.value : undefined
}
