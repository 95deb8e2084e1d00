import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { LimitDecision } from '../../src/http/admission.ts'
import { fieldLines } from '../../src/http/fields.ts'
import {
  ietfLimitFields,
  limitFields,
  limitLines,
  resetTime,
  secondsToReset,
} from '../../src/http/limit-fields.ts'

interface Instant {
  readonly decision: LimitDecision
  /** The wall clock. */
  readonly wall: number
  /** Milliseconds until the window closes. */
  readonly left: number
}

/** Fractions of a millisecond whose sums are exact, so that rounding errors of the test cannot hide those of the code. */
const eighths = (count: number): number => count / 8

const instant: fc.Arbitrary<Instant> = fc
  .record({
    limit: fc.integer({ min: 1, max: 1_000_000_000 }),
    used: fc.integer({ min: 0, max: 2_000_000_000 }),
    // 0 as the time of a reset means that no window counted.
    wall: fc.integer({ min: 1, max: 4e12 }),
    // 0 is possible: the window may close between the count and the response.
    left: fc.integer({ min: 0, max: 8 * 86_400_000 }).map(eighths),
  })
  .map(({ limit, used, wall, left }) => ({
    decision: { admitted: used <= limit, limit, remaining: Math.max(0, limit - used), closesIn: left },
    wall,
    left,
  }))

const fieldOf = (fields: readonly string[], name: string): string => {
  expect(fields.filter((field, i) => i % 2 === 0 && field === name)).toEqual([name])
  return fields[fields.indexOf(name) + 1] ?? ''
}

it('C16 the three fields are whole numbers, and the reset is the close of the window rounded up to a second', () => {
  fc.assert(
    fc.property(instant, ({ decision, wall, left }) => {
      const counted = {
        decision,
        resetAt: resetTime(decision, wall),
        ownFields: [],
        head: { version: '1.1' },
      }
      const fields = limitFields(counted)
      expect(limitLines(counted)).toBe(fieldLines(fields))
      expect(fields).toHaveLength(6)
      expect(fieldOf(fields, 'X-RateLimit-Limit')).toBe(String(decision.limit))
      expect(fieldOf(fields, 'X-RateLimit-Remaining')).toBe(String(decision.remaining))
      const reset = fieldOf(fields, 'X-RateLimit-Reset')
      expect(reset).toMatch(/^\d+$/)
      const late = Number(reset) * 1000 - (wall + left)
      expect(late, 'never early').toBeGreaterThanOrEqual(0)
      expect(late, 'less than a second late').toBeLessThan(1000)
    }),
    { numRuns: 2000 },
  )
})

it('C15 Retry-After is a whole number, at least 1, and the close of the window rounded up to a second', () => {
  fc.assert(
    fc.property(instant, ({ decision, left }) => {
      const wait = secondsToReset(decision.closesIn)
      expect(Number.isInteger(wait)).toBe(true)
      expect(wait).toBeGreaterThanOrEqual(1)
      expect(wait * 1000).toBeGreaterThanOrEqual(left)
      if (left > 0) expect(wait * 1000 - left).toBeLessThan(1000)
    }),
    { numRuns: 2000 },
  )
})

it('C16 the two fields of the IETF draft agree with the other three', () => {
  fc.assert(
    fc.property(
      instant,
      fc.constantFrom('api' as const, 'oauth' as const),
      fc.integer({ min: 1, max: 86_400 }),
      ({ decision }, endpoint, seconds) => {
        const policy = { requests: decision.limit, window: seconds * 1000 }
        const fields = ietfLimitFields(endpoint, decision, policy)
        expect(fields).toEqual([
          'RateLimit-Policy',
          `"${endpoint}";q=${decision.limit};w=${seconds}`,
          'RateLimit',
          `"${endpoint}";r=${decision.remaining};t=${secondsToReset(decision.closesIn)}`,
        ])
      },
    ),
  )
})
