import * as shape from './shape.ts'
import type { YamlValue } from './yaml.ts'

/**
 * `section`: a mapping of known keys. `choice`: a mapping with exactly one of several keys. `either`: a word, or a mapping of
 * known keys. `headers`: a mapping of any names to values. `named`: a mapping of any names to sections. `value`: the rest.
 */
export type Kind = 'value' | 'section' | 'choice' | 'either' | 'headers' | 'named'

/** How the text of an environment variable or a flag is parsed. */
type TextForm = 'text' | 'text or null' | 'list' | 'yaml'

/** One key of the file: the shape of its value and its documentation. */
export interface Field<T> extends shape.Member<T> {
  readonly kind: Kind
  readonly description: string
  /** The same field with this description. */
  describe(description: string): Field<T>
  /** The type in words, for the reference page. */
  readonly type: string
  /** The default in its YAML form; `undefined` for a required key and for an optional one. */
  readonly default: YamlValue | undefined
  readonly optional: boolean
  readonly textForm: TextForm
  /** No error message quotes the value. */
  readonly secret: boolean
  /** What to write instead of a wrong value, as a clause. */
  readonly advice?: string
  /** Whether a reload applies a change from one value to the other; otherwise the change needs a restart. */
  readonly live: (before: unknown, after: unknown) => boolean
  /** The keys of this section, in snake_case, in the order of the reference page. */
  readonly keys: Keys
  /** The field of each member, if the operator chooses the names. */
  readonly member: Field<unknown> | undefined
}

type Keys = ReadonlyMap<string, Field<unknown>>

export interface FieldOptions {
  readonly default?: YamlValue
  readonly secret?: boolean
  readonly advice?: string
  readonly live?: Field<unknown>['live']
}

/** For `live`: a reload applies every change of the key. */
export const ALWAYS = (): boolean => true

type Details = FieldOptions & { readonly type: string } & Partial<
    Pick<Field<unknown>, 'kind' | 'textForm' | 'keys' | 'member'>
  >

/** What most fields are. */
const USUAL = {
  description: '',
  kind: 'value',
  textForm: 'text',
  secret: false,
  live: (): boolean => false,
  keys: new Map(),
  member: undefined,
  optional: false,
  default: undefined,
} as const

/** Creates a field from the shape of its value. */
export function field<T>(bare: shape.Shape<T>, details: Details): Field<T> {
  return {
    ...USUAL,
    ...details,
    decode: bare.decode,
    encode: bare.encode,
    describe(description) {
      return { ...this, description }
    },
    json() {
      return { ...(this.description === '' ? {} : { description: this.description }), ...bare.json() }
    },
  }
}

/** The field of a key in a section or mapping; `undefined` for an unknown key. */
export function fieldBelow(above: Field<unknown>, key: string): Field<unknown> | undefined {
  return above.keys.get(key) ?? above.member
}

/** A key that may be left out and has no default: its value is then absent. */
export interface OptionalField<T> extends Field<T> {
  readonly optional: true
  describe(description: string): OptionalField<T>
}

export function optional<T>(inner: Field<T>): OptionalField<T> {
  const describe = (description: string): OptionalField<T> => optional(inner.describe(description))
  return { ...inner, optional: true, default: undefined, describe }
}

export type ValueOf<F> = F extends Field<infer T> ? T : never

type Fields = Readonly<Record<string, Field<unknown>>>

type OptionalKeys<F extends Fields> = {
  [K in keyof F]: F[K] extends OptionalField<unknown> ? K : never
}[keyof F]

type SectionOf<F extends Fields> = Flat<
  { readonly [K in Exclude<keyof F, OptionalKeys<F>>]: ValueOf<F[K]> } & {
    readonly [K in OptionalKeys<F>]?: ValueOf<F[K]>
  }
>

/** An intersection as one object type, which makes the compiler's messages shorter. */
type Flat<T> = { readonly [K in keyof T]: T[K] }

/**
 * A mapping of known keys, in snake_case in the file and in camelCase in the result.
 * @param demands what else the JSON Schema says of the mapping
 */
export function section<F extends Fields>(
  description: string,
  fields: F,
  demands: Readonly<Record<string, unknown>> = {},
): Field<SectionOf<F>> {
  type T = SectionOf<F>
  const keys: Keys = new Map(Object.entries(fields).map(([name, each]) => [snakeCase(name), each]))
  // T consists of the types of these fields under these names.
  const schema = shape.mapping<T>(keys, 'must be a mapping of keys', camelCase, demands)
  const details = { type: 'mapping', default: {}, kind: 'section', textForm: 'yaml', keys } as const
  return field(schema, details).describe(description)
}

/** A union of `{key: value}` with one member per alternative. */
type ChoiceOf<F extends Fields> = { [K in keyof F]: { readonly [P in K]: ValueOf<F[K]> } }[keyof F]

/** A mapping that holds exactly one of several keys. */
export function choice<F extends Fields>(
  description: string,
  alternatives: F,
  advice?: string,
): Field<ChoiceOf<F>> {
  type T = ChoiceOf<F>
  const keys: Keys = new Map(Object.entries(alternatives).map(([key, each]) => [key, optional(each)]))
  const names = [...keys.keys()].join(', ')
  const must = `must have exactly one of ${names}`
  // The check proves T: exactly one alternative is present, decoded by its own field.
  const mapping = shape.mapping<T>(keys, must, undefined, { minProperties: 1, maxProperties: 1 })
  const schema = shape.checked(mapping, (given) => {
    const [first, ...others] = Object.keys(given)
    if (first === undefined) return [shape.issue([], must)]
    return others.map((other) =>
      shape.issue([other], `must not be set together with ${first}; keep one of the two`),
    )
  })
  const details = {
    type: `one of ${names}`,
    ...(advice === undefined ? {} : { advice }),
    kind: 'choice',
    secret: true,
    textForm: 'yaml',
    keys,
  } as const
  return field(schema, details).describe(description)
}

/** A mapping of the operator's own names to sections of one kind. `nameProblem` returns an error message for a wrong name. */
export function named<T extends object>(
  member: Field<T>,
  nameProblem: (name: string) => string | undefined,
  options: FieldOptions & { readonly type: string },
): Field<Readonly<Record<string, T>>> {
  const schema = shape.checked(shape.record(member, `must be a ${options.type}`), (given) =>
    Object.keys(given).flatMap((name) => {
      const message = nameProblem(name)
      return message === undefined ? [] : [shape.issue([name], message)]
    }),
  )
  return field<Readonly<Record<string, T>>>(schema, { ...options, kind: 'named', textForm: 'yaml', member })
}

/** A word or a number, or a mapping. */
export function either<A extends string | number, B extends object>(
  words: Field<A>,
  other: Field<B>,
  must: string,
  options: FieldOptions = {},
): Field<A | B> {
  const schema = shape.union<A | B>([words, other], must)
  const type = `${words.type}, or a mapping`
  return field<A | B>(schema, { ...options, type, kind: 'either', textForm: 'yaml', keys: other.keys })
}

export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** The name in the configuration object of a key in the file. */
export function camelCase(key: string): string {
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
