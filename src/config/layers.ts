import { type Field, fieldBelow, type Kind } from './field.ts'
import type { Override } from './key-overrides.ts'
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
  for (const override of overrides) tree = apply(tree, override, origins)
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

/** Applies one override to a tree. Records its source at each path that it sets. */
function apply(whole: YamlValue, override: Override, origins: Origins): YamlValue {
  const { source, rank } = override
  type Path = readonly string[]

  function record(path: Path): void {
    origins.set(dotted(path), { source, rank })
  }

  /** Sets `value` at the path `rest` below `here`, whose present value is `current`. */
  function put(
    current: YamlValue | undefined,
    field: Field<unknown>,
    here: Path,
    rest: Path,
    value: YamlValue,
  ): YamlValue {
    const [key, ...deeper] = rest
    if (key === undefined) return assign(current, field, here, value)
    // Keeps a section that is not a mapping, so that the mistake is reported instead of overwritten.
    if (field.kind === 'section' && current !== undefined && !isMapping(current)) return current
    if (field.kind === 'either' && !isMapping(current)) record(here)
    const inner = fieldBelow(field, key)
    const below = [...here, key]
    const siblings = isMapping(current) ? withoutReplaced(current, field, here, key) : {}
    if (field.kind === 'choice' || inner === undefined) record(below)
    const before = Object.hasOwn(siblings, key) ? siblings[key] : undefined
    return { ...siblings, [key]: inner === undefined ? value : put(before, inner, below, deeper, value) }
  }

  /** A mapping for a section sets its keys one by one; any other value replaces the current one. */
  function assign(
    current: YamlValue | undefined,
    field: Field<unknown>,
    here: Path,
    value: YamlValue,
  ): YamlValue {
    if (field.kind === 'section' && value === null) return current ?? {}
    if (field.keys.size > 0 && isMapping(value)) {
      let tree: YamlValue = current ?? {}
      for (const [key, each] of Object.entries(value)) tree = put(tree, field, here, [key], each)
      return tree
    }
    record(here)
    return value
  }

  /** Removes the keys that a new key replaces: alternatives from a source of lower rank, or the same header in another case. */
  function withoutReplaced(held: YamlMapping, field: Field<unknown>, here: Path, key: string): YamlMapping {
    if (field.kind !== 'headers' && field.kind !== 'choice') return held
    const stays = (name: string): boolean =>
      field.kind === 'headers'
        ? name.toLowerCase() !== key.toLowerCase()
        : name === key || (origins.get(dotted([...here, name]))?.rank ?? FILE_RANK) >= rank
    return Object.fromEntries(Object.entries(held).filter(([name]) => stays(name)))
  }

  return put(whole, schema, [], override.path, override.value)
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
