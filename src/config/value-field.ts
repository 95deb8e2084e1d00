import { type Explained, type Field, field, z } from './field.ts'
import type { Parsed } from './yaml-value.ts'

/** A header value as text, or the file that holds it. */
export type HeaderValue = string | { readonly file: string }

/** A value written as text. `must` is what is said of a value of another type. */
export interface Textual<T> extends Explained {
  readonly type: string
  readonly must: string
  readonly parse: (given: string) => Parsed<T>
  readonly format: (value: T) => string
}

/** A value written as a number, or as text such as `10s`. */
export interface Measured<T> extends Explained {
  readonly type: string
  readonly must: string
  readonly pattern: RegExp
  readonly parse: (given: string | number) => Parsed<T>
  readonly format: (value: T) => string | number
}

export function text<T>(spec: Textual<T>): Field<T> {
  return field(read(z.string({ error: spec.must }), spec), spec)
}

/** The same, where `null` stands for none. */
export function textOrNull<T>(spec: Textual<T>): Field<T | null> {
  const some = read(z.string({ error: spec.must }), spec)
  return field<T | null>(z.union([z.null(), some], { error: spec.must }), {
    ...spec,
    reading: 'text or null',
  })
}

export function measured<T>(spec: Measured<T>): Field<T> {
  const written = z.string().meta({ pattern: spec.pattern.source })
  return field(read(z.union([written, NUMBER], { error: spec.must }), spec), spec)
}

export function integer(least: number, most: number, explained: Explained): Field<number> {
  const error = `must be a whole number from ${least} to ${most}`
  // One that is no safe integer breaks two rules, and is wrong once.
  const schema = z.int({ error, abort: true }).check(z.gte(least, { error }), z.lte(most, { error }))
  return field(schema, { ...explained, type: `whole number, ${least} to ${most}`, reading: 'yaml' })
}

export function flag(explained: Explained): Field<boolean> {
  const schema = z.boolean({ error: 'must be true or false' })
  return field(schema, { ...explained, type: '`true` or `false`', reading: 'yaml' })
}

/** `must` is what is said of any other value. */
export function oneOf<const T extends string>(
  words: readonly T[],
  explained: Explained,
  must: string = `must be one of ${words.join(', ')}`,
): Field<T> {
  const schema = z.enum(words, { error: must })
  return field<T>(schema, { ...explained, type: words.map((word) => `\`${word}\``).join(', ') })
}

export function list(spec: Textual<string>): Field<readonly string[]> {
  const member = read(z.string({ error: spec.must }), spec)
  const schema = z.array(member, { error: `must be a list of ${spec.type}` })
  return field<readonly string[]>(schema, { ...spec, type: `list of ${spec.type}`, reading: 'list' })
}

/** Header fields by name, each value as text or as the file that holds it. `problemOf` judges one of them. */
export function headers(
  problemOf: (name: string, value: HeaderValue, names: readonly string[]) => string | undefined,
  explained: Explained,
): Field<Readonly<Record<string, HeaderValue>>> {
  const path = z.string({ error: 'must be a path' }).min(1, { error: 'must be a path' })
  const value = z.union([z.string(), z.strictObject({ file: path })], {
    error: 'must be text (in quotes if it looks like a number) or {file: path}',
  })
  const schema = z
    .record(z.string(), value, { error: 'must be a mapping of names to values' })
    .superRefine((given, context) => {
      const names = Object.keys(given)
      for (const [name, each] of Object.entries(given)) {
        const message = problemOf(name, each, names)
        if (message !== undefined) context.addIssue({ code: 'custom', message, path: [name] })
      }
    })
  const type = 'mapping of names to text or `{file: path}`'
  return field(schema, { ...explained, type, kind: 'headers', reading: 'yaml', secret: true })
}

const NUMBER = z.number()

/** The written form on the one side, the value on the other, and `parse` and `format` between them. */
function read<W extends string | number, T>(
  written: z.ZodType<W, W>,
  spec: { readonly parse: (given: W) => Parsed<T>; readonly format: (value: T) => NoInfer<W> },
): z.ZodType<T> {
  return z.codec(written, z.custom<T>(), {
    decode: (given, context) => {
      const parsed = spec.parse(given)
      if ('value' in parsed) return parsed.value
      context.issues.push({ code: 'custom', message: parsed.problem, input: given })
      return z.NEVER
    },
    encode: spec.format,
  })
}
