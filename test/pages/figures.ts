/** A number, or a range, with a unit in the prose of a page. */
export interface Measured {
  readonly text: string
  readonly around: string
  /** In ms, bytes or as a part; undefined for a unit in which the program has no limit. */
  readonly values: readonly (number | undefined)[]
}

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const KIB = 1024

/** The units in which the program has limits. Results come in smaller or rounder ones, too: µs, KB, ×. */
const UNITS: Readonly<Record<string, number>> = {
  ...{ ms: 1, s: SECOND, second: SECOND, minute: MINUTE, hour: HOUR },
  ...{ KiB: KIB, MiB: KIB ** 2, GiB: KIB ** 3, '%': 0.01 },
}

const NUMBER =
  /(?<![\w.,/-])(?![1-5]\d\ds)(\d[\d.,]*)(?: (?:to|and|or) (\d[\d.,]*))? ?(ms|µs|s|seconds?|minutes?|hours?|bytes|B|KiB|MiB|GiB|[kK]B|MB|GB|requests a second|requests\/s|×|%)(?![\w/])/g

/** A shorter time is never told from a result by its number alone (ms). */
const SHORTEST = 20

/**
 * The numbers with a unit of measurement in the prose of a page. Code, status codes (`429s`) and the thresholds of the bench (`≤ 2 ms`) are none,
 * and the reference of the configuration writes each type and default from the program.
 */
export function numbersIn(page: string): readonly Measured[] {
  const prose = page
    .replaceAll(/^```.*?^```$/gms, '')
    .replaceAll(/^- (?:Type|Default): .*$/gm, '')
    .replaceAll(/`[^`]*`|\]\([^)]*\)|[≤≥] [\d.,]+ \S+/g, '')
    .replaceAll(/\s+/g, ' ')
  return [...prose.matchAll(NUMBER)].map(({ 0: text, 1: one, 2: other, 3: unit = '', index }) => ({
    text,
    around: prose.slice(Math.max(0, index - 60), index + text.length + 20),
    values: [one, other].filter((digits) => digits !== undefined).map((digits) => valueIn(digits, unit)),
  }))
}

function valueIn(digits: string, unit: string): number | undefined {
  const factor = UNITS[unit.replace(/(?<=second|minute|hour)s$/, '')]
  if (factor === undefined) return undefined
  const value = rounded(Number(digits.replaceAll(',', '')) * factor)
  return unit === 'ms' && value < SHORTEST ? undefined : value
}

const rounded = (value: number): number => Number(value.toPrecision(12))

/** The sections of a page, each with its heading and in one line. */
export function sectionsOf(page: string): readonly string[] {
  return page.split(/^(?=## )/m).map((text) => text.replaceAll(/\s+/g, ' '))
}

const NAMES: Readonly<Record<string, number>> = {
  ...{ SECOND, MINUTE, HOUR, DAY: 24 * HOUR, MIB: KIB ** 2 },
}

/** The values of the named constants in source code: products of numbers, `1 << 20`, and fractions in a constant object. */
export function constantsOf(source: string): readonly number[] {
  const constants = [...source.matchAll(/\bconst [A-Z][A-Z_0-9]*(?:: \w+)? = ([\w.* <]+)$/gm)]
  const fractions = [...source.matchAll(/^ {2}\w+: (0\.\d+),$/gm)]
  return [...constants, ...fractions].map(([, product = '']) => productOf(product)).filter(Number.isFinite)
}

function productOf(product: string): number {
  return product
    .replaceAll(/1 << (\d+)/g, (_, bits) => String(2 ** Number(bits)))
    .replaceAll(/(\d+) \*\* (\d+)/g, (_, base, power) => String(Number(base) ** Number(power)))
    .split('*')
    .map((factor) => NAMES[factor.trim()] ?? Number(factor.trim().replaceAll('_', '')))
    .reduce((a, b) => a * b, 1)
}

const SHORT: Readonly<Record<string, string>> = { m: 'minute', h: 'hour' }

/** The durations and sizes that are defaults of keys in a schema, and the memory that units give. */
export function defaultsOf(text: string): readonly number[] {
  return [...text.matchAll(/"default": "(\d+)([a-zA-Z]+)"|^MemoryMax=(\d+)M$/gm)].flatMap(
    ([, digits = '', unit = '', mebibytes]) =>
      (mebibytes === undefined ? valueIn(digits, SHORT[unit] ?? unit) : valueIn(mebibytes, 'MiB')) ?? [],
  )
}
