import { normalize } from 'node:path'
import { parseCidr } from '../http/ip.ts'
import { formatAddress, type ListenAddress } from '../system/listen-address.ts'
import {
  ADDRESS_FORMS,
  filePathProblem,
  PUBLIC_FORMS,
  parseAddress,
  parsePublicAddress,
  UNSET_ADDRESS,
} from './address.ts'
import { type Field, type FieldOptions, field, z } from './field.ts'
import { DURATION_PATTERN, parseDuration, parseSize, SIZE_PATTERN } from './units.ts'
import type { Parsed } from './yaml.ts'

/** A value that is parsed from its written form. `must` is the error message for a value of another type. */
interface Written<T, W> extends FieldOptions {
  readonly type: string
  readonly must: string
  readonly parse: (given: W | string) => Parsed<T>
}

function parsed<T, W extends string | number>(
  spec: Written<T, W>,
  form: () => z.ZodMiniType<W, W>,
): Field<T> {
  const { default: written, parse } = spec
  const build = (): z.ZodMiniType<T> => {
    const read = z.transform((given: W, { issues }) => {
      const result = parse(given)
      if ('value' in result) return result.value
      issues.push({ code: 'custom', message: result.problem, input: given })
      return z.NEVER
    })
    return z.pipe(form(), read)
  }
  const initial = written === undefined ? {} : { initial: () => valueIn(parse(String(written))) }
  return field(build, { ...spec, ...initial })
}

/** The value of a text in the schema itself. Throws if the text is invalid, because that is a bug. */
function valueIn<T>(parsed: Parsed<T>): T {
  if ('problem' in parsed) throw new TypeError(parsed.problem)
  return parsed.value
}

export function text<T>(spec: Written<T, string>): Field<T> {
  return parsed(spec, () => z.string({ error: spec.must }))
}

/** A value written as a number, or as text such as `10s`. */
export function measured<T>(spec: Written<T, string | number> & { readonly pattern: RegExp }): Field<T> {
  const form = () => z.string().register(z.globalRegistry, { pattern: spec.pattern.source })
  return parsed<T, string | number>(spec, () => z.union([form(), z.number()], { error: spec.must }))
}

/** Text, or `null` for no value. */
export function textOrNull(
  type: string,
  must: string,
  options: FieldOptions & { readonly problemOf: ProblemOf },
) {
  const some = text({ type, must, parse: parseBy(options.problemOf) })
  const build = () => z.union([z.null(), some.schema()], { error: must })
  return field<string | null>(build, { ...options, type, textForm: 'yaml' })
}

export function integer(least: number, most: number, options: FieldOptions = {}): Field<number> {
  const error = `must be a whole number from ${least} to ${most}`
  // `abort`: a number beyond the safe integers breaks two rules, but gets one message.
  const build = () => z.int({ error, abort: true }).check(z.gte(least, { error }), z.lte(most, { error }))
  return field(build, { ...options, type: `whole number, ${least} to ${most}`, textForm: 'yaml' })
}

export function flag(options: FieldOptions = {}): Field<boolean> {
  const build = () => z.boolean({ error: 'must be true or false' })
  return field(build, { ...options, type: '`true` or `false`', textForm: 'yaml' })
}

/** One of several words. `must` is the error message for any other value. */
export function oneOf<const T extends string>(
  words: readonly T[],
  { must = `must be one of ${words.join(', ')}`, ...options }: FieldOptions & { readonly must?: string } = {},
): Field<T> {
  const build = () => z.enum(words, { error: must })
  return field<T>(build, { ...options, words, type: words.map((word) => `\`${word}\``).join(', ') })
}

/** Returns an error message for a text that is wrong. */
type ProblemOf = (given: string) => string | undefined

/** Returns `problem` for each text that fails the test. */
export function unless(test: RegExp | ((given: string) => boolean), problem: string): ProblemOf {
  const passes = typeof test === 'function' ? test : (given: string): boolean => test.test(given)
  return (given) => (passes(given) ? undefined : problem)
}

/** Accepts a text unless `problemOf` refuses it. The value has the spelling that `spelled` returns. */
function parseBy(problemOf: ProblemOf, spelled: (given: string) => string = (given) => given) {
  return (given: string): Parsed<string> => {
    const problem = problemOf(given)
    return problem === undefined ? { value: spelled(given) } : { problem }
  }
}

/** A key whose only value is `true`. */
export function truth(must = 'must be true'): Field<true> {
  return field(() => z.literal(true, { error: must }), { type: '`true`', textForm: 'yaml' })
}

/**
 * A list of texts. `must` is the error message for another member.
 *
 * @param spelled the spelling in which a text is kept
 */
export function list(
  type: string,
  must: string,
  { problemOf, ...options }: FieldOptions & { readonly problemOf: ProblemOf },
  spelled?: (given: string) => string,
): Field<readonly string[]> {
  const member = text({ type, must, parse: parseBy(problemOf, spelled) })
  const build = () => z.array(member.schema(), { error: `must be a list of ${type}` })
  return field<readonly string[]>(build, { ...options, type: `list of ${type}`, textForm: 'list' })
}

type DurationOptions = FieldOptions & { readonly wholeSeconds?: boolean }

/** A duration in ms, or one of `words`. The bounds are as the reference page shows them: `1s`, `1d`. */
export function duration(least: string, most: string, options: DurationOptions): Field<number>
export function duration<const Word extends string>(
  least: string,
  most: string,
  options: DurationOptions,
  words: readonly Word[],
): Field<number | Word>
export function duration(
  least: string,
  most: string,
  { wholeSeconds = false, ...options }: DurationOptions,
  words: readonly string[] = [],
): Field<number | string> {
  const range = `a duration from ${least} to ${most}, such as 500ms, 10s, 5m, 1h or 7d`
  const must = ['must be', ...words.flatMap((word) => [word, 'or']), range].join(' ')
  const parse = bounded(parseDuration, least, most, must)
  return measured<number | string>({
    ...options,
    type: [`duration, ${least} to ${most}`, ...words.map((word) => `or \`${word}\``)].join(', '),
    must,
    pattern: new RegExp([...words.map((word) => `^${word}$`), DURATION_PATTERN.source].join('|')),
    // `wholeSeconds`: a field of responses states the duration in seconds.
    parse: (given) => {
      const word = words.find((each) => each === given)
      if (word !== undefined) return { value: word }
      const parsed = wholeSeconds ? parseDuration(given) : undefined
      const isFraction = parsed !== undefined && 'value' in parsed && parsed.value % 1000 !== 0
      return isFraction ? { problem: 'must be whole seconds' } : parse(given)
    },
  })
}

/** A size in bytes, or one of `words`. */
export function size<const Word extends string = never>(
  least: string,
  most: string,
  options: FieldOptions,
  words: readonly Word[] = [],
): Field<number | Word> {
  const range = `from ${least} to ${most}, in bytes or such as 8KiB or 1MiB`
  const must =
    words.length === 0 ? `must be a size ${range}` : `must be ${words.join(' or ')}, or a size ${range}`
  const parse = bounded(parseSize, least, most, must)
  const type = [`size, ${least} to ${most}`, words.map((word) => `\`${word}\``).join(' or ')]
  return measured<number | Word>({
    ...options,
    type: type.filter((part) => part !== '').join(', or '),
    must,
    pattern: new RegExp([...words.map((word) => `^${word}$`), SIZE_PATTERN.source].join('|')),
    parse: (given) => {
      const word = words.find((each) => each === given)
      return word === undefined ? parse(given) : { value: word }
    },
  })
}

type ParseNumber = (given: string | number) => Parsed<number>

/** `parse` for values between two bounds. Throws if a bound is invalid, because the bounds are written in the schema. */
function bounded(parse: ParseNumber, least: string, most: string, must: string): ParseNumber {
  const [from, to] = [valueIn(parse(least)), valueIn(parse(most))]
  return (given) => {
    const parsed = parse(given)
    return 'problem' in parsed || (parsed.value >= from && parsed.value <= to) ? parsed : { problem: must }
  }
}

/**
 * Text that is not empty. `problemOf` may check more.
 *
 * @param spelled the spelling in which it is kept
 */
export function plainText(
  type: string,
  { problemOf = () => undefined, ...options }: FieldOptions & { readonly problemOf?: ProblemOf },
  spelled?: (given: string) => string,
): Field<string> {
  const must = `must be ${type}`
  const parse = parseBy((given) => (given === '' ? must : problemOf(given)), spelled)
  return text({ ...options, type, must, parse })
}

export function path(options: FieldOptions = {}): Field<string> {
  return plainText('a path', { ...options, problemOf: filePathProblem })
}

/**
 * The path of a folder of Postern. A name with `..` behind it is left out, as `join` does for what is in the folder. The kernel would go to
 * the folder above the target if the name is a link.
 */
export function ownFolder(options: FieldOptions): Field<string> {
  return plainText('a path', { ...options, problemOf: filePathProblem }, normalize)
}

/** The path of a password file. Some operators write the hash itself in its place, so no message quotes the value. */
export function passwordFile(): Field<string> {
  const isHash = (given: string): boolean => /^\$[\w,=.-]+\$/.test(given)
  return plainText('a path', {
    secret: true,
    problemOf: (given) =>
      isHash(given)
        ? 'must be the path of a file with the hash, not the hash itself'
        : filePathProblem(given),
  })
}

/** An address to listen on, or one of `words`. */
export function address<const Word extends string>(
  options: FieldOptions,
  words: readonly Word[],
): Field<ListenAddress | Word> {
  return text<ListenAddress | Word>({
    ...options,
    type: [ADDRESS_FORMS, ...words.map((word) => `\`${word}\``)].join(', or '),
    must: `must be ${[ADDRESS_FORMS, ...words].join(', or ')}`,
    parse: (given) => {
      const word = words.find((each) => each === given)
      return word === undefined ? parseAddress(given) : { value: word }
    },
  })
}

/** The address of the public listener. */
export function publicAddress(): Field<ListenAddress> {
  const written = text<ListenAddress>({
    default: formatAddress(UNSET_ADDRESS),
    type: PUBLIC_FORMS,
    must: `must be ${PUBLIC_FORMS}`,
    parse: parsePublicAddress,
  })
  return { ...written, initial: () => UNSET_ADDRESS }
}

/** IP addresses and ranges; with `unix`, also that word, for peers on a Unix socket, which have no address. */
export function addresses(
  options: FieldOptions,
  unix: 'unix' | undefined = undefined,
): Field<readonly string[]> {
  const must = `must be a CIDR such as 10.0.0.0/8 or fd00::/8, ${unix ? 'a single address, or unix' : 'or a single address'}`
  const problemOf = (given: string): string | undefined => {
    if (given === unix || parseCidr(given) !== undefined) return undefined
    const [, base = '', bits] = /^(.+)\/(\d+)$/.exec(given) ?? []
    if (parseCidr(base) === undefined) return must
    return `must have at most ${base.includes(':') ? 128 : 32} bits after the slash, not ${bits}`
  }
  return list(unix ? 'CIDRs, addresses or `unix`' : 'CIDRs or addresses', must, { ...options, problemOf })
}
