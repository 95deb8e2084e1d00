import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { wrapped } from '../../src/commands/columns.ts'
import { OUTSIDE, type OutsideId } from '../../src/verify/promises.ts'
import {
  announcement,
  duration,
  mayColour,
  PLAIN,
  planJson,
  reportJson,
  table,
  textReporter,
  verdictLine,
  visible,
} from '../../src/verify/report.ts'
import { planOf } from '../../src/verify/run.ts'
import type { Departure, Plan, Report, Verdict } from '../../src/verify/verdict.ts'
import { runOptions } from './a-run.ts'

const DEPARTURE: Departure = {
  sent: 'GET / with a valid token',
  came: '200 without X-RateLimit-Reset',
  wanted: 'X-RateLimit-Reset on every response',
  clause: 'device API §8',
}

function verdict(id: OutsideId, result: Verdict['result'], more: Partial<Verdict> = {}): Verdict {
  const { sentence, clause } = OUTSIDE.get(id) ?? expect.fail(`no promise ${id}`)
  return { id, sentence, clause, result, departures: [], notes: [], ...more }
}

const KEPT = verdict('C4', 'kept', { notes: ['the access token has 43 characters'] })
const BROKEN = verdict('C16', 'broken', {
  departures: [DEPARTURE, { ...DEPARTURE, came: '401 without X-RateLimit-Reset' }, DEPARTURE],
})
const UNTESTED = verdict('C8', 'not testable', { notes: ['it would have to change the password'] })

const REPORT: Report = {
  url: 'https://device.example',
  version: '1.2.3',
  startedAt: '2026-11-22T12:00:00.000Z',
  seconds: 312.4,
  requests: 1243,
  result: 'broken',
  promises: [KEPT, UNTESTED, BROKEN],
  floods: [
    {
      endpoint: 'api',
      connections: 20,
      seconds: 10,
      passed: 60,
      refusals: { responses: 83_940, p50: 2.04, p99: 7.3, max: 20 },
      beside: { responses: 29, p50: 1, p99: 3.25, max: 4 },
    },
  ],
  tokens: 'The 4 grants of this run are revoked.',
}

const PLAN: Plan = {
  url: 'https://device.example',
  path: '/status',
  promises: ['C4', 'C16'],
  notTestable: [],
  logins: 12,
  wrongPasswords: 3,
  requests: 1243,
  seconds: 390,
  floods: { seconds: 10, connections: 20 },
  usesUpLimits: true,
  otherSpellings: true,
  tokenInQuery: true,
  revocationPath: '/oauth/revoke',
}

/** The file of what is printed, which `vitest -u` writes anew. */
const printed = (name: string): string => join(import.meta.dirname, 'printed', `${name}.txt`)

describe('H126 the announcement', () => {
  it('says what the run does to the server', async () => {
    await expect(announcement(PLAN)).toMatchFileSnapshot(printed('announcement'))
  })

  it('mentions nothing that the run does not do', async () => {
    const plan: Plan = {
      ...PLAN,
      wrongPasswords: 0,
      floods: undefined,
      usesUpLimits: false,
      otherSpellings: false,
      tokenInQuery: false,
      revocationPath: undefined,
    }
    await expect(announcement(plan)).toMatchFileSnapshot(printed('short-announcement'))
  })

  it('counts only the promises that the run checks', () => {
    const [first] = announcement({ ...PLAN, notTestable: ['C8', 'H125'] }).split('\n')
    expect(first).toBe(
      '2 promises of the documented API, checked from outside at https://device.example; not testable: C8, H125. This run',
    )
  })

  it('is of the rounds that the options select', () => {
    const whole = planOf(runOptions('https://device.example', 'geheim'))
    expect([whole.promises.length, whole.notTestable]).toEqual([19, ['C8']])
    expect(whole).toMatchObject({ usesUpLimits: true, otherSpellings: true, tokenInQuery: true })
    const quick = planOf(runOptions('https://device.example', 'geheim', { quick: true }))
    expect([quick.promises.length, quick.notTestable]).toEqual([18, ['C8', 'H125']])
    const few = planOf(runOptions('https://device.example', 'geheim', { only: ['C4', 'C8'] }))
    expect(few).toMatchObject({ promises: ['C4'], notTestable: ['C8'], wrongPasswords: 0, floods: undefined })
    expect(few).toMatchObject({ usesUpLimits: false, otherSpellings: false, tokenInQuery: false })
  })
})

describe('the line of a promise', () => {
  it('has its result, its id, its first sentence, and what came', () => {
    expect([KEPT, BROKEN, UNTESTED].map((each) => verdictLine(each, PLAIN))).toEqual([
      'kept          C4    A login gives 200 with an access token, a refresh token, `token_type` Bearer and `expires_in` in seconds, and is not to be cached',
      expect.stringMatching(/^BROKEN {8}C16 {3}\S.*: 200 without X-RateLimit-Reset \(and 2 more\)$/),
      expect.stringMatching(/^not testable {2}C8 {4}\S.*: it would have to change the password$/),
    ])
  })

  it('of every promise is one sentence without its full stop', () => {
    for (const id of OUTSIDE.keys()) {
      expect(verdictLine(verdict(id, 'kept'), PLAIN)).toMatch(/^kept {10}[CH]\d{1,3} +\S.{15,}[^.\n]$/)
    }
  })
})

describe('the table', () => {
  it('has the promises by result, every departure, the floods and the totals', async () => {
    await expect(table(REPORT, PLAIN)).toMatchFileSnapshot(printed('table'))
  })

  it('has no times of a flood without a refusal', () => {
    const none = { responses: 0, p50: 0, p99: 0, max: 0 }
    const floods = REPORT.floods.map((flood) => ({ ...flood, refusals: none }))
    expect(table({ ...REPORT, floods }, PLAIN)).toContain(
      '\n  429, to its end                           0          -          -          -\n',
    )
  })
})

describe('text', () => {
  it('has colour only on a terminal, and never with NO_COLOR', () => {
    const colours = [{}, { NO_COLOR: '1' }, { NO_COLOR: '' }, { TERM: 'dumb' }].map((env) =>
      mayColour(true, env),
    )
    expect([...colours, mayColour(false, {})]).toEqual([true, false, true, false, false])
    expect(verdictLine(BROKEN, { ...PLAIN, colour: true })).toContain('\x1b[31mBROKEN      \x1b[39m  C16 ')
    expect(table(REPORT, PLAIN)).not.toContain('\x1b')
  })

  it.each([
    [0.4, 'less than 1 s'],
    [59.4, '59 s'],
    [59.6, '1 min'],
    [150, '2 min 30 s'],
  ])('shows %s seconds as %s', (seconds, text) => {
    expect(duration(seconds)).toBe(text)
  })

  it('shows what a server sends without what could rewrite the screen', () => {
    expect(visible('a\x1b[2J\r\n\u202eb\ud800é😀')).toBe('a\\x1b[2J\\x0d\\x0a\\u202eb\\ud800é😀')
  })

  it('H328 on a terminal has 80 columns, with colour, too, and breaks only between words', () => {
    const wrap = (text: string, indent: number): string => wrapped(text, indent, 80)
    const display = { colour: true, wrap }
    const came = `200 with a body that ${'goes on '.repeat(20)}`.trim()
    const broken = { ...BROKEN, departures: [{ ...DEPARTURE, came }], notes: ['note '.repeat(30).trim()] }
    const report = {
      ...REPORT,
      promises: [KEPT, UNTESTED, broken],
      tokens: `The 4 grants ${'of this run '.repeat(9)}are revoked.`,
    }
    const plan = announcement(PLAN, display)
    const line = verdictLine(broken, display)
    for (const text of [plan, line, table(report, display)]) {
      const seen = stripVTControlCharacters(text).split('\n')
      expect(seen.filter(({ length }) => length > 80)).toEqual([])
    }
    const words = (text: string): string => text.replaceAll(/\s+/g, ' ')
    expect(words(table(report, display))).toBe(words(table(report, { ...PLAIN, colour: true })))
    expect(stripVTControlCharacters(table(report, display))).toContain(
      `\n${' '.repeat(20)}came    200 with a body`,
    )
    expect(stripVTControlCharacters(table(report, display))).toMatch(/^ {28}goes on/m)
  })

  it('of any server has only the lines of the report', () => {
    fc.assert(
      fc.property(anyReport, (report) => {
        const text = table(report, PLAIN) + report.promises.map((each) => verdictLine(each, PLAIN)).join('\n')
        expect(text).not.toMatch(/[^\P{Cc}\n]|\p{Cs}|[\u202a-\u202e\u2066-\u2069]/u)
        const own = report.promises.flatMap(({ departures, notes }) => [...departures, ...notes])
        expect(table(report, PLAIN).split('\n').length).toBeLessThanOrEqual(
          5 + 5 * report.floods.length + report.promises.length + 4 * own.length,
        )
      }),
    )
  })
})

it('the reporter writes each text on lines of its own', () => {
  const texts: string[] = []
  const reporter = textReporter((text) => texts.push(text), PLAIN)
  reporter.announce(PLAN)
  reporter.decided(KEPT)
  reporter.progress('waiting\r')
  reporter.finished(REPORT)
  expect(texts).toEqual([
    `${announcement(PLAN)}\n`,
    `${verdictLine(KEPT, PLAIN)}\n`,
    '...                 waiting\\x0d\n',
    `\n${table(REPORT, PLAIN)}`,
  ])
})

describe('the JSON document', () => {
  it('has these keys, in this order', () => {
    const document = JSON.parse(reportJson(REPORT))
    expect(Object.keys(document).join(' ')).toBe(
      'url version startedAt seconds requests result kept broken notTestable promises floods tokens',
    )
    expect(document).toEqual({ ...REPORT, kept: 1, broken: 1, notTestable: 1 })
    expect(Object.keys(document.promises[2]).join(' ')).toBe('id sentence clause result departures notes')
    expect(Object.keys(document.promises[2].departures[0]).join(' ')).toBe('sent came wanted clause')
    expect(Object.keys(document.floods[0]).join(' ')).toBe(
      'endpoint connections seconds passed refusals beside',
    )
  })

  it('of a dry run has the plan', () => {
    expect(JSON.parse(planJson(PLAN))).toEqual({ plan: PLAN })
    const quick = planJson({ ...PLAN, floods: undefined, revocationPath: undefined })
    expect(JSON.parse(quick).plan).toMatchObject({ floods: null, revocationPath: null })
  })
})

const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({
    unit: fc.constantFrom('<', '>', '&', '"', "'", ']]>', '\0', '\x1b[2J', '\n', '\r', '\t', '\ufffe'),
  }),
  fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) }),
)

const anyReport: fc.Arbitrary<Report> = fc
  .array(
    fc.record({
      result: fc.constantFrom<Verdict['result'][]>('kept', 'broken', 'not testable'),
      departures: fc.array(fc.record({ sent: anyText, came: anyText, wanted: anyText, clause: anyText }), {
        maxLength: 3,
      }),
      notes: fc.array(anyText, { maxLength: 3 }),
    }),
    { minLength: 1, maxLength: 3 },
  )
  .map((rows) => ({ ...REPORT, promises: rows.map((row) => verdict('C16', row.result, row)) }))
