import { describe, expect, it } from 'vitest'
import {
  apiRequest,
  passwordForm,
  type Question,
  type Received,
  refreshGrant,
  tokenRequest,
  unauthorized,
} from '../../src/verify/exchange.ts'
import { DOCUMENTED_LIMITS } from '../../src/verify/options.ts'
import { Records } from '../../src/verify/records.ts'

const PASSWORD = 'hunter2+more'
const NOW = 1_800_000_000_000
/** Waited for in addition to every end (ms). */
const MARGIN = 150

const created = (): Records => new Records(DOCUMENTED_LIMITS, PASSWORD)

/** A response with the challenge and the rate-limit fields of the API, unless `fields` has others. */
function answer(status: number, fields: Readonly<Record<string, string>> = {}, body = ''): Received {
  const all = {
    'www-authenticate': 'Bearer',
    'x-ratelimit-limit': '60',
    'x-ratelimit-remaining': '5',
    'x-ratelimit-reset': String(NOW / 1000 + 30),
    ...fields,
  }
  const present = Object.entries(all).filter(([, value]) => value !== '')
  return {
    status,
    fields: new Map(present.map(([name, value]) => [name, [value]])),
    body,
    at: NOW,
    sentAt: NOW - 5,
    ms: 5,
    failure: undefined,
  }
}

const LOST: Received = { ...answer(0), fields: new Map(), failure: 'connection closed' }
const RIGHT = apiRequest('/', 'token')
const WRONG = unauthorized('/', [], 'without a token')
const LIMIT_OF_OAUTH = { 'x-ratelimit-limit': '30' }

/** What came in place of what a promise wants. */
function cameOf(records: Records, id: 'C9' | 'C11' | 'C15' | 'C16' | 'C19'): readonly string[] {
  return records
    .judgements()
    .flatMap((finding) => (finding.promise === id && finding.kind === 'broken' ? [finding.came] : []))
}

describe('the records of a run', () => {
  it('find C9, C16 and C19 kept by right responses, and count those without any', () => {
    const records = created()
    records.add(RIGHT, answer(200))
    records.add(WRONG, answer(401))
    records.add(WRONG, LOST)
    expect(records.judgements().map(({ promise, kind }) => [promise, kind])).toEqual([
      ['C9', 'kept'],
      ['C16', 'kept'],
      ['C19', 'kept'],
    ])
    expect(records.requests).toBe(3)
  })

  it('know a login by its newest refresh token, or by its access token', () => {
    const records = created()
    const tokens = (members: object): Received => answer(200, LIMIT_OF_OAUTH, JSON.stringify(members))
    const login = tokenRequest(passwordForm(PASSWORD), 'with the password')
    records.add(login, tokens({ access_token: 'a1', refresh_token: 'r1' }))
    records.add(login, tokens({ access_token: 'a2' }))
    records.add(refreshGrant('r1'), tokens({ access_token: 'a3', refresh_token: 'r2' }))
    records.add(refreshGrant('r2'), tokens({ access_token: 'a4' }))
    expect(records.logins).toEqual(new Set(['a2', 'r2']))
  })

  it.each<readonly [where: string, shown: Received]>([
    ['the body', answer(401, {}, 'no token unknown-1 here')],
    ['a field', answer(401, { 'www-authenticate': 'Bearer error_description="unknown-1"' })],
  ])('find a token of the request in %s of a refusal (C9), and do not repeat it', (_where, shown) => {
    const records = created()
    records.seek('unknown-1')
    records.add(WRONG, shown)
    expect(cameOf(records, 'C9')).toEqual(['401 that shows the password or token of the request'])
  })

  it.each([
    ['', '401 without WWW-Authenticate'],
    ['Basic realm="device"', 'WWW-Authenticate: Basic'],
    ['secret-scheme', 'WWW-Authenticate: another scheme'],
  ])('find a 401 with the challenge %j (C11), once', (challenge, came) => {
    const records = created()
    for (let i = 0; i < 2; i += 1) records.add(WRONG, answer(401, { 'www-authenticate': challenge }))
    records.add(RIGHT, answer(401, { 'www-authenticate': 'Basic, bearer' }))
    expect(cameOf(records, 'C11')).toEqual([came])
  })

  it.each([200, 400, 401, 429, 500])('take %i for a status of the documented API (C19)', (status) => {
    const records = created()
    records.add(WRONG, answer(status, { 'retry-after': '1' }))
    expect(cameOf(records, 'C19')).toEqual([])
  })

  it.each([201, 302, 403, 404, 405, 503])('find %i for a refusal (C19)', (status) => {
    const records = created()
    records.add(WRONG, answer(status, {}, 'a page'))
    records.add(WRONG, answer(status, {}, 'a page'))
    expect(cameOf(records, 'C19')).toEqual([`${status} (no type, 6 bytes)`])
  })

  it.each<readonly [what: string, fields: Readonly<Record<string, string>>, came: readonly string[]]>([
    ['no Retry-After', {}, ['429 without a Retry-After of at least 1']],
    ['one that ends early', { 'retry-after': '28' }, ['Retry-After ends before the reset']],
    ['one that ends late', { 'retry-after': '33' }, ['Retry-After ends after the reset']],
    ['one that ends with the window', { 'retry-after': '30' }, []],
    [
      'a reset that has passed, which another request judges',
      { 'x-ratelimit-reset': String(NOW / 1000 - 2), 'retry-after': '2' },
      [],
    ],
  ])('find what is wrong with a 429 with %s, once (C15)', (_what, fields, came) => {
    const records = created()
    const refusal = answer(429, { 'x-ratelimit-remaining': '0', ...fields })
    for (let i = 0; i < 2; i += 1) records.add(RIGHT, refusal)
    records.add({ ...RIGHT, oddity: 'respelled' }, refusal)
    expect(cameOf(records, 'C15')).toEqual(came)
  })

  it('do not judge the status of what the device responds, nor of an odd request', () => {
    const records = created()
    records.add(RIGHT, answer(404))
    records.add({ ...WRONG, oddity: 'malformed' }, answer(431))
    records.add({ ...WRONG, oddity: 'respelled' }, answer(404, LIMIT_OF_OAUTH))
    for (const finding of records.judgements()) expect(finding.kind).toBe('kept')
  })

  it('find what is wrong with the rate-limit fields, each fault once and five at most (C16)', () => {
    const records = created()
    for (let i = 61; i <= 70; i += 1) {
      for (const status of [200, 404]) records.add(RIGHT, answer(status, { 'x-ratelimit-limit': String(i) }))
    }
    expect(cameOf(records, 'C16')).toEqual(
      [61, 62, 63, 64, 65].map((i) => expect.stringContaining(`X-RateLimit-Limit: ${i}`)),
    )
  })
})

describe('the end of a window', () => {
  const api = DOCUMENTED_LIMITS.api.window * 1000

  it.each<readonly [what: string, given: Received, end: number]>([
    ['is the reset', answer(200), 30_000],
    ['is the reset of a 429, too', answer(429, { 'retry-after': '20' }), 30_000],
    ['is the end of Retry-After if that is later', answer(429, { 'retry-after': '40' }), 40_000],
    ['is a window away without a reset', answer(200, { 'x-ratelimit-reset': '' }), api],
    [
      'is a window away without a reset, also if Retry-After is shorter',
      answer(429, { 'x-ratelimit-reset': '', 'retry-after': '10' }),
      api,
    ],
    ['is a window away if the reset is too far', answer(200, { 'x-ratelimit-reset': '1900000000' }), api],
    ['is not put off by a Retry-After longer than a window', answer(429, { 'retry-after': '999' }), 30_000],
  ])('%s', (_what, given, end) => {
    const records = created()
    expect(records.windowEnd('api')).toBe(0)
    records.add(RIGHT, given)
    expect(records.windowEnd('api')).toBe(NOW + end + MARGIN)
    expect(records.windowEnd('oauth')).toBe(0)
  })

  it('is unknown of either window after an odd request whose response states none', () => {
    const records = created()
    const odd: Question = { ...RIGHT, oddity: 'respelled' }
    records.add(odd, answer(200))
    expect([records.windowEnd('api'), records.windowEnd('oauth')]).toEqual([0, 0])
    records.add(odd, answer(200, { 'x-ratelimit-reset': '' }))
    expect([records.windowEnd('api'), records.windowEnd('oauth')]).toEqual(Array(2).fill(NOW + api + MARGIN))
  })
})
