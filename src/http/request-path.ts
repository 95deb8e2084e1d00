/**
 * The parts of a path that two parsers may read differently:
 *
 * - dot segments, also with more than two dots, with parameters (`/..;/`) or with encoded blanks after the dots (`/..%20/`),
 * - empty segments and backslashes,
 * - the encoded forms of these and of other delimiters, also in overlong UTF-8,
 * - a `%` without two hexadecimal digits: old decoders read `%u002e`, and leave `%%32e` to the next decoder.
 */
const AMBIGUOUS =
  /\/\.+(?:[/;%]|$)|\/\/|\\|%(?:2e|2f|5c|25|00|3b|23|3f|c[01]%[89ab]|e0%[89]|f0%8|(?![\da-f]{2}))/i

/** Whether a parser that decodes or resolves a path may read another path. `path`: without the query. */
export function isAmbiguousPath(path: string): boolean {
  return AMBIGUOUS.test(path)
}

/** The path of a request target, without the query. */
export function pathOf(target: string): string {
  const query = target.indexOf('?')
  return query < 0 ? target : target.slice(0, query)
}

const ABSOLUTE_FORM = /^(https?):\/\/([^/?#]*)(.*)$/i

interface AbsoluteUrl {
  readonly scheme: string
  readonly authority: string
  /** The text after the authority; may be empty. */
  readonly rest: string
  /** `rest` as a request target: it begins with a slash. */
  readonly target: string
}

/** The parts of an absolute http URL, byte for byte; undefined for any other text. */
export function splitAbsolute(url: string): AbsoluteUrl | undefined {
  const [whole, scheme = '', authority = '', rest = ''] = ABSOLUTE_FORM.exec(url) ?? []
  if (whole === undefined) return undefined
  return { scheme, authority, rest, target: rest.startsWith('/') ? rest : `/${rest}` }
}

/** Visible ASCII without `#`: a request target contains neither a fragment nor a raw 8-bit byte (RFC 9112 §3.2). */
const ORIGIN_FORM = /^\/[!"$-~]*$/

/** Whether a text is a request target in origin form: a path with or without a query. */
export function isPathTarget(text: string): boolean {
  return ORIGIN_FORM.test(text)
}

const ENCODED = /%([\da-f]{2})/gi

/** Decodes each percent-encoded byte to one Latin-1 character, as lenient programs do. An incomplete code such as `%4` stays. */
export function percentDecoded(text: string): string {
  return text.replace(ENCODED, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
}

/** How many levels of percent-encoding are decoded. No known parser decodes more, and each level costs a pass over the path. */
export const MOST_DECODINGS = 4

/**
 * The path as the most lenient device reads it: decoded up to `MOST_DECODINGS` times, in lower case, without empty and dot segments,
 * parameters, and slashes at the end. Use it for a comparison that must not miss a spelling, never for a permission.
 */
export function loosePathOf(target: string): string {
  let decoded = pathOf(target)
  for (let pass = 0; pass < MOST_DECODINGS && decoded.includes('%'); pass += 1)
    decoded = percentDecoded(decoded)
  const segments: string[] = []
  for (const part of pathOf(decoded).toLowerCase().split(/[/\\]/)) {
    const [segment = ''] = part.split(';', 1)
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  return `/${segments.join('/')}`
}

/** Returns the entry for a path; undefined if there is none. */
type FindPath<T> = (path: string) => T | undefined

/**
 * A look-up of entries by path. A name that ends in `/` matches all paths below it, any other name exactly that path; the longest
 * match wins. Paths are compared byte for byte, without the query.
 */
export function createPathTable<T>(entries: Iterable<readonly [string, T]>): FindPath<T> {
  const exact = new Map<string, T>()
  const prefixes: (readonly [string, T])[] = []
  for (const [name, value] of entries) {
    if (name.endsWith('/')) prefixes.push([name, value])
    else exact.set(name, value)
  }
  prefixes.sort(([a], [b]) => b.length - a.length)
  return (path) => exact.get(path) ?? prefixes.find(([prefix]) => path.startsWith(prefix))?.[1]
}
