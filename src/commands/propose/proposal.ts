import { writeCommentedYaml } from '../../config/yaml.ts'
import { timeText } from '../times.ts'
import { addTo, type FoundPath, type PathTree, type Seen } from './path-tree.ts'

/** A path for `allow`, with the requests of each method. */
interface Entry {
  readonly path: string
  readonly byMethod: Map<string, FoundPath>
}

/** The indent of the keys in an entry of `passwords`, so that the text can be pasted there. */
const INDENT = '    '

/** Longer examples are cut to this number of characters. */
const LONGEST_EXAMPLE = 64

/**
 * A rule of the proposal. The comment after each path has the number of requests, the time of the last one, and the paths that it opens.
 */
interface ProposedRule {
  readonly methods: readonly string[]
  readonly paths: readonly { readonly path: string; readonly comment: string }[]
}

/**
 * The rules for these requests, the most used first. Paths with the same methods share a rule: no rule opens a path for a method with which
 * it was not requested.
 */
export function rulesFor(trees: ReadonlyMap<string, PathTree>): readonly ProposedRule[] {
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
  return byUse.map(([methods, found]) => ({
    methods: methods.split(' '),
    paths: found
      .sort((a, b) => (a.path < b.path ? -1 : 1))
      .map((entry) => ({ path: entry.path, comment: commentOn(entry) })),
  }))
}

/** The `allow` of these rules as YAML, indented for an entry of `passwords`. */
export function proposalOf(rules: readonly ProposedRule[]): string {
  const allow = rules.map(({ methods, paths }) => ({ methods, paths: paths.map(({ path }) => path) }))
  const text = writeCommentedYaml(
    { allow },
    {
      inLine: allow.map((_, rule) => ['allow', rule, 'methods']),
      comments: rules.flatMap(({ paths }, rule) =>
        paths.map(({ comment }, at) => [['allow', rule, 'paths', at], comment] as const),
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
  return `${how}, last ${timeText(last)}${opened(path, [...byMethod.values()])}`
}

/** A clause about the paths that an entry opens, with requested paths as examples. */
function opened(path: string, found: readonly FoundPath[]): string {
  if (!path.endsWith('/')) return ''
  const examples = new Set(found.flatMap((each) => each.examples))
  const shown = [...examples].map((each) =>
    each.length > LONGEST_EXAMPLE ? `${each.slice(0, LONGEST_EXAMPLE)}...` : each,
  )
  const more = found.some(({ hasMore }) => hasMore) ? ' and more' : ''
  return `; opens all below ${path}, seen: ${shown.join(' ')}${more}`
}
