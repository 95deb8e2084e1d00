import { expect, it } from 'vitest'
import { coursesOf } from './figures.ts'
import { soak } from './run.ts'

it('C8 C14 C21 C24 every response is right in a few seconds of mixed traffic with disturbances', async () => {
  const { faults, ledger, disturbances } = await soak({ seconds: 5, least: 50, seed: 5, rate: 60 })
  expect(faults).toEqual([])
  expect(ledger.total).toBeGreaterThanOrEqual(50)
  expect(Object.values(disturbances).reduce((sum, times) => sum + times, 0)).toBeGreaterThan(0)
})

const steady = { resident: 100, heap: 30, descriptors: 40, sockets: 20 }

it('a figure within the noise is flat, and one that grows is not', () => {
  const samples = Array.from({ length: 100 }, (_, i) => ({
    ...steady,
    resident: 100 + (i % 7),
    heap: 30 + i,
  }))
  const courses = coursesOf(samples) ?? []
  expect(courses.filter(({ flat }) => !flat).map(({ name }) => name)).toEqual(['heap'])
})

it('a run that is too short makes no statement about memory', () => {
  expect(coursesOf(Array(10).fill(steady))).toBeUndefined()
})
