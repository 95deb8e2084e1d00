import { parseCidr } from '../http/ip.ts'
import { type Address, formatAddress, parseAddress } from './address.ts'
import type { Explained, Field } from './field.ts'
import {
  DURATION_PATTERN,
  formatDuration,
  formatSize,
  parseDuration,
  parseSize,
  SIZE_PATTERN,
} from './units.ts'
import { list, measured, text } from './value-field.ts'
import type { Parsed } from './yaml-value.ts'

/** The bounds of a duration, as they stand in the reference: `1s`, `1d`. */
interface Bounds {
  readonly least: string
  readonly most: string
  /** Clients are told seconds, so that a fraction of one could not be told. */
  readonly wholeSeconds?: boolean
}

/** A duration in milliseconds. */
export function duration(bounds: Bounds, explained: Explained): Field<number> {
  const must = `must be a duration from ${bounds.least} to ${bounds.most}, such as 500ms, 10s, 5m, 1h or 7d`
  const [least, most] = [milliseconds(bounds.least), milliseconds(bounds.most)]
  return measured({
    ...explained,
    type: `duration, ${bounds.least} to ${bounds.most}`,
    must,
    pattern: DURATION_PATTERN,
    parse: (given) => {
      const parsed = parseDuration(given)
      if ('problem' in parsed) return parsed
      if (bounds.wholeSeconds === true && parsed.value % 1000 !== 0)
        return { problem: 'must be whole seconds' }
      return within(parsed.value, least, most) ? parsed : { problem: must }
    },
    format: formatDuration,
  })
}

/** A size in bytes. */
export function size(least: string, most: string, explained: Explained): Field<number> {
  const must = `must be a size from ${least} to ${most}, in bytes or such as 8KiB or 1MiB`
  return measured({
    ...explained,
    type: `size, ${least} to ${most}`,
    must,
    pattern: SIZE_PATTERN,
    parse: (given) => parseSizeWithin(given, least, most, must),
    format: formatSize,
  })
}

/** A size in bytes, or `off`. */
export function sizeOrOff(least: string, most: string, explained: Explained): Field<number | 'off'> {
  const must = `must be off, or a size from ${least} to ${most}, in bytes or such as 8KiB or 1MiB`
  return measured<number | 'off'>({
    ...explained,
    type: `size, ${least} to ${most}, or \`off\``,
    must,
    pattern: new RegExp(`^off$|${SIZE_PATTERN.source}`),
    parse: (given) => (given === 'off' ? { value: given } : parseSizeWithin(given, least, most, must)),
    format: (value) => (value === 'off' ? value : formatSize(value)),
  })
}

function parseSizeWithin(given: string | number, least: string, most: string, must: string): Parsed<number> {
  const parsed = parseSize(given)
  if ('problem' in parsed) return parsed
  return within(parsed.value, bytes(least), bytes(most)) ? parsed : { problem: must }
}

/** Text that says something; `problemOf` may ask for more. */
export function plainText(
  type: string,
  explained: Explained,
  problemOf: (given: string) => string | undefined = () => undefined,
): Field<string> {
  const must = `must be ${type}`
  const parse = (given: string): Parsed<string> => {
    const problem = given === '' ? must : problemOf(given)
    return problem === undefined ? { value: given } : { problem }
  }
  return text({ ...explained, type, must, parse, format: (value) => value })
}

export function path(explained: Explained): Field<string> {
  return plainText('a path', explained, (given) => (given.includes('\0') ? 'must not hold a NUL' : undefined))
}

const ADDRESS = 'host:port, [IPv6]:port, unix:/path or fd:3'

export function address(explained: Explained): Field<Address> {
  return text({
    ...explained,
    type: ADDRESS,
    must: `must be ${ADDRESS}`,
    parse: parseAddress,
    format: formatAddress,
  })
}

export function addressOrOff(explained: Explained): Field<Address | 'off'> {
  const type = `${ADDRESS}, or \`off\``
  return text<Address | 'off'>({
    ...explained,
    type,
    must: `must be ${ADDRESS}, or off`,
    parse: (given) => (given === 'off' ? { value: given } : parseAddress(given)),
    format: (value) => (value === 'off' ? value : formatAddress(value)),
  })
}

/** Those who may speak for others: by address, or `unix` for peers that have none. */
export function peers(explained: Explained): Field<readonly string[]> {
  const must = 'must be a CIDR such as 10.0.0.0/8 or fd00::/8, a single address, or unix'
  return list({
    ...explained,
    type: 'CIDRs, addresses or `unix`',
    must,
    parse: (given) =>
      given === 'unix' || parseCidr(given) !== undefined ? { value: given } : { problem: must },
    format: (value) => value,
  })
}

const REQUEST_PATH = 'must be a path such as /login, or /static/ for everything below it'

/** Paths as they stand in a request line, each taken byte for byte. */
export function requestPaths(explained: Explained): Field<readonly string[]> {
  return list({
    ...explained,
    type: 'request paths',
    must: REQUEST_PATH,
    parse: (given) => {
      const problem = requestPathProblem(given)
      return problem === undefined ? { value: given } : { problem }
    },
    format: (value) => value,
  })
}

export function requestPathProblem(given: string): string | undefined {
  return /^\/[!$&'()*+,\-./0-9:;=@A-Z_a-z~%]*$/.test(given) ? undefined : REQUEST_PATH
}

function within(value: number, least: number, most: number): boolean {
  return value >= least && value <= most
}

function milliseconds(written: string): number {
  return known(parseDuration(written))
}

function bytes(written: string): number {
  return known(parseSize(written))
}

/** For bounds that the schema itself writes: a bad one is a bug. */
function known(parsed: Parsed<number>): number {
  if ('problem' in parsed) throw new TypeError(parsed.problem)
  return parsed.value
}
