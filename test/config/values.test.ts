import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  formatUpstreamUrl,
  parseAddress,
  parsePublicAddress,
  parseUpstreamUrl,
} from '../../src/config/address.ts'
import { headerNameProblem, headerValueProblem } from '../../src/config/header-field.ts'
import { dottedKeys } from '../../src/config/known-keys.ts'
import { adviceOn, nearestKey } from '../../src/config/nearest.ts'
import { parseStoreUrl } from '../../src/config/store-fields.ts'
import { formatDuration, parseDuration, parseSize } from '../../src/config/units.ts'
import { parseYaml } from '../../src/config/yaml.ts'
import { formatAddress } from '../../src/system/listen-address.ts'
import { runCases } from '../support/cases.ts'
import { textOf } from './sources.ts'

/** What comes of a value: the value that it is read as, or why it is refused. */
type Read = { readonly value: unknown } | { readonly problem: string }

const refusedFor = (problem: string | undefined): Read =>
  problem === undefined ? { value: 'accepted' } : { problem }

/** The number or text that stands in a file of the configuration. */
function scalar(text: string): string | number {
  const parsed = parseYaml(text)
  const value = 'value' in parsed ? parsed.value : expect.fail(parsed.problem)
  return typeof value === 'number' || typeof value === 'string' ? value : expect.fail(`${text} is no scalar`)
}

/** How each kind of value is read. What is written again is read as the same value. */
const READ: Readonly<Record<string, (text: string) => Read>> = {
  duration: (text) => parseDuration(scalar(text)),
  size: (text) => parseSize(scalar(text)),
  address(text) {
    const parsed = parseAddress(text)
    if ('value' in parsed) expect(formatAddress(parsed.value)).toBe(text)
    return parsed
  },
  public(text) {
    const parsed = parsePublicAddress(text)
    if ('value' in parsed) expect(parsePublicAddress(formatAddress(parsed.value))).toEqual(parsed)
    return parsed
  },
  device(text) {
    const parsed = parseUpstreamUrl(text)
    if ('value' in parsed) expect(parseUpstreamUrl(formatUpstreamUrl(parsed.value))).toEqual(parsed)
    return parsed
  },
  store: parseStoreUrl,
  name: (text) => refusedFor(headerNameProblem(text)),
  value: (text) => refusedFor(headerValueProblem(text)),
  key: (text) => ({ value: adviceOn(nearestKey(text, dottedKeys())) }),
}

runCases(join(import.meta.dirname, 'values.txt'), {
  given: Object.keys(READ),
  results: ['is', 'refused'],
  play(given) {
    const [[kind, text = ''] = expect.fail('nothing is given')] = Object.entries(given)
    const read = READ[kind]?.(textOf(text)) ?? expect.fail(`${kind} is not read`)
    if ('problem' in read) return { refused: read.problem }
    return { is: typeof read.value === 'object' ? JSON.stringify(read.value) : String(read.value) }
  },
})

it('a duration is written in the largest unit that fits', () => {
  const units = [0, 1, 1500, 60_000, 90_000, 3_600_000, 86_400_000, 604_800_000]
  expect(units.map(formatDuration).join(' ')).toBe('0s 1ms 1500ms 1m 90s 1h 1d 7d')
})

it('a duration survives formatting and parsing', () => {
  fc.assert(
    fc.property(fc.nat({ max: 400 * 86_400_000 }), (value) => {
      expect(parseDuration(formatDuration(value))).toEqual({ value })
      expect(parseDuration(value / 1000)).toEqual({ value })
    }),
  )
})

it('an address survives formatting and parsing', () => {
  const port = fc.integer({ min: 0, max: 65_535 })
  const hosts = fc.oneof(fc.ipV4(), fc.ipV6(), fc.domain())
  fc.assert(
    fc.property(hosts, port, (host, chosen) => {
      const value = { kind: 'tcp', host, port: chosen } as const
      expect(parseAddress(formatAddress(value))).toEqual({ value })
    }),
  )
})

it('the nearest key to every known key is the key itself', () => {
  for (const key of dottedKeys()) expect(nearestKey(key, dottedKeys())).toBe(key)
})
