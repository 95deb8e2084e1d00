/** One response, as the load generator's client saw it. */
export interface Observation {
  readonly status: number
  /** Every value of every field, by lower-case name. */
  readonly fields: ReadonlyMap<string, readonly string[]>
  readonly body: string
  /** Unix time in ms when it had arrived. */
  readonly at: number
}

/** Gathers header fields by lower-case name, so that a name sent twice in two spellings is seen as a repeat. */
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

/** The value of a field that must be there exactly once. */
export function only({ fields }: Observation, name: string): string | undefined {
  const values = fields.get(name)
  return values?.length === 1 ? values[0] : undefined
}

/** A whole number written as such, without a sign or anything around it. */
export function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined
}
