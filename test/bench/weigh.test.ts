import { join } from 'node:path'
import { expect, it } from 'vitest'
import { compareWithBudget, readBudget } from '../../bench/weigh/budget.ts'
import { weighSource } from '../../bench/weigh/source-weight.ts'
import { needs } from '../support/tools.ts'

const ROOT = join(import.meta.dirname, '../..')

it('no more packages run than the budget allows; lines and files are only reported', () => {
  needs('git')
  const weighed = compareWithBudget({ ...weighSource(ROOT) }, readBudget())
  expect(weighed.filter(({ verdict }) => verdict === 'TOO HEAVY')).toEqual([])
  const unbound = weighed.filter(({ bound }) => bound === undefined).map(({ name }) => name)
  expect(unbound).toEqual(['source: lines', 'source: files'])
})

it('a figure above its bound is too heavy, a noisy one only when it is above by more than a tenth', () => {
  const budget = { 'packages at run time': 100, 'GET: bytes allocated': 1000 }
  const verdicts = (packages: number, bytes: number): string[] =>
    compareWithBudget({ 'packages at run time': packages, 'GET: bytes allocated': bytes }, budget).map(
      ({ verdict }) => verdict,
    )
  expect(verdicts(100, 1_090)).toEqual(['held', 'held'])
  expect(verdicts(101, 1_110)).toEqual(['TOO HEAVY', 'TOO HEAVY'])
  expect(verdicts(90, 900)).toEqual(['light', 'light'])
})
