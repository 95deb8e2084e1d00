/**
 * Header fields as they stand on the wire: name, value, name, value, in order, repeats and casing kept.
 * Both lanes and both versions of HTTP are read into it and written from it, so nothing is lost in between.
 */
export type Fields = readonly string[]

const NONE: readonly string[] = []

/** Every value of a field, in order. `name` is given in lower case. */
export function fieldValues(fields: Fields, name: string): readonly string[] {
  let values: string[] | undefined
  for (let i = 0; i + 1 < fields.length; i += 2) {
    if (!isNamed(fields[i] ?? '', name)) continue
    values ??= []
    values.push(fields[i + 1] ?? '')
  }
  return values ?? NONE
}

/** The lines of an HTTP/1 head that the fields make, each with its line end. */
export function fieldLines(fields: Fields): string {
  let lines = ''
  for (let i = 0; i + 1 < fields.length; i += 2) lines += `${fields[i]}: ${fields[i + 1]}\r\n`
  return lines
}

/** Lengths are compared first: most names differ in that already. */
function isNamed(candidate: string, name: string): boolean {
  return candidate.length === name.length && candidate.toLowerCase() === name
}

/** The names of the fields, in lower case. */
export function namesIn(fields: Fields): ReadonlySet<string> {
  return new Set(fields.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase()))
}

/** The fields for which `keeps` is true, in order. `name` is given to it in lower case. */
export function keepFields(fields: Fields, keeps: (name: string, value: string) => boolean): string[] {
  const kept: string[] = []
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? ''
    const value = fields[i + 1] ?? ''
    if (keeps(name.toLowerCase(), value)) kept.push(name, value)
  }
  return kept
}

/** As Node takes and gives them: a repeated field is a list, in order. Names that differ only in casing are two. */
export function groupFields(fields: Fields): Record<string, string | string[]> {
  const grouped: Record<string, string | string[]> = Object.create(null)
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? ''
    const before = grouped[name]
    const value = fields[i + 1] ?? ''
    grouped[name] = before === undefined ? value : [...[before].flat(), value]
  }
  return grouped
}

/** The members of a comma-separated list field, lower-cased, without the empty ones (RFC 9110 §5.6.1). */
export function listMembers(values: readonly string[]): string[] {
  return values
    .flatMap((value) => value.split(','))
    .map((member) => withoutBlanks(member).toLowerCase())
    .filter((member) => member !== '')
}

/**
 * A value without the blanks around it (RFC 9110 §5.5). `trim` would take 0xA0 for one, too, which is no blank to anybody
 * else, and may be half a letter in UTF-8.
 */
export function withoutBlanks(value: string): string {
  let start = 0
  let end = value.length
  while (isBlank(value[start])) start += 1
  while (end > start && isBlank(value[end - 1])) end -= 1
  return value.slice(start, end)
}

/** Space and tab are all the blanks of HTTP (RFC 9110 §5.6.3). */
export function isBlank(character: string | undefined): boolean {
  return character === ' ' || character === '\t'
}

/** The name of this proxy in `Via` (RFC 9110 §7.6.3) and `Proxy-Status` (RFC 9209): it tells nobody where it runs. */
export const PSEUDONYM = 'postern'
