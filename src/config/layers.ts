import { type Field, fieldBelow, type Kind } from './field.ts'
import type { Override } from './overrides.ts'
import { schema } from './schema.ts'
import { isMapping, type YamlMapping, type YamlValue } from './yaml.ts'

const FILE_RANK = 1

/** The tree of the file with all overrides applied, and the source of each value. */
export interface Layered {
  readonly tree: YamlValue
  /** The source of the value at a path; `undefined` if it is from the file or missing. */
  readonly sourceOf: (path: readonly string[]) => string | undefined
}

type Origins = Map<string, Pick<Override, 'source' | 'rank'>>

/** Applies overrides to the tree of the file, in their order. Does not modify its arguments. */
export function layer(file: YamlMapping, overrides: readonly Override[]): Layered {
  const origins: Origins = new Map()
  let tree = withoutEmptySections(file, schema)
  for (const override of overrides) tree = put(tree, schema, [], override.path, override, origins)
  return { tree, sourceOf: (path) => sourceOf(path, origins) }
}

const MAY_BE_EMPTY: readonly Kind[] = ['section', 'headers', 'named']

/** If all keys of a section are commented out, YAML parses it as `null`: the same as leaving it out. */
function withoutEmptySections(value: YamlValue, field: Field<unknown>): YamlValue {
  if (value === null && MAY_BE_EMPTY.includes(field.kind)) return {}
  if (!isMapping(value) || field.kind === 'headers') return value
  const entries = Object.entries(value).map(([key, each]): [string, YamlValue] => {
    const inner = fieldBelow(field, key)
    return [key, inner === undefined ? each : withoutEmptySections(each, inner)]
  })
  return Object.fromEntries(entries)
}

function put(
  current: YamlValue | undefined,
  field: Field<unknown>,
  here: readonly string[],
  rest: readonly string[],
  override: Override,
  origins: Origins,
): YamlValue {
  const [key, ...deeper] = rest
  if (key === undefined) return assign(current, field, here, override, origins)
  // Keeps a section that is not a mapping, so that the mistake is reported instead of overwritten.
  if (field.kind === 'section' && current !== undefined && !isMapping(current)) return current
  if (field.kind === 'either' && !isMapping(current)) recordSource(here, override, origins)
  const inner = fieldBelow(field, key)
  const below = [...here, key]
  const siblings = withoutReplaced(isMapping(current) ? current : {}, field, below, override, origins)
  if (field.kind === 'choice' || inner === undefined) recordSource(below, override, origins)
  const before = Object.hasOwn(siblings, key) ? siblings[key] : undefined
  return {
    ...siblings,
    [key]: inner === undefined ? override.value : put(before, inner, below, deeper, override, origins),
  }
}

/** A mapping for a section sets its keys one by one; any other value replaces the current one. */
function assign(
  current: YamlValue | undefined,
  field: Field<unknown>,
  here: readonly string[],
  override: Override,
  origins: Origins,
): YamlValue {
  const { value } = override
  if (field.kind === 'section' && value === null) return current ?? {}
  if (field.keys.size === 0 || !isMapping(value)) {
    recordSource(here, override, origins)
    return value
  }
  let tree: YamlValue = current ?? {}
  for (const [key, each] of Object.entries(value)) {
    tree = put(tree, field, here, [key], { ...override, value: each }, origins)
  }
  return tree
}

/** Removes what the new key replaces: alternatives set by a source of lower rank, or the same header in another case. */
function withoutReplaced(
  held: YamlMapping,
  field: Field<unknown>,
  below: readonly string[],
  override: Override,
  origins: Origins,
): YamlMapping {
  const key = below.at(-1) ?? ''
  const entries = Object.entries(held)
  if (field.kind === 'headers') {
    return Object.fromEntries(entries.filter(([name]) => name.toLowerCase() !== key.toLowerCase()))
  }
  if (field.kind !== 'choice') return held
  const rankOf = (name: string): number =>
    origins.get(dotted([...below.slice(0, -1), name]))?.rank ?? FILE_RANK
  return Object.fromEntries(entries.filter(([name]) => name === key || rankOf(name) >= override.rank))
}

function recordSource(path: readonly string[], { source, rank }: Override, origins: Origins): void {
  origins.set(dotted(path), { source, rank })
}

function sourceOf(path: readonly string[], origins: Origins): string | undefined {
  for (let length = path.length; length > 0; length -= 1) {
    const origin = origins.get(dotted(path.slice(0, length)))
    if (origin !== undefined) return origin.source
  }
  return undefined
}

function dotted(path: readonly string[]): string {
  return path.join('.')
}
