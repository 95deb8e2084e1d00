import { expect, it } from 'vitest'
import type { Check } from '../../bench/figure.ts'
import { type AttackRound, attackFindings } from '../../bench/figures/attack-findings.ts'
import { attacks } from '../../bench/figures/attacks.ts'

const [idle, ...others] = attacks(1)
const reset = others.find(({ name }) => name === 'rapid reset')

function report(p99: number, failed = 0): AttackRound['alone'] {
  return { count: 800, answered: 800, p50: 1, p90: 1, p99, max: p99, failed }
}

function round(alone: number, during: number, failed = 0, peak = 450): AttackRound {
  return {
    alone: report(alone),
    during: report(during, failed),
    busy: 0.5,
    memory: { before: 100, full: 400, peak, after: 200 },
    connections: 5000,
    refused: 0,
    cut: 0,
    answered: 5000,
    faults: [],
  }
}

it('the p99 of the good client under attack is compared with its p99 alone in the same round', () => {
  if (idle === undefined || reset === undefined) throw new Error('the attacks have other names')
  const { checks, faults } = attackFindings(
    new Map([
      [idle, [round(1, 1), round(10, 15), round(2, 8)]],
      [reset, [round(1, 3), round(1, 1, 2)]],
    ]),
  )
  const found = (id: string): Check | undefined => checks.find((check) => check.id === id)
  expect(found('S1 5000 idle, caps lifted')).toMatchObject({ value: 1.5, reach: 2 })
  expect(found('S1 rapid reset')).toMatchObject({ value: 2, reach: 2 })
  expect(found('S1 connection')?.value).toBeCloseTo((300 * 1024) / 5000)
  expect(faults).toEqual(['the good client during rapid reset: 2 responses were wrong or missing'])
})

it('an attack without effect is a fault, reported with its round', () => {
  if (reset === undefined) throw new Error('the attacks have other names')
  const second = { ...round(1, 1), faults: ['cut nothing for max_resets'] }
  const { faults } = attackFindings(new Map([[reset, [round(1, 1), second]]]))
  expect(faults).toEqual(['rapid reset, round 2: cut nothing for max_resets'])
})

it('memory is compared with the limit of the unit under default caps, and with the previous round under any caps', () => {
  const capped = others.find(({ caps }) => caps === 'as they come')
  if (idle === undefined || capped === undefined) throw new Error('the attacks have other caps')
  const { checks } = attackFindings(
    new Map([
      [idle, [round(1, 1, 0, 300), round(1, 1, 0, 500), round(1, 1, 0, 600)]],
      [capped, [round(1, 1, 0, 150), round(1, 1, 0, 170), round(1, 1, 0, 160)]],
    ]),
  )
  const value = (id: string): number | undefined => checks.find((check) => check.id === id)?.value
  expect(value('S1 memory')).toBe(170)
  expect(value('S1 growth')).toBe(1.2)
})
