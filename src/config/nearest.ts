import { snakeCase } from './field.ts'
import { environmentName } from './known-keys.ts'

/** The second half of the error message for an unknown name. `meant`: the known name that is probably meant. */
export function adviceOn(meant: string | undefined): string {
  return meant === undefined ? 'deploy/configuration.md lists the known ones' : `did you mean ${meant}?`
}

/** Keys that do not exist but are easily expected, and the keys that have their meaning. */
const MEANT: ReadonlyMap<string, string> = new Map([
  ['store.url', 'tokens.store'],
  ['store.address', 'tokens.store'],
  ['listen.port', 'listen.address'],
  ['admin.port', 'admin.address'],
])

/** The known word that an unknown word probably means; undefined if none is near enough. */
export function nearestWord(unknown: string, known: readonly string[]): string | undefined {
  return nearest(known, unknown.length, (word) => distance(unknown.toLowerCase(), word.toLowerCase()))
}

/** The known environment variable that an unknown one probably means; undefined if none is near enough. */
export function nearestVariable(unknown: string, known: readonly string[]): string | undefined {
  const meant = [...MEANT].find(([key]) => environmentName(key.split('.')) === unknown)
  if (meant !== undefined) return environmentName(meant[1].split('.'))
  return nearest(known, unknown.length - environmentName(['']).length, (name) => distance(unknown, name))
}

/**
 * The dotted key that an unknown one probably means; undefined if none is near enough. A key with the right last part is near even from a
 * wrong section: `capacity` means `tokens.capacity`.
 */
export function nearestKey(unknown: string, known: readonly string[]): string | undefined {
  // `trustedProxies` and `trusted-proxies` are spellings of `trusted_proxies`.
  const snake = snakeCase(unknown).replaceAll('-', '_')
  const meant = MEANT.get(snake)
  if (meant !== undefined) return meant
  return nearest(known, lastPart(snake).length, (key) =>
    Math.min(
      distance(snake, key),
      distance(lastPart(snake), lastPart(key)) + 1,
      isQualified(snake, key) ? 1 : Number.POSITIVE_INFINITY,
    ),
  )
}

/** Whether the unknown key is this one with a word in front: `upstream.request_headers` is `upstream.headers`. */
function isQualified(unknown: string, key: string): boolean {
  const section = (name: string): string => name.slice(0, name.lastIndexOf('.') + 1)
  return section(unknown) === section(key) && unknown.endsWith(`_${lastPart(key)}`)
}

/** The largest distance at which a short name can be meant: two missing letters, or one missing and one wrong. */
const NEAR = 2.5

/** @param letters the length of the unknown name: in a long name, every third letter may be missing */
function nearest(
  known: readonly string[],
  letters: number,
  cost: (name: string) => number,
): string | undefined {
  let best = { key: '', cost: Number.POSITIVE_INFINITY }
  for (const key of known) {
    const each = cost(key)
    if (each < best.cost) best = { key, cost: each }
  }
  return best.cost <= Math.max(NEAR, letters / 3) ? best.key : undefined
}

/** The cost of a wrong letter. It is higher than that of a missing one: `adm` is `admin`, but `port` is not `cors`. */
const WRONG = 1.5

/**
 * How far apart two spellings are (optimal string alignment): a letter that is missing, too many, or swapped with the next one costs 1, a
 * wrong one `WRONG`.
 */
function distance(from: string, to: string): number {
  let earlier: readonly number[] = []
  let costs: readonly number[] = Array.from({ length: to.length + 1 }, (_, i) => i)
  for (let i = 0; i < from.length; i += 1) {
    const next = [i + 1]
    for (let j = 0; j < to.length; j += 1) {
      const replaced = (costs[j] ?? 0) + (from[i] === to[j] ? 0 : WRONG)
      const isSwap = i > 0 && j > 0 && from[i] === to[j - 1] && from[i - 1] === to[j]
      const swapped = isSwap ? (earlier[j - 1] ?? 0) + 1 : Number.POSITIVE_INFINITY
      next.push(Math.min(replaced, swapped, (costs[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1))
    }
    earlier = costs
    costs = next
  }
  return costs.at(-1) ?? 0
}

function lastPart(key: string): string {
  return key.slice(key.lastIndexOf('.') + 1)
}
