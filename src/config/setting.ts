import type { Field } from './field.ts'
import { parseYaml } from './yaml.ts'
import type { Parsed, YamlValue } from './yaml-value.ts'

/** One value given outside the file. `rank` orders sources: a higher one replaces what a lower one chose. */
export interface Setting {
  readonly path: readonly string[]
  readonly value: YamlValue
  /** How problems name where it came from: an environment variable, or a flag with its key. */
  readonly source: string
  readonly rank: number
}

/** Settings read from one source, and what is wrong with the rest of it. */
export interface Settings {
  readonly settings: readonly Setting[]
  readonly problems: readonly string[]
}

/** The text of a variable or flag as the YAML value that the key expects; text stays as it is. */
export function readText(field: Field<unknown>, text: string): Parsed<YamlValue> {
  switch (field.reading) {
    case 'text':
      return { value: text }
    case 'text or null':
      return { value: text === 'null' ? null : text }
    case 'list':
      return text.trim().startsWith('[') ? parseYaml(text) : { value: commaList(text) }
    case 'yaml':
      return parseYaml(text)
  }
}

function commaList(text: string): readonly string[] {
  return text
    .split(',')
    .map((member) => member.trim())
    .filter((member) => member !== '')
}
