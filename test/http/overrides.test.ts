import fc from 'fast-check'
import { expect, it } from 'vitest'
import { destinationOf, hasOverride, isOverride } from '../../src/http/overrides.ts'
import { requestHead } from '../support/exchange.ts'
import { growth, LINEAR } from '../support/lived-time.ts'
import { LOOK_ALIKES, OVERRIDES } from './override-names.ts'

it('H203 names are told apart in any case and punctuation, and in linear time', () => {
  for (const name of OVERRIDES)
    for (const byte of '-_.!~+')
      for (const each of [name, name.toUpperCase(), name.toLowerCase()])
        expect([each, isOverride(each.replaceAll('-', byte))]).toEqual([each, true])
  for (const name of LOOK_ALIKES) expect([name, isOverride(name)]).toEqual([name, false])
  fc.assert(fc.property(fc.stringMatching(/^[a-z]{1,10}$/), (word) => isOverride(`x-${word}-url`)))
  const grown = growth(4_000, (size) => {
    for (const part of ['x-', 'http-', 'x-http', 'httphttp-', '-'])
      expect(isOverride(`x-${part.repeat(size / part.length)}`)).toBe(false)
  })
  expect(grown).toBeLessThan(LINEAR)
})

it('H203 a field names another request by its name, not by its value', () => {
  expect(hasOverride(['X-Other', 'X-Original-URL', 'Accept', 'method'])).toBe(false)
  expect(hasOverride(['X-Other', '1', 'x_original.url', '/admin'])).toBe(true)
  expect(hasOverride([])).toBe(false)
})

const AUTHORITY = 'postern.example:8443'

/** The target that a request for this host names by these fields. */
function destinationIn(destinations: readonly string[], more: readonly string[] = [], peerTrusted = false) {
  const fields = [...destinations.flatMap((value) => ['Destination', value]), ...more]
  return destinationOf({
    head: requestHead({ secure: true, fields }),
    classified: { host: AUTHORITY },
    client: { peerTrusted, hops: 0 },
  })
}

it('H204 no Destination is none, and two are one that nothing may admit', () => {
  expect(destinationIn([])).toBeUndefined()
  expect(destinationIn(['/below/b', '/below/b'])).toBe('')
})

it('H204 a trusted proxy names the host, with or without the default port of its scheme', () => {
  const proxied = ['X-Forwarded-Host', 'front.example', 'X-Forwarded-Proto', 'https']
  const here = [
    ...['https://front.example/a', 'https://front.example:443/a', 'http://front.example/a'],
    ...['http://front.example:80/a', 'https://postern.example:8443/a'],
  ]
  expect(here.map((each) => destinationIn([each], proxied, true))).toEqual(Array(5).fill('/a'))
  expect(destinationIn(['https://other.example/a'], proxied, true)).toBe('')
  expect(destinationIn(['https://front.example/a'], proxied, false)).toBe('')
})
