import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OUTSIDE, type OutsideId } from '../../src/verify/promises.ts'
import { floods } from '../../src/verify/rounds/at-once.ts'
import { login } from '../../src/verify/rounds/token-endpoint.ts'
import { type Judgement, verdictOf } from '../../src/verify/verdict.ts'
import { planOf, ROUNDS } from '../../src/verify/verify.ts'
import { runOptions } from './a-run.ts'

const IDS = [...OUTSIDE.keys()]
const DEPARTURE = { sent: 'GET /', came: '200', wanted: '401', clause: 'RFC 6750 §3' }

const text = fc.constantFrom('one', 'two', 'three')

function finding(id: OutsideId): fc.Arbitrary<Judgement> {
  return fc.oneof(
    fc.constant<Judgement>({ promise: id, kind: 'kept' }),
    text.map((note): Judgement => ({ promise: id, kind: 'kept', note })),
    text.map((came): Judgement => ({ promise: id, kind: 'broken', ...DEPARTURE, came })),
    text.map((reason): Judgement => ({ promise: id, kind: 'untested', reason })),
  )
}

describe('the verdict on a promise', () => {
  it('is broken if a finding says so, kept if one says so and none breaks it, and otherwise not testable', () => {
    fc.assert(
      fc.property(fc.array(finding('C4')), fc.array(finding('C16')), fc.boolean(), (own, others, quick) => {
        const kinds = new Set(own.map(({ kind }) => kind))
        const expected = kinds.has('broken') ? 'broken' : kinds.has('kept') ? 'kept' : 'not testable'
        const verdict = verdictOf('C4', own, quick)
        expect(verdict.result).toBe(expected)
        expect(verdict.departures).toHaveLength(own.filter(({ kind }) => kind === 'broken').length)
        expect(verdictOf('C4', [...others, ...own], quick)).toEqual(verdict)
        expect(verdictOf('C4', own.toReversed(), quick).result).toBe(expected)
        expect(new Set(verdict.notes).size).toBe(verdict.notes.length)
      }),
    )
  })

  it('shows each departure as it was found, and the words of the promise', () => {
    const verdict = verdictOf('C4', [{ promise: 'C4', kind: 'broken', ...DEPARTURE }])
    const { sentence, clause } = OUTSIDE.get('C4') ?? expect.unreachable()
    expect(verdict).toEqual({
      id: 'C4',
      sentence,
      clause,
      result: 'broken',
      departures: [DEPARTURE],
      notes: [],
    })
  })

  it.each<readonly [what: string, findings: readonly Judgement[], quick: boolean, notes: readonly string[]]>([
    ['nothing, if no finding is of it', [], false, ['no request of this run shows it']],
    ['that it was left out', [], true, ['left out by --quick']],
    ['an observation, once', Array(2).fill({ promise: 'C6', kind: 'kept', note: 'x' }), false, ['x']],
    ['why it is not testable', [{ promise: 'C6', kind: 'untested', reason: 'x' }], false, ['x']],
    [
      'what of it was not tested',
      [
        { promise: 'C6', kind: 'kept' },
        { promise: 'C6', kind: 'untested', reason: 'x' },
      ],
      false,
      ['not tested: x'],
    ],
  ])('notes %s', (_what, findings, quick, notes) => {
    expect(verdictOf('C6', findings, quick).notes).toEqual(notes)
  })
})

describe('the rounds', () => {
  it('show every promise that can be checked from outside, and no other', () => {
    expect(new Set(ROUNDS.flatMap(({ promises }) => promises))).toEqual(new Set(IDS))
  })

  it('begin with the logins', () => {
    expect(ROUNDS[0]).toBe(login)
  })
})

describe('the plan of a run', () => {
  const plan = (only: readonly OutsideId[], quick = false): ReturnType<typeof planOf> =>
    planOf(runOptions('https://device.example', 'secret', { only, quick }))

  it('H126 announces the promises that were asked for, in their order, and a flood only if one of them needs it', () => {
    fc.assert(
      fc.property(fc.subarray(IDS, { minLength: 1 }), fc.boolean(), (only, quick) => {
        const announced = plan(only.toReversed(), quick)
        expect([...announced.promises, ...announced.notTestable].sort()).toEqual([...only].sort())
        if (!quick) expect(announced.notTestable).toEqual(only.filter((id) => id === 'C8'))
        const flooded = !quick && only.some((id) => floods.promises.includes(id))
        expect(announced.floods !== undefined).toBe(flooded)
      }),
    )
  })

  it('H126 announces no more for fewer promises, nor for a quick run', () => {
    fc.assert(
      fc.property(fc.subarray(IDS, { minLength: 1 }), (only) => {
        const [some, quick, all] = [plan(only), plan(only, true), plan([])]
        for (const key of ['logins', 'wrongPasswords', 'requests', 'seconds'] as const) {
          expect(some[key]).toBeLessThanOrEqual(all[key])
          expect(quick[key]).toBeLessThanOrEqual(some[key])
        }
        expect(quick.logins).toBeGreaterThan(0)
      }),
    )
  })

  it('H126 names all promises without --only, and no password', () => {
    expect(plan([]).promises).toEqual(IDS.filter((id) => id !== 'C8'))
    expect(JSON.stringify(plan([]))).not.toContain('secret')
  })
})
