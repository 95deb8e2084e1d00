// `zod/mini`, because each schema of `zod` itself has a hundred methods, which cost startup time and memory.
import * as z from 'zod/mini'
import type { YamlValue } from './yaml.ts'

// Compiled validators need `new Function`, which Node refuses under --disallow-code-generation-from-strings.
z.config({ jitless: true })

export { z }

/**
 * `section`: a mapping of known keys. `choice`: a mapping with exactly one of several keys. `either`: a word or a number, or a mapping
 * of known keys. `headers`: a mapping of any names to values. `named`: a mapping of any names to sections. `value`: the rest.
 */
export type Kind = 'value' | 'section' | 'choice' | 'either' | 'headers' | 'named'

/** How the text of an environment variable or a flag is parsed. */
type TextForm = 'text' | 'list' | 'yaml'

/** One key of the file. Its description is in deploy/build/keys.yaml, because only the reference page reads it. */
export interface Field<T> {
  readonly kind: Kind
  /** Makes the schema of the YAML form, which only the reading of a configuration needs: kept, 600 schemas would hold memory for nothing. */
  readonly schema: () => z.ZodMiniType<T>
  /** The type in words, for the reference page. */
  readonly type: string
  /** The default in its YAML form; `undefined` for a required key and for an optional one. */
  readonly default: YamlValue | undefined
  /** The value of the default; undefined for a key that is required or has a required key below it. */
  readonly initial: (() => T) | undefined
  readonly optional: boolean
  readonly textForm: TextForm
  /** No error message quotes the value. */
  readonly secret: boolean
  /** The words to choose from, if the value is one of several. */
  readonly words?: readonly string[]
  /** What to write instead of a wrong value, as a clause. */
  readonly advice?: string
  /** The keys of this section, in snake_case, in the order of the reference page. */
  readonly keys: Keys
  /** The field of each member, if the operator chooses the names. */
  readonly member: Field<unknown> | undefined
  /** The field of each entry of a list of mappings. */
  readonly item: Field<unknown> | undefined
}

type Keys = ReadonlyMap<string, Field<unknown>>

export interface FieldOptions {
  readonly default?: YamlValue
  readonly secret?: boolean
  readonly advice?: string
}

const NO_KEYS: Keys = new Map()

type Details<T> = FieldOptions & { readonly type: string } & Partial<
    Pick<Field<T>, 'kind' | 'textForm' | 'keys' | 'member' | 'item' | 'initial' | 'words'>
  >

/** Creates a field. Unless `initial` is given, the value of the default is equal to its YAML form. */
export function field<T>(build: () => z.ZodMiniType<T>, details: Details<T>): Field<T> {
  const { default: written } = details
  return {
    kind: 'value',
    textForm: 'text',
    secret: false,
    keys: NO_KEYS,
    member: undefined,
    item: undefined,
    optional: false,
    default: undefined,
    // The cast holds because a field whose values have another form than the YAML passes `initial`.
    initial: written === undefined ? undefined : () => written as T,
    ...details,
    schema: build,
  }
}

/** The field of a key in a section or mapping; `undefined` for an unknown key. */
export function fieldBelow(above: Field<unknown>, key: string): Field<unknown> | undefined {
  return above.keys.get(key) ?? above.member
}

/** A key that may be left out and has no default: its value is then absent. */
export interface OptionalField<T> extends Field<T> {
  readonly optional: true
}

export function optional<T>(inner: Field<T>): OptionalField<T> {
  return { ...inner, optional: true }
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

/** A mapping of known keys, in snake_case in the file and in camelCase in the result. */
export function section<F extends Fields>(fields: F): Field<SectionOf<F>> {
  type T = SectionOf<F>
  const keys: Keys = new Map(Object.entries(fields).map(([name, each]) => [snakeCase(name), each]))
  const absent = Object.entries(fields).filter(([, each]) => !each.optional)
  const initial = absent.every(([, each]) => each.initial !== undefined)
    ? // The cast holds because T consists of the types of these fields under these names.
      () => Object.fromEntries(absent.map(([name, each]) => [name, each.initial?.()])) as T
    : undefined
  const build = () => mapping<T>(keys, 'must be a mapping of keys')
  return field(build, { type: 'mapping', default: {}, initial, kind: 'section', textForm: 'yaml', keys })
}

/** A union of `{key: value}` with one member per alternative. */
type ChoiceOf<F extends Fields> = { [K in keyof F]: { readonly [P in K]: ValueOf<F[K]> } }[keyof F]

/** A mapping that holds exactly one of several keys. */
export function choice<F extends Fields>(alternatives: F, advice?: string): Field<ChoiceOf<F>> {
  type T = ChoiceOf<F>
  const keys: Keys = new Map(Object.entries(alternatives).map(([key, each]) => [key, optional(each)]))
  const names = [...keys.keys()].join(', ')
  const must = `must have exactly one of ${names}`
  const type = `one of ${names}`
  const hint = advice === undefined ? {} : { advice }
  return field(() => mapping<T>(keys, must, exactlyOne(must)), {
    ...hint,
    type,
    kind: 'choice',
    secret: true,
    textForm: 'yaml',
    keys,
  })
}

/** A mapping of the operator's own names to sections of one kind. `nameProblem` returns an error message for a wrong name. */
export function named<T extends object>(
  member: Field<T>,
  nameProblem: (name: string) => string | undefined,
  options: FieldOptions & { readonly type: string },
): Field<Readonly<Record<string, T>>> {
  const build = () =>
    z.record(z.string(), member.schema(), { error: `must be a ${options.type}` }).check(
      z.superRefine((given, context) => {
        for (const name of Object.keys(given)) {
          const message = nameProblem(name)
          if (message !== undefined) context.addIssue({ code: 'custom', message, path: [name] })
        }
      }),
    )
  return field<Readonly<Record<string, T>>>(build, { ...options, kind: 'named', textForm: 'yaml', member })
}

/** A word or a number, or a mapping. */
export function either<A extends string | number, B extends object>(
  words: Field<A>,
  other: Field<B>,
  must: string,
  options: FieldOptions = {},
): Field<A | B> {
  const build = () => z.union([words.schema(), z.lazy(other.schema)], { error: must })
  const type = `${words.type}, or a mapping`
  return field<A | B>(build, { ...options, type, kind: 'either', textForm: 'yaml', keys: other.keys })
}

/** The schema of a mapping with any of these keys. `check` may refuse more of it. */
function mapping<T extends object>(
  keys: Keys,
  must: string,
  check: z.core.CheckFn<Readonly<Record<string, unknown>>> = () => undefined,
): z.ZodMiniType<T> {
  const shape = Object.fromEntries([...keys].map(([key, each]) => [key, schemaIn(each)]))
  const written = z.strictObject(shape, { error: must }).check(z.check(check))
  const named = z.transform(
    (given: Readonly<Record<string, unknown>>) =>
      // The cast holds because T consists of the types of these fields under these names.
      Object.fromEntries(Object.entries(given).map(([key, value]) => [camelCase(key), value])) as T,
  )
  return z.pipe(written, named)
}

/** The schema of a key that may be absent, if it is optional or has a default. */
function schemaIn({ schema, optional, initial, keys, default: written }: Field<unknown>): z.ZodMiniType {
  // A configuration sets few sections, and the schemas of all take 10 ms of a start.
  const inner = keys.size > 0 ? z.lazy(schema) : schema()
  if (optional) return z.optional(inner)
  if (initial !== undefined) return z._default(inner, initial)
  // A missing section is then read as an empty one, which lacks the required key below it.
  return written === undefined ? inner : z.prefault(inner, written)
}

/** For a mapping that holds exactly one of its keys. */
function exactlyOne(must: string): z.core.CheckFn<Readonly<Record<string, unknown>>> {
  return ({ value, issues }) => {
    // A key that is unknown may be meant as one of them.
    if (issues.length > 0) return
    const [first, ...others] = Object.keys(value)
    const add = (message: string, ...path: string[]) =>
      issues.push({ code: 'custom', message, path, input: value })
    if (first === undefined) add(must)
    for (const other of others) add(`must not be set together with ${first}; keep one of the two`, other)
  }
}

export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** The name in the configuration object of a key in the file. */
export function camelCase(key: string): string {
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
