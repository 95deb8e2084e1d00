import { describe, expect, it } from 'vitest'
import { EveryResponse } from '../../src/verify/every-response.ts'
import { DOCUMENTED_LIMITS } from '../../src/verify/options.ts'
import { apiRequest, type Question, type Received, unauthorized } from '../../src/verify/question.ts'
import { Findings } from '../../src/verify/verdict.ts'

const PASSWORD = 'hunter2+more'
const NOW = 1_800_000_000_000

/** A response with the challenge and the rate-limit fields of the API, unless `fields` has others. */
function answer(status: number, fields: Readonly<Record<string, string>> = {}, body = ''): Received {
  const all = {
    date: new Date(NOW).toUTCString(),
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

const dateIn = (seconds: number): string => new Date(NOW + 1000 * seconds).toUTCString()

const RIGHT = apiRequest('/', 'token')
const WRONG = unauthorized('/', [], 'without a token')
const LIMIT_OF_OAUTH = { 'x-ratelimit-limit': '30' }

type Id = 'C9' | 'C11' | 'C15' | 'C16' | 'C19'

/** What came in place of what a promise wants, after these responses. */
function cameOf(id: Id, ...responses: readonly (readonly [Question, Received])[]): readonly string[] {
  const findings = new Findings()
  const every = new EveryResponse(DOCUMENTED_LIMITS, PASSWORD, findings)
  for (const [question, received] of responses) every.read(question, received)
  return findings.verdictOf(id).departures.map(({ came }) => came)
}

describe('every response of a run', () => {
  it('is right in C9, C16 and C19 where it is right', () => {
    for (const id of ['C9', 'C16', 'C19'] as const)
      expect(cameOf(id, [RIGHT, answer(200)], [WRONG, answer(401)])).toEqual([])
  })

  it.each<readonly [where: string, shown: Received]>([
    ['the body', answer(401, {}, 'no token unknown-token-1 here')],
    ['a field', answer(401, { 'www-authenticate': 'Bearer error_description="unknown-token-1"' })],
  ])('C9 shows no token of the request in %s of a refusal, and no report repeats it', (_where, shown) => {
    const question = unauthorized('/', ['Authorization', 'Bearer unknown-token-1'], 'with an unknown token')
    expect(cameOf('C9', [question, shown])).toEqual(['401 that shows the password or token of the request'])
  })

  it('C9 a text that only ends like a token of the request is none', () => {
    const question = unauthorized('/', ['Authorization', 'Bearer unknown-token-1'], 'with an unknown token')
    expect(cameOf('C9', [question, answer(401, {}, 'no nknown-token-1 here')])).toEqual([])
  })

  it.each([
    ['', '401 without WWW-Authenticate'],
    ['Basic realm="device"', 'WWW-Authenticate: Basic'],
    ['secret-scheme', 'WWW-Authenticate: another scheme'],
  ])('C11 is a fault with the challenge %j, once', (challenge, came) => {
    const wrong = [WRONG, answer(401, { 'www-authenticate': challenge })] as const
    const right = [WRONG, answer(401, { 'www-authenticate': 'Basic, bearer' })] as const
    expect(cameOf('C11', wrong, wrong, right)).toEqual([came])
  })

  it.each([200, 400, 401, 429, 500])('C19 may be %i', (status) => {
    expect(cameOf('C19', [WRONG, answer(status, { 'retry-after': '1' })])).toEqual([])
  })

  it.each([201, 302, 403, 404, 405, 503])('C19 may not be %i for a refusal', (status) => {
    const refusal = [WRONG, answer(status, {}, 'a page')] as const
    expect(cameOf('C19', refusal, refusal)).toEqual([`${status} (no type, 6 bytes)`])
  })

  it.each<readonly [what: string, fields: Readonly<Record<string, string>>, came: readonly string[]]>([
    ['no Retry-After', {}, ['429 without a Retry-After of at least 1']],
    ['one that ends early', { 'retry-after': '28' }, ['Retry-After ends before the reset']],
    ['one that ends late', { 'retry-after': '33' }, ['Retry-After ends after the reset']],
    ['one that ends with the window', { 'retry-after': '30' }, []],
    ['a date that is the end of the window', { 'retry-after': dateIn(30) }, []],
    ['a date that is earlier', { 'retry-after': dateIn(28) }, ['Retry-After ends before the reset']],
    [
      'a reset that has passed, which another request judges',
      { 'x-ratelimit-reset': String(NOW / 1000 - 2), 'retry-after': '2' },
      [],
    ],
  ])('C15 judges a 429 with %s, once', (_what, fields, came) => {
    const refusal = answer(429, { 'x-ratelimit-remaining': '0', ...fields })
    const odd: Question = { ...RIGHT, oddity: 'respelled' }
    expect(cameOf('C15', [RIGHT, refusal], [RIGHT, refusal], [odd, refusal])).toEqual(came)
  })

  it('is not judged by its status where it is of the device, nor where its request is odd', () => {
    const malformed = [{ ...WRONG, oddity: 'malformed' }, answer(431)] as const
    const respelled = [{ ...WRONG, oddity: 'respelled' }, answer(404, LIMIT_OF_OAUTH)] as const
    for (const id of ['C9', 'C11', 'C15', 'C16', 'C19'] as const)
      expect(cameOf(id, [RIGHT, answer(404)], malformed, respelled)).toEqual([])
  })

  it('C16 finds each fault of the rate-limit fields once, and five at most', () => {
    const limits = [61, 62, 63, 64, 65, 66, 67].flatMap((limit) =>
      [200, 404].map((status) => [RIGHT, answer(status, { 'x-ratelimit-limit': String(limit) })] as const),
    )
    expect(cameOf('C16', ...limits)).toEqual(
      [61, 62, 63, 64, 65].map((i) => expect.stringContaining(`X-RateLimit-Limit: ${i}`)),
    )
  })

  it.each([
    ['', 'unknown'],
    [new Date(NOW + 10_000).toUTCString(), '10 s ahead'],
    [new Date(NOW - 3_600_000).toUTCString(), '3600 s behind'],
  ])('leaves C16 not testable where the first one has the Date %j', (date, is) => {
    const findings = new Findings()
    const every = new EveryResponse(DOCUMENTED_LIMITS, PASSWORD, findings)
    for (const each of [date, new Date(NOW).toUTCString()]) every.read(RIGHT, answer(200, { date: each }))
    const far = answer(429, { 'x-ratelimit-reset': '1', 'x-ratelimit-remaining': '0', 'retry-after': '9' })
    every.read(RIGHT, far)
    expect(findings.verdictOf('C16')).toMatchObject({
      result: 'not testable',
      notes: [`the clock of the server is ${is}: no reset can be compared with it`],
    })
    expect(findings.isBroken('C15')).toBe(false)
  })
})
