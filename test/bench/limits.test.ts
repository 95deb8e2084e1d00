import { expect, test } from 'vitest'
import {
  faultsOf,
  REFUSAL_BODY,
  type RequestKind,
  WITHOUT_TOKEN,
  withToken,
} from '../../bench/limits/request-kind.ts'
import { refusalResponse } from '../../src/gate/refusal-response.ts'
import { createLedger, type Ledger, type LedgerResult } from '../../src/verify/ledger.ts'
import { foldFields, type Observation } from '../../src/verify/question.ts'

const LIMIT = { requests: 3, window: 60 }
const NOW = 1_700_000_000_000
const RESET = NOW / 1000 + 60

type Headers = Record<string, string | readonly string[] | undefined>

interface Changes {
  readonly at?: number
  readonly body?: string
  readonly headers?: Headers
}

function passed(
  remaining: number,
  { at = NOW, body = '{"status":"ok","uptime":42}', headers = {} }: Changes = {},
): Observation {
  return {
    status: 200,
    fields: foldFields({
      'X-RateLimit-Limit': '3',
      'X-RateLimit-Remaining': String(remaining),
      'X-RateLimit-Reset': String(RESET),
      ...headers,
    }),
    body,
    at,
  }
}

test('a 429 is judged by the body that Postern sends', () => {
  const settings = { statusCodes: 'contract', realm: 'r' } as const
  expect(refusalResponse({ kind: 'rate-limited', retryAfter: 1 }, settings).body).toBe(REFUSAL_BODY)
})

function refused({ at = NOW, body = REFUSAL_BODY, headers = {} }: Changes = {}): Observation {
  const own = {
    'Content-Type': 'application/json;charset=UTF-8',
    'Content-Length': String(body.length),
    'Retry-After': '60',
  }
  return { ...passed(0, { at, body, headers: { ...own, ...headers } }), status: 429 }
}

function add(ledger: Ledger, kind: RequestKind, observation: Observation): void {
  ledger.add(kind.status, observation, faultsOf(kind, observation, LIMIT))
}

function account(observations: readonly Observation[], windows = 1): LedgerResult {
  const ledger = createLedger(LIMIT, windows)
  for (const observation of observations) add(ledger, withToken('t'), observation)
  return ledger.account()
}

const KEPT = [passed(2), passed(1), passed(0), refused()]

test('a window that a flood of any length did not use up proves nothing', () => {
  const next = passed(2, { at: NOW + 60_000, ...resetAt(RESET + 60) })
  const ledger = createLedger(LIMIT, undefined)
  for (const observation of [...KEPT, next]) add(ledger, withToken('t'), observation)
  expect(ledger.account()).toMatchObject({ passed: [3, 1], faults: [] })
})

test('a limit that holds has no fault', () => {
  expect(account(KEPT)).toEqual({
    told: true,
    passed: [3],
    refused: 1,
    other: 0,
    shared: false,
    faults: [],
  })
})

test('a window that other clients have used, too, is told from a limit that is too low', () => {
  expect(account([passed(2), passed(0), refused()]).shared).toBe(true)
  expect(account([passed(2), passed(1), refused()]).shared).toBe(false)
})

test.for([
  ['one too many passes', [...KEPT, passed(0)], '4 passed instead of 3'],
  ['one too few passes', [passed(2), passed(1), refused()], '2 passed instead of 3'],
  ['no request is refused', [passed(2), passed(1), passed(0)], 'no request was refused'],
  ['a count is shown twice', [passed(2), passed(1), passed(1), refused()], '1 shown 2 times'],
  ['a response has another status', [...KEPT, { ...passed(0), status: 500 }], '500 instead of 200 or 429'],
  [
    "the device's body is missing",
    [passed(2, { body: '' }), ...KEPT.slice(1)],
    "200 without the device's body",
  ],
  [
    'there is another window',
    [...KEPT, passed(2, { at: NOW + 60_000, ...resetAt(RESET + 60) })],
    '2 windows instead of 1',
  ],
] as const)('it is a fault when %s', ([, observations, fault]) => {
  expect(textsOf(account(observations))).toContain(fault)
})

test.for([
  ['a field is missing', { 'X-RateLimit-Reset': undefined }, 'X-RateLimit-Reset missing'],
  ['a field is repeated', { 'x-ratelimit-limit': '3' }, 'X-RateLimit-Limit repeated'],
  ['a field is no integer', { 'X-RateLimit-Remaining': '-1' }, 'X-RateLimit-Remaining not a whole number'],
  ['the limit is wrong', { 'X-RateLimit-Limit': '60' }, 'X-RateLimit-Limit: 60'],
  ['the reset is too far away', { 'X-RateLimit-Reset': String(RESET + 2) }, 'further away'],
  ['the reset is in the past', { 'X-RateLimit-Reset': String(RESET - 70) }, 'in the past'],
  ['the remaining count is not 0', { 'X-RateLimit-Remaining': '1' }, 'is not 0'],
  ['Retry-After is missing', { 'Retry-After': undefined }, 'without a Retry-After'],
  ['Retry-After is 0', { 'Retry-After': '0' }, 'without a Retry-After'],
  ['Retry-After is a date', { 'Retry-After': 'Tue, 14 Nov 2023 22:13:20 GMT' }, 'without a Retry-After'],
  ['Retry-After ends early', { 'Retry-After': '58' }, 'before the reset'],
  ['Retry-After is longer than the window', { 'Retry-After': '61' }, 'longer than the window'],
  ['the content type is wrong', { 'Content-Type': 'text/plain' }, 'without Content-Type'],
  ['the length is wrong', { 'Content-Length': '1' }, 'Content-Length'],
] as const)('it is a fault of a 429 when %s', ([, headers, fault]) => {
  expect(textsOf(account([...KEPT, refused({ headers })]))).toContain(fault)
})

test('it is a fault of a 429 when its body is wrong', () => {
  expect(textsOf(account([...KEPT, refused({ body: '{"error":"rate_limited"}' })]))).toContain('another body')
})

test('windows are distinguished by their reset, with a second of rounding', () => {
  const rounded = [passed(2), passed(1, resetAt(RESET - 1)), passed(0), refused()]
  const later = NOW + 60_000
  const next = [2, 1, 0].map((left) => passed(left, { at: later, ...resetAt(RESET + 60) }))
  const observations = [...rounded, ...next, refused({ at: later, ...resetAt(RESET + 60) })]
  expect(account(observations, 2)).toMatchObject({ passed: [3, 3], faults: [] })
})

test('it is a fault when a window opens before the previous one has closed', () => {
  const early = NOW + 50_000
  const next = [2, 1, 0].map((left) => passed(left, { at: early, ...resetAt(RESET + 50) }))
  const observations = [...KEPT, ...next, refused({ at: early, ...resetAt(RESET + 50) })]
  expect(textsOf(account(observations, 2))).toContain('window 2 opened before window 1 had closed')
})

test('it is a fault of a 401 when its challenge or its code is missing', () => {
  const ledger = createLedger(LIMIT, 1)
  add(ledger, WITHOUT_TOKEN, { ...passed(2), status: 401 })
  const faults = textsOf(ledger.account())
  expect(faults).toContain('401 without its challenge')
  expect(faults).toContain('401 whose error is not invalid_token')
})

/** The faults with the promises that they break. */
function textsOf({ faults }: LedgerResult): string {
  return faults.map(({ promise = '', text }) => `${promise} ${text}`).join('\n')
}

function resetAt(reset: number): { readonly headers: Headers } {
  return { headers: { 'X-RateLimit-Reset': String(reset) } }
}
