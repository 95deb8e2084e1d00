import { distance } from 'fastest-levenshtein'
import type { Field } from './field.ts'
import { schema } from './schema.ts'

/** A key of the file; a section is a key too. */
export interface KnownKey {
  readonly path: readonly string[]
  readonly field: Field<unknown>
}

/** Every key, in the order of the reference page; a section comes before its keys. */
export const knownKeys: readonly KnownKey[] = keysBelow([], schema)

/** Every key in its dotted form. */
export const dottedKeys: readonly string[] = knownKeys.map(dotted)

/** The dotted keys below one of the operator's own names, such as `upstream.routes./stream/`. */
export function dottedKeysBelow(path: readonly string[], field: Field<unknown>): readonly string[] {
  return keysBelow(path, field).map(dotted)
}

/** The environment variable of a key: `limits.api.requests` is `POSTERN_LIMITS_API_REQUESTS`. */
export function environmentName(path: readonly string[]): string {
  return `POSTERN_${path.join('_').toUpperCase()}`
}

function dotted({ path }: KnownKey): string {
  return path.join('.')
}

function keysBelow(path: readonly string[], field: Field<unknown>): KnownKey[] {
  return [...field.keys].flatMap(([key, each]) => {
    const here = { path: [...path, key], field: each }
    return [here, ...keysBelow(here.path, each)]
  })
}

/** Returns the second half of the error message for an unknown name: it suggests the most similar known name. */
export function nearestName(unknown: string, known: readonly string[]): string {
  return adviceFor(unknown, known, (name) => distance(unknown, name))
}

/**
 * The same for dotted keys. A key with the right last part counts as similar, even in a wrong section: `capacity` is similar to
 * `tokens.capacity`.
 */
export function nearestKey(unknown: string, known: readonly string[]): string {
  const snake = snakeCase(unknown)
  return adviceFor(snake, known, (key) =>
    Math.min(distance(snake, key), distance(lastPart(snake), lastPart(key)) + 1),
  )
}

function adviceFor(unknown: string, known: readonly string[], cost: (name: string) => number): string {
  let nearest = { key: '', cost: Number.POSITIVE_INFINITY }
  for (const key of known) {
    const each = cost(key)
    if (each < nearest.cost) nearest = { key, cost: each }
  }
  const close = nearest.cost <= Math.max(2, lastPart(unknown).length / 3)
  return close ? `did you mean ${nearest.key}?` : `the most similar known name is ${nearest.key}`
}

function lastPart(key: string): string {
  return key.slice(key.lastIndexOf('.') + 1)
}

/** `trustedProxies` and `trusted-proxies` are spellings of `trusted_proxies`. */
function snakeCase(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`).replaceAll('-', '_')
}
