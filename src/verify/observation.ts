/** One response, as a client received it. */
export interface Observation {
  readonly status: number
  /** Every value of every field, by lower-case name. */
  readonly fields: ReadonlyMap<string, readonly string[]>
  readonly body: string
  /** Time of arrival (Unix time in ms). */
  readonly at: number
}

/** Groups header fields by lower-case name, so that two spellings of one name count as a repeat. */
export function foldFields(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
): ReadonlyMap<string, readonly string[]> {
  const fields = new Map<string, readonly string[]>()
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue
    const lower = name.toLowerCase()
    fields.set(lower, [...(fields.get(lower) ?? []), ...(typeof value === 'string' ? [value] : value)])
  }
  return fields
}

/** The value of a field that occurs exactly once; otherwise undefined. */
export function only({ fields }: Observation, name: string): string | undefined {
  const values = fields.get(name)
  return values?.length === 1 ? values[0] : undefined
}

/** A number of decimal digits only: no sign, no whitespace. */
export function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

/**
 * The seconds of `Retry-After` (RFC 9110 §10.2.3), which is a whole number or a date. A date is compared with the `Date` of the
 * response, or else with the time of arrival. Undefined if the field is missing, repeated or neither of the two.
 */
export function retryAfter(observation: Observation): number | undefined {
  const value = only(observation, 'retry-after')
  const seconds = wholeNumber(value)
  if (seconds !== undefined || value === undefined || !HTTP_DATE.test(value)) return seconds
  const from = dateOf(observation) ?? observation.at
  const until = Date.parse(value)
  return Number.isNaN(until) ? undefined : Math.max(0, Math.ceil((until - from) / 1000))
}

/** The `Date` of a response (Unix time in ms); undefined if the field is missing, repeated or not a date. */
export function dateOf(observation: Observation): number | undefined {
  const date = Date.parse(only(observation, 'date') ?? '')
  return Number.isNaN(date) ? undefined : date
}

const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/
