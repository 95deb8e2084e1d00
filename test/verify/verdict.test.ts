import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OUTSIDE, type OutsideId } from '../../src/verify/promises.ts'
import { PARTS, planOf } from '../../src/verify/run.ts'
import { Findings, type Verdict } from '../../src/verify/verdict.ts'
import { runOptions, WITHOUT_FLOODS } from './a-run.ts'

const IDS = [...OUTSIDE.keys()]
const DEPARTURE = ['GET /', '200', '401', 'RFC 6750 §3'] as const

type Finding = 'kept' | 'broken' | 'untestable' | 'noted'

/** The verdict on C4 after findings on it, between findings on another promise. */
function verdictAfter(own: readonly Finding[], quick = false): Verdict {
  const findings = new Findings()
  const add: Readonly<Record<Finding, (id: OutsideId) => void>> = {
    kept: (id) => findings.kept([id]),
    noted: (id) => findings.kept([id], 'seen'),
    broken: (id) => findings.broken(id, ...DEPARTURE),
    untestable: (id) => findings.untestable([id], 'no occasion'),
  }
  for (const finding of own) {
    for (const each of Object.values(add)) each('C16')
    add[finding]('C4')
  }
  return findings.verdictOf('C4', quick)
}

describe('the verdict on a promise', () => {
  it('is broken if a finding says so, not testable if a part could not be decided, and otherwise kept', () => {
    const finding = fc.constantFrom<Finding[]>('kept', 'broken', 'untestable', 'noted')
    fc.assert(
      fc.property(fc.array(finding), (own) => {
        const undecided = own.length === 0 || own.includes('untestable')
        const expected = own.includes('broken') ? 'broken' : undecided ? 'not testable' : 'kept'
        const verdict = verdictAfter(own)
        expect(verdict.result).toBe(expected)
        expect(verdict.departures).toHaveLength(own.filter((each) => each === 'broken').length)
        expect(verdictAfter(own.toReversed()).result).toBe(expected)
        expect(new Set(verdict.notes).size).toBe(verdict.notes.length)
      }),
    )
  })

  it('shows each departure as it was found, and the words of the promise', () => {
    const { sentence, clause } = OUTSIDE.get('C4') ?? expect.unreachable()
    const [sent, came, wanted, source] = DEPARTURE
    const departures = [{ sent, came, wanted, clause: source }]
    expect(verdictAfter(['broken'])).toEqual({
      id: 'C4',
      sentence,
      clause,
      result: 'broken',
      departures,
      notes: [],
    })
  })

  it.each<readonly [what: string, findings: readonly Finding[], quick: boolean, notes: readonly string[]]>([
    ['nothing, if no finding is of it', [], false, ['no request of this run shows it']],
    ['that it was left out', [], true, ['left out by --quick']],
    ['an observation, once', ['noted', 'noted'], false, ['seen']],
    ['why it is not testable', ['kept', 'untestable'], false, ['no occasion']],
    ['what of a broken one was not tested', ['broken', 'untestable'], false, ['not tested: no occasion']],
  ])('notes %s', (_what, findings, quick, notes) => {
    expect(verdictAfter(findings, quick).notes).toEqual(notes)
  })
})

it('the parts of a run show every promise that can be checked from outside, and no other', () => {
  expect(new Set(PARTS.flatMap(({ promises }) => promises))).toEqual(new Set(IDS))
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
        const flooded = !quick && only.some((id) => !WITHOUT_FLOODS.includes(id))
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
