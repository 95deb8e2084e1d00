import { distance } from 'fastest-levenshtein'

/** Names the known one that is most like an unknown name: the second half of a sentence about it. */
export function nearestName(unknown: string, known: readonly string[]): string {
  return best(unknown, known, (name) => distance(unknown, name))
}

/** The same for dotted keys, where a right last part in a wrong place (`capacity`) is close to `tokens.capacity`. */
export function nearestKey(unknown: string, known: readonly string[]): string {
  const given = snake(unknown)
  return best(given, known, (key) => Math.min(distance(given, key), distance(last(given), last(key)) + 1))
}

function best(unknown: string, known: readonly string[], cost: (name: string) => number): string {
  let nearest = { key: '', cost: Number.POSITIVE_INFINITY }
  for (const key of known) {
    const each = cost(key)
    if (each < nearest.cost) nearest = { key, cost: each }
  }
  const close = nearest.cost <= Math.max(2, last(unknown).length / 3)
  return close ? `did you mean ${nearest.key}?` : `the nearest known one is ${nearest.key}`
}

function last(key: string): string {
  return key.slice(key.lastIndexOf('.') + 1)
}

/** `trustedProxies` and `trusted-proxies` are only spelled differently. */
function snake(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`).replaceAll('-', '_')
}
