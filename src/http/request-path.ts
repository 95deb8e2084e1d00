/**
 * What two readers could take for different paths: dot segments, also with parameters (`/..;/`), empty segments,
 * backslashes, and anything encoded that would have to be decoded to know, in overlong UTF-8 and `%u` too, which old
 * decoders take.
 */
const AMBIGUOUS = /\/\.{1,2}(?:[/;]|$)|\/\/|\\|%(?:2e|2f|5c|25|00|3b|23|3f|u|c[01]%[89ab]|e0%[89]|f0%8)/i

/** Whether a path, without its query, may mean something else to a reader who decodes or resolves it. */
export function isAmbiguousPath(path: string): boolean {
  return AMBIGUOUS.test(path)
}

/** The path of a target: without its query. */
export function pathOf(target: string): string {
  const query = target.indexOf('?')
  return query < 0 ? target : target.slice(0, query)
}
