import { type Field, fieldBelow, type Kind } from './field.ts'
import type { Override } from './overrides.ts'
import { schema } from './schema.ts'
import { isMapping, type YamlMapping, type YamlValue } from './yaml.ts'

const FILE_RANK = 1

/** The file with all overrides laid over it, and who set what. */
export interface Layered {
  readonly tree: YamlValue
  /** Where the value at a path came from; `undefined` when it came from the file, or is not there. */
  readonly sourceOf: (path: readonly string[]) => string | undefined
}

type Origins = Map<string, Pick<Override, 'source' | 'rank'>>

/** Lays overrides over the tree of the file, the later over the earlier. Neither is changed. */
export function layer(file: YamlMapping, overrides: readonly Override[]): Layered {
  const origins: Origins = new Map()
  let tree = withoutEmptySections(file, schema)
  for (const override of overrides) tree = put(tree, schema, [], override.path, override, origins)
  return { tree, sourceOf: (path) => sourceOf(path, origins) }
}

const MAY_BE_EMPTY: readonly Kind[] = ['section', 'headers', 'named']

/** A section whose keys are all commented out reads as `null`, and means no more than being left out. */
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
  if (key === undefined) return arrive(current, field, here, override, origins)
  // A section that is no mapping stays, so that the mistake is reported instead of buried.
  if (field.kind === 'section' && current !== undefined && !isMapping(current)) return current
  if (field.kind === 'either' && !isMapping(current)) own(here, override, origins)
  const inner = fieldBelow(field, key)
  const below = [...here, key]
  const held = makeRoom(isMapping(current) ? current : {}, field, below, override, origins)
  if (field.kind === 'choice' || inner === undefined) own(below, override, origins)
  const before = Object.hasOwn(held, key) ? held[key] : undefined
  return {
    ...held,
    [key]: inner === undefined ? override.value : put(before, inner, below, deeper, override, origins),
  }
}

/** A mapping given for a section is short for its keys, one by one; anything else takes the place of what was. */
function arrive(
  current: YamlValue | undefined,
  field: Field<unknown>,
  here: readonly string[],
  override: Override,
  origins: Origins,
): YamlValue {
  const { value } = override
  if (field.kind === 'section' && value === null) return current ?? {}
  if (field.keys.size === 0 || !isMapping(value)) {
    own(here, override, origins)
    return value
  }
  let tree: YamlValue = current ?? {}
  for (const [key, each] of Object.entries(value)) {
    tree = put(tree, field, here, [key], { ...override, value: each }, origins)
  }
  return tree
}

/** What the new key replaces: alternatives chosen by a weaker source, or the same header in another case. */
function makeRoom(
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

function own(path: readonly string[], { source, rank }: Override, origins: Origins): void {
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
