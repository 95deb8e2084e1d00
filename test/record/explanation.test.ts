import { join } from 'node:path'
import { expect, it } from 'vitest'
import { isMapping, parseYaml, type YamlMapping } from '../../src/config/yaml.ts'
import { explain } from '../../src/record/explanation.ts'
import type { RequestFacts } from '../../src/record/request-facts.ts'
import { runCases } from '../support/cases.ts'

/** A GET that was forwarded, and answered by the device. */
const GET: RequestFacts = {
  id: '0123abc',
  time: Date.UTC(2026, 0, 2, 3, 4, 5, 250),
  duration: 12.34,
  status: 200,
  requestBytes: 0,
  responseBytes: 27,
  lookup: 0,
  waited: 0,
  places: 0,
  sentAfter: 1,
  headAfter: 5.06,
  deviceStatus: 200,
  attempts: 1,
  reused: false,
  tolerant: false,
  deviation: '',
  limit: 60,
  remaining: 57,
  closesIn: 30_000,
  admitted: true,
  shared: false,
  overflow: false,
  kind: 'forward',
  endpoint: 'api',
  per: 'client',
  end: 'complete',
  version: '1.1',
  token: 'valid',
  ownEndpoint: '',
  forwarded: false,
  upgrade: false,
  route: '',
  client: '192.0.2.1',
  grant: 'c0ffee',
  refusal: '',
  description: '',
  endedFor: '',
  wouldRefuse: '',
  failure: '',
  method: 'GET',
  path: '/path',
}

/** What is said of a GET with these facts in place of its own. */
function said(facts: Partial<RequestFacts> = {}): Record<string, string> {
  return Object.fromEntries(explain({ ...GET, ...facts }).findings.map(({ title, text }) => [title, text]))
}

it('H160 of a forwarded GET, each station says a sentence, in the order of the stations', () => {
  expect(Object.entries(said())).toEqual([
    ['Request', 'GET /path over HTTP/1.1: a request for the device.'],
    ['Client', '192.0.2.1, the peer of the connection. No X-Forwarded-For of a trusted proxy was used.'],
    [
      'Window',
      'That of client 192.0.2.1, for the endpoint type api. Request 3 of 60. It closes at 2026-01-02T03:04:36Z. This sidecar counts it.',
    ],
    ['Token', 'Valid, of grant c0ffee.'],
    ['Decision', 'Admitted.'],
    ['Device', 'The main service. Sent once, on a new connection. It answered 200.'],
    ['Response', '200, complete. 0 bytes of body came in, 27 bytes went out.'],
    [
      'Time',
      "12.3 ms in all: 1 ms for other work before it was sent, 4.1 ms until the device's response began, 7.3 ms for the rest of the response.",
    ],
  ])
})

/** Refused before it reached the device. */
const REFUSED: Partial<RequestFacts> = {
  kind: 'refused',
  token: 'missing',
  grant: '',
  route: 'none',
  status: 401,
  refusal: 'unauthorized: missing',
  ...{ sentAfter: null, headAfter: null, attempts: 0, deviceStatus: 0 },
}

/** What the requests of the cases are like. */
const LIKE: Readonly<Record<string, Partial<RequestFacts>>> = {
  refused: REFUSED,
  // No request was sent for it.
  unsent: { headAfter: null, attempts: 0, deviceStatus: 0 },
  // It got the response to another request (upstream.share).
  shared: { attempts: 0, sentAfter: -3, headAfter: 2 },
}

function factsIn(text: string): YamlMapping {
  const parsed = parseYaml(text)
  return 'value' in parsed && isMapping(parsed.value) ? parsed.value : expect.fail(`${text} is no mapping`)
}

// The request is the GET, with the facts of one like it, and with those of the case.
runCases(join(import.meta.dirname, 'explanation.txt'), {
  given: ['station', 'like', 'facts'],
  results: ['says'],
  play({ station = '', like = '', facts = '{}' }) {
    const given = factsIn(facts)
    expect(Object.keys(GET)).toEqual(expect.arrayContaining(Object.keys(given)))
    return { says: said({ ...LIKE[like], ...given })[station] }
  },
})

it('H160 a request that was not forwarded has no device', () => {
  expect(Object.keys(said(REFUSED))).not.toContain('Device')
})

it('H160 a row has whole milliseconds of its time, and no refusal if there was none', () => {
  expect(explain({ ...GET, time: 1.5, duration: 0.495_660_4 }).request).toEqual({
    ...{ id: '0123abc', time: 2, method: 'GET', path: '/path', client: '192.0.2.1', status: 200 },
    ...{ refusal: null, duration: 0.496 },
  })
  expect(explain({ ...GET, ...REFUSED }).request.refusal).toBe('unauthorized: missing')
})
