import { shownBytes } from '../support/shown-bytes.ts'

/** Fields in the notation of the cases. */
export function shownFields(fields: readonly string[]): string {
  const lines = fields.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${fields[i + 1]}`] : []))
  return `{${shownBytes(lines.join('; '))}}`
}
