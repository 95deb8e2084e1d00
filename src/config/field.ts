import { z } from 'zod'
import type { YamlValue } from './yaml.ts'

// Compiled validators need `new Function`, which a hardened Node (--disallow-code-generation-from-strings) refuses.
z.config({ jitless: true })

export { z }

/**
 * `section`: a mapping of known keys. `choice`: one that holds exactly one of them. `either`: one word, or such a
 * mapping. `headers`: a mapping of any names to values. `named`: one of any names to sections. `value`: all else.
 */
export type Kind = 'value' | 'section' | 'choice' | 'either' | 'headers' | 'named'

/** How the text of an environment variable or a flag is parsed. */
type TextForm = 'text' | 'text or null' | 'list' | 'yaml'

/** One key of the file: how it is read, written and explained. */
export interface Field<T> {
  readonly kind: Kind
  /** Reads the YAML form with the default filled in; encodes back to that form. */
  readonly schema: z.ZodType<T>
  /** The same without the default. */
  readonly bare: z.ZodType<T>
  readonly description: string
  /** In words, for the reference page. */
  readonly type: string
  /** As it would stand in the file; `undefined` when the key must be given, or may be left out for good. */
  readonly initial: YamlValue | undefined
  readonly optional: boolean
  readonly textForm: TextForm
  /** The value is never repeated, whatever is wrong with it. */
  readonly secret: boolean
  /** Whether a reload puts a change from one value to another into effect; otherwise it waits for a restart. */
  readonly live: (before: unknown, after: unknown) => boolean
  /** The keys below, in snake_case, in the order of the page. */
  readonly keys: Keys
  /** What stands under every name, where the names are the operator's own. */
  readonly member: Field<unknown> | undefined
}

type Keys = ReadonlyMap<string, Field<unknown>>

export interface Explained {
  readonly description: string
  readonly initial?: YamlValue
  readonly secret?: boolean
  readonly live?: Field<unknown>['live']
}

/** For `live`: a reload puts every change of the key into effect. */
export const ALWAYS = (): boolean => true

type Details = Explained & { readonly type: string } & Partial<
    Pick<Field<unknown>, 'kind' | 'textForm' | 'keys' | 'member'>
  >

/** A field around a schema of its own that has no default yet. */
export function field<T>(bare: z.ZodType<T>, details: Details): Field<T> {
  const { description, initial } = details
  const schema = initial === undefined ? bare : bare.prefault(initial)
  // `meta` would make a copy of each first, and a start has to wait for all of them.
  z.globalRegistry.add(bare, { description })
  z.globalRegistry.add(schema, { description })
  return {
    kind: 'value',
    textForm: 'text',
    secret: false,
    live: () => false,
    keys: new Map(),
    member: undefined,
    optional: false,
    ...details,
    initial,
    bare,
    schema,
  }
}

/** The field under a key, as far as the schema knows it. */
export function fieldBelow(above: Field<unknown>, key: string): Field<unknown> | undefined {
  return above.keys.get(key) ?? above.member
}

/** A key that may be left out, and then is absent. */
export interface OptionalField<T> extends Field<T> {
  readonly optional: true
}

export function optional<T>(inner: Field<T>): OptionalField<T> {
  return { ...inner, optional: true, schema: inner.bare }
}

/** Whether the file has to give this key. */
export function isRequired(each: Field<unknown>): boolean {
  return each.initial === undefined && !each.optional
}

/** What a field reads. */
export type ValueOf<F> = F extends Field<infer T> ? T : never

type Fields = Readonly<Record<string, Field<unknown>>>

type OptionalKeys<F extends Fields> = {
  [K in keyof F]: F[K] extends OptionalField<unknown> ? K : never
}[keyof F]

/** What a section of such fields reads; keys that may be left out are optional. */
type SectionOf<F extends Fields> = Flat<
  { readonly [K in Exclude<keyof F, OptionalKeys<F>>]: ValueOf<F[K]> } & {
    readonly [K in OptionalKeys<F>]?: ValueOf<F[K]>
  }
>

/** An intersection as one object type, for the compiler's messages. */
type Flat<T> = { readonly [K in keyof T]: T[K] }

/** A mapping of known keys, in snake_case in the file and in camelCase in the result. */
export function section<F extends Fields>(description: string, fields: F): Field<SectionOf<F>> {
  type T = SectionOf<F>
  const keys: Keys = new Map(Object.entries(fields).map(([name, each]) => [snakeCase(name), each]))
  const schema = z.codec(mapping(keys, 'must be a mapping of keys'), z.custom<T>(), {
    // The cast holds because T is made of the types of these fields under these names.
    decode: (given) => rename(given, camelCase) as T,
    encode: (value) => rename(value, snakeCase),
  })
  return field(schema, { description, type: 'mapping', initial: {}, kind: 'section', textForm: 'yaml', keys })
}

/** The union of `{key: value}`, one for each alternative. */
type ChoiceOf<F extends Fields> = { [K in keyof F]: { readonly [P in K]: ValueOf<F[K]> } }[keyof F]

/** Alternatives of which exactly one is given, each under its own key. */
export function choice<F extends Fields>(description: string, alternatives: F): Field<ChoiceOf<F>> {
  type T = ChoiceOf<F>
  const keys: Keys = new Map(Object.entries(alternatives).map(([key, each]) => [key, optional(each)]))
  const names = [...keys.keys()].join(', ')
  const must = `must hold one of ${names}`
  const one = mapping(keys, must)
    .meta({ minProperties: 1, maxProperties: 1 })
    .superRefine((given, context) => {
      const [first, ...others] = Object.keys(given)
      if (first === undefined) context.addIssue({ code: 'custom', message: must })
      for (const other of others) {
        const message = `must not stand beside ${first}; keep one of the two`
        context.addIssue({ code: 'custom', message, path: [other] })
      }
    })
  const schema = z.codec(one, z.custom<T>(), {
    // The cast holds because exactly one alternative is there, read by its own field.
    decode: (given) => given as T,
    encode: (value) => rename(value, (key) => key),
  })
  return field(schema, {
    description,
    type: `one of ${names}`,
    kind: 'choice',
    secret: true,
    textForm: 'yaml',
    keys,
  })
}

/** A mapping of the operator's own names, each to the same kind of section. `nameProblem` judges the names. */
export function named<T extends object>(
  member: Field<T>,
  nameProblem: (name: string) => string | undefined,
  explained: Explained & { readonly type: string },
): Field<Readonly<Record<string, T>>> {
  const schema = z
    .record(z.string(), member.bare, { error: `must be a ${explained.type}` })
    .superRefine((given, context) => {
      for (const name of Object.keys(given)) {
        const message = nameProblem(name)
        if (message !== undefined) context.addIssue({ code: 'custom', message, path: [name] })
      }
    })
  return field<Readonly<Record<string, T>>>(schema, { ...explained, kind: 'named', textForm: 'yaml', member })
}

/** One of some words, or a mapping. */
export function either<A extends string, B extends object>(
  words: Field<A>,
  other: Field<B>,
  must: string,
  explained: Explained,
): Field<A | B> {
  const schema = z.union([words.bare, other.bare], { error: must })
  const type = `${words.type}, or a mapping`
  return field<A | B>(schema, { ...explained, type, kind: 'either', textForm: 'yaml', keys: other.keys })
}

function mapping(keys: Keys, must: string): z.ZodType<Record<string, unknown>, Record<string, unknown>> {
  const shape = [...keys].map(
    ([key, each]) => [key, each.optional ? each.schema.optional() : each.schema] as const,
  )
  return z.strictObject(Object.fromEntries(shape), { error: must })
}

function rename(from: object, to: (key: string) => string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(from).map(([key, value]) => [to(key), value]))
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** The name in the result of a key in the file. */
export function camelCase(key: string): string {
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
