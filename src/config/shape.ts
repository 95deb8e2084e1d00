import type { Parsed, YamlValue } from './yaml.ts'
// The forms of values in the file. Written here and not taken from a package: each of zod's schemas is an object of 30 closures, and
// those of a configuration took 13 ms of each start and a megabyte of memory.

/** A problem with a value. */
export interface Issue {
  /** The keys from the value that was decoded to the wrong one. */
  readonly path: readonly string[]
  readonly message: string
  /** The unknown keys of the mapping at `path`; empty for any other problem. */
  readonly unknown: readonly string[]
  /** The value has another type than the shape, or is none of its words: it may be meant for another shape of a union. */
  readonly isOther?: true
}

export type Decoded<T> = { readonly value: T } | { readonly issues: readonly Issue[] }

type JsonSchema = Readonly<Record<string, unknown>>

/** The form of a value in the file. */
export interface Shape<T> {
  /** Decodes the YAML form, or returns all issues at once. `undefined` stands for a missing value. */
  decode(given: unknown): Decoded<T>
  /** Encodes a value back to its YAML form. What it returns for a value of another shape does not decode. */
  encode(value: T): unknown
  /** The JSON Schema of the YAML form. */
  json(): JsonSchema
}

/** The shape of the value of a known key. */
export interface Member<T> extends Shape<T> {
  /** The YAML form of the value of a missing key. */
  readonly default?: YamlValue | undefined
  /** The key may be missing: then its value is absent. */
  readonly optional?: boolean
}

export function issue(path: readonly string[], message: string): Issue {
  return { path, message, unknown: [] }
}

function isOther(message: string): { readonly issues: readonly Issue[] } {
  return { issues: [{ ...issue([], message), isOther: true }] }
}

/** A value that is written as it is. */
function plain<T>(is: (given: unknown) => given is T, must: string, schema: JsonSchema): Shape<T> {
  return {
    decode: (given) => (is(given) ? { value: given } : isOther(must)),
    encode: (value) => value,
    json: () => schema,
  }
}

/** @param schema what else the JSON Schema says of it */
export function string(must: string, schema: JsonSchema = {}): Shape<string> {
  return plain((given) => typeof given === 'string', must, { type: 'string', ...schema })
}

export function number(must: string): Shape<number> {
  return plain((given): given is number => Number.isFinite(given), must, { type: 'number' })
}

export function integer(least: number, most: number, must: string): Shape<number> {
  const whole = plain((given): given is number => Number.isInteger(given), must, {
    type: 'integer',
    minimum: least,
    maximum: most,
  })
  return checked(whole, (value) => (value >= least && value <= most ? [] : [issue([], must)]))
}

export function boolean(must: string): Shape<boolean> {
  return plain((given) => typeof given === 'boolean', must, { type: 'boolean' })
}

/** One of several words. */
export function word<const T extends string>(words: readonly T[], must: string): Shape<T> {
  const known: readonly unknown[] = words
  return plain((given): given is T => known.includes(given), must, { type: 'string', enum: words })
}

/** Exactly `true` or exactly `null`. */
export function only<const T extends true | null>(value: T, must: string): Shape<T> {
  const schema = value === null ? { type: 'null' } : { type: 'boolean', const: value }
  return plain((given): given is T => given === value, must, schema)
}

export const anything: Shape<unknown> = plain((given): given is unknown => given !== undefined, '', {})

/** A value that is written as another one. `format` is the inverse of `parse`. */
export function parsed<W, T>(
  written: Shape<W>,
  parse: (given: W) => Parsed<T>,
  format: (value: T) => W,
): Shape<T> {
  return {
    decode(given) {
      const decoded = written.decode(given)
      if ('issues' in decoded) return decoded
      const result = parse(decoded.value)
      return 'problem' in result ? { issues: [issue([], result.problem)] } : result
    },
    encode: (value) => written.encode(format(value)),
    json: () => written.json(),
  }
}

/** `issuesOf` sees only values that the shape accepts. */
export function checked<T>(shape: Shape<T>, issuesOf: (value: T) => readonly Issue[]): Shape<T> {
  return {
    ...shape,
    decode(given) {
      const decoded = shape.decode(given)
      const issues = 'issues' in decoded ? [] : issuesOf(decoded.value)
      return issues.length === 0 ? decoded : { issues }
    },
  }
}

/** One of several shapes. If the value has the type of only one of them, the issues are those of that one. */
export function union<T>(shapes: readonly Shape<T>[], must: string): Shape<T> {
  return {
    decode(given) {
      const failed: (readonly Issue[])[] = []
      for (const shape of shapes) {
        const decoded = shape.decode(given)
        if ('value' in decoded) return decoded
        failed.push(decoded.issues)
      }
      const meant = failed.filter((issues) => !issues.some((each) => each.isOther && each.path.length === 0))
      return meant.length === 1 && meant[0] !== undefined ? { issues: meant[0] } : isOther(must)
    },
    encode(value) {
      for (const shape of shapes) {
        const written = shape.encode(value)
        if ('value' in shape.decode(written)) return written
      }
      return undefined
    },
    json: () => ({ anyOf: shapes.map((shape) => shape.json()) }),
  }
}

function decodeEach<T>(
  entries: Iterable<readonly [key: string, given: unknown]>,
  member: Shape<T>,
): Decoded<[key: string, value: T][]> {
  const values: [string, T][] = []
  const issues: Issue[] = []
  for (const [key, given] of entries) {
    const decoded = member.decode(given)
    if ('value' in decoded) values.push([key, decoded.value])
    else issues.push(...below(key, decoded.issues))
  }
  return issues.length === 0 ? { value: values } : { issues }
}

function below(key: string, issues: readonly Issue[]): readonly Issue[] {
  return issues.map((each) => ({ ...each, path: [key, ...each.path] }))
}

export function list<T>(member: Shape<T>, must: string): Shape<readonly T[]> {
  return {
    decode(given) {
      if (!Array.isArray(given)) return isOther(must)
      const entries = given.map((each, index) => [String(index), each] as const)
      const decoded = decodeEach(entries, member)
      return 'issues' in decoded ? decoded : { value: decoded.value.map(([, value]) => value) }
    },
    encode: (values) => values.map((value) => member.encode(value)),
    json: () => ({ type: 'array', items: member.json() }),
  }
}

/** A mapping of any names to values of one shape. */
export function record<T>(member: Shape<T>, must: string): Shape<Readonly<Record<string, T>>> {
  return {
    decode(given) {
      if (!isMapping(given)) return isOther(must)
      const decoded = decodeEach(Object.entries(given), member)
      return 'issues' in decoded ? decoded : { value: Object.fromEntries(decoded.value) }
    },
    encode: (values) =>
      Object.fromEntries(Object.entries(values).map(([key, value]) => [key, member.encode(value)])),
    json: () => ({ type: OR_EMPTY, propertyNames: { type: 'string' }, additionalProperties: member.json() }),
  }
}

/** If all keys of a mapping are commented out, YAML parses it as `null`, and `layer` treats it as left out. */
const OR_EMPTY = ['object', 'null']

/**
 * A mapping of known keys. The caller proves that `T` has what the members decode to, under the names of their keys.
 * @param nameOf the name that the value of a key has in the result
 * @param demands what else the JSON Schema says of the mapping
 */
export function mapping<T extends object>(
  keys: ReadonlyMap<string, Member<unknown>>,
  must: string,
  nameOf: (key: string) => string = (key) => key,
  demands: JsonSchema = {},
): Shape<T> {
  return {
    decode(given) {
      if (!isMapping(given)) return isOther(must)
      const values: Record<string, unknown> = {}
      const issues: Issue[] = []
      for (const [key, member] of keys) {
        const written = Object.hasOwn(given, key) ? given[key] : member.default
        if (written === undefined && member.optional) continue
        const decoded = member.decode(written)
        if ('value' in decoded) values[nameOf(key)] = decoded.value
        else issues.push(...below(key, decoded.issues))
      }
      const unknown = Object.keys(given).filter((key) => !keys.has(key))
      if (unknown.length > 0) issues.push({ ...issue([], 'has unknown keys'), unknown })
      // The cast holds by what the caller proves.
      return issues.length === 0 ? { value: values as T } : { issues }
    },
    encode: (values) =>
      Object.fromEntries(
        [...keys].flatMap(([key, member]) => {
          const value: unknown = Reflect.get(values, nameOf(key))
          return value === undefined ? [] : [[key, member.encode(value)]]
        }),
      ),
    json() {
      const properties = [...keys].map(([key, member]) => {
        const { description, ...rest } = member.json()
        return [key, { description, default: member.default, ...rest }]
      })
      const required = [...keys].filter(([, member]) => !member.optional && member.default === undefined)
      const isNeeded = required.length > 0 || 'minProperties' in demands
      return {
        type: isNeeded ? 'object' : OR_EMPTY,
        properties: Object.fromEntries(properties),
        required: required.length === 0 ? undefined : required.map(([key]) => key),
        additionalProperties: false,
        ...demands,
      }
    },
  }
}

function isMapping(given: unknown): given is Readonly<Record<string, unknown>> {
  return typeof given === 'object' && given !== null && !Array.isArray(given)
}
