import { asCgi } from '../http/fields.ts'

/** A field name, or the beginning of names and a `*`. */
const PATTERN = /^[!#$%&'+\-.^_`|~0-9A-Za-z]+\*?$/

/** Why a key of a mapping of fields is neither a field name nor the beginning of names and a `*`; `undefined` if it is one. */
export function patternProblem(pattern: string, name: string, start: string): string | undefined {
  return PATTERN.test(pattern)
    ? undefined
    : `must have a field name such as ${name} as its name, or the beginning of names and a * such as "${start}"`
}

/** Another key of a mapping of fields that names the same field: a CGI program cannot tell the two names apart. */
export function twinOf(pattern: string, keys: readonly string[]): string | undefined {
  const isMany = pattern.endsWith('*')
  const folded = asCgi(pattern)
  return keys.find((other) => other !== pattern && other.endsWith('*') === isMany && asCgi(other) === folded)
}

/** Returns a function that tells whether a field name, in lower case, fits one of the patterns. It compares names as a CGI program does. */
export function fits(patterns: readonly string[]): (name: string) => boolean {
  const isStart = (pattern: string): boolean => pattern.endsWith('*')
  const names = new Set(patterns.filter((pattern) => !isStart(pattern)).map(asCgi))
  const starts = patterns.filter(isStart).map((pattern) => asCgi(pattern.slice(0, -1)))
  return (name) => {
    const seen = asCgi(name)
    return names.has(seen) || starts.some((start) => seen.startsWith(start))
  }
}
