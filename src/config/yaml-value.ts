/** What a configuration file can say, before anything is known of its keys. */
export type YamlValue = null | boolean | number | string | readonly YamlValue[] | YamlMapping

export interface YamlMapping {
  readonly [key: string]: YamlValue
}

export function isMapping(value: YamlValue | undefined): value is YamlMapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value under a path of keys; own keys only, so that `constructor` and its like are not found. */
export function valueAt(tree: YamlValue, path: readonly string[]): YamlValue | undefined {
  let value: YamlValue | undefined = tree
  for (const key of path) {
    if (isList(value)) value = value[Number(key)]
    else value = isMapping(value) && Object.hasOwn(value, key) ? value[key] : undefined
  }
  return value
}

/** `Array.isArray` does not tell a readonly list from the rest of the union. */
function isList(value: YamlValue | undefined): value is readonly YamlValue[] {
  return Array.isArray(value)
}

/** A value read from text, or what is wrong with the text: the end of a sentence that starts with the key. */
export type Parsed<T> = { readonly value: T } | { readonly problem: string }
