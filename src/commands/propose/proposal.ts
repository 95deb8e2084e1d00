import { writeCommentedYaml } from '../../config/yaml.ts'
import { timeOf } from '../times.ts'
import { addTo, type FoundPath, type PathTree, type Seen } from './path-tree.ts'

/** A path for `allow`, with what was seen of it by each method. */
interface Entry {
  readonly path: string
  readonly byMethod: Map<string, FoundPath>
}

/** Where an entry of `passwords` has its keys, so that the text can be put below them. */
const INDENT = '    '

/** An example on a line is cut to so many characters. */
const LONGEST_EXAMPLE = 64

/**
 * The `allow` for these requests as YAML, indented for an entry of `passwords`. Paths with the same methods share a rule, so that no rule
 * has a method and a path that were not seen together. Behind each path stand how often it was asked for, when last, and what it opens.
 */
export function proposalOf(trees: ReadonlyMap<string, PathTree>): string {
  const entries = new Map<string, Entry>()
  for (const [method, tree] of trees) {
    for (const found of tree.found()) {
      const entry = entries.get(found.path) ?? { path: found.path, byMethod: new Map() }
      entries.set(found.path, entry)
      entry.byMethod.set(method, found)
    }
  }
  const rules = Map.groupBy(entries.values(), ({ byMethod }) => [...byMethod.keys()].sort().join(' '))
  const byUse = [...rules].sort(([, a], [, b]) => countIn(b) - countIn(a))
  const listed = byUse.map(([methods, found]) => ({
    methods: methods.split(' '),
    found: found.sort((a, b) => (a.path < b.path ? -1 : 1)),
  }))
  const allow = listed.map(({ methods, found }) => ({ methods, paths: found.map(({ path }) => path) }))
  const text = writeCommentedYaml(
    { allow },
    {
      inLine: allow.map((_, rule) => ['allow', rule, 'methods']),
      comments: listed.flatMap(({ found }, rule) =>
        found.map((entry, at) => [['allow', rule, 'paths', at], commentOn(entry)] as const),
      ),
    },
  )
  return text.replace(/^(?=.)/gm, INDENT)
}

const countIn = (entries: readonly Entry[]): number =>
  entries.reduce((sum, entry) => sum + seenOf(entry).count, 0)

function seenOf({ byMethod }: Entry): Seen {
  const sum = { count: 0, last: 0 }
  for (const { count, last } of byMethod.values()) addTo(sum, count, last)
  return sum
}

function commentOn(entry: Entry): string {
  const { path, byMethod } = entry
  const { count, last } = seenOf(entry)
  const each = [...byMethod].map(([method, found]) => `${method} ${found.count}`).join(', ')
  const how = byMethod.size === 1 ? `${count}` : `${count} (${each})`
  return `${how}, last ${timeOf(last)}${opened(path, [...byMethod.values()])}`
}

/** What an entry opens beyond what was seen. */
function opened(path: string, found: readonly FoundPath[]): string {
  if (!path.endsWith('/')) return ''
  const examples = new Set(found.flatMap((each) => each.examples))
  const shown = [...examples].map((each) =>
    each.length > LONGEST_EXAMPLE ? `${each.slice(0, LONGEST_EXAMPLE)}...` : each,
  )
  const more = found.some(({ hasMore }) => hasMore) ? ' and more' : ''
  return `; opens all below ${path}, seen: ${shown.join(' ')}${more}`
}
