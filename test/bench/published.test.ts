import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { costId, JOBS, PROTOCOLS } from '../../bench/figures/p1-forwarding.ts'
import { publish } from '../../bench/report/publish.ts'
import { measuredRow, type PublishedFigure, writtenPage } from '../../bench/report/published.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { readPage } from '../support/pages.ts'
import { aCheck, aResult } from './a-result.ts'

const ROW: PublishedFigure = {
  ...{ id: 'a request', check: 'P1 CPU', value: '33.2', unit: 'µs', command: 'npm run bench -- --only P1' },
  ...{ machine: 'two cores of an AMD EPYC of 2.5 GHz', day: '2026-11-28', page: 'docs/beside.md' },
}
const RUN = { at: '2026-12-01T10:00:00Z', machine: { cores: 2, processor: 'AMD EPYC' } }

describe('A figure of a page', () => {
  it('has the value and the day of the run that has measured it, and the machine', () => {
    const row = measuredRow(ROW, { ...RUN, checks: [aCheck({ id: 'P1 CPU', value: 27.312 })] })
    expect(row).toEqual({ ...ROW, value: '27.3', day: '2026-12-01' })
    const other = { ...RUN, machine: { cores: 4, processor: 'Xeon' } }
    const moved = measuredRow(ROW, { ...other, checks: [aCheck({ id: 'P1 CPU', value: 27.3 })] })
    expect(moved.machine).toBe('4 cores of Xeon')
  })

  it('stays as it is if the run has not measured it', () => {
    const absent = [aCheck({ id: 'P1 CPU', value: undefined }), aCheck({ id: 'P1 CPU TLS', value: 1 })]
    expect(measuredRow(ROW, { ...RUN, checks: absent })).toBe(ROW)
  })
})

describe('A page', () => {
  const rows = ['33.2', '5', '33.2'].map((value, i) => ({ ...ROW, id: `row ${i}`, value }))
  const after = ['5', '33.2', '40'].map((value, i) => ({ ...ROW, id: `row ${i}`, value, day: '2026-12-01' }))
  const page = '| 33.2 µs | 5\nµs | 33.2 µs |, not 15 µs, on 2026-11-28'

  it('gets the values in the order of its rows, and their day', () => {
    const written = writtenPage(page, rows, after)
    expect(written).toEqual({ text: '| 5 µs | 33.2 µs | 40 µs |, not 15 µs, on 2026-12-01', left: [] })
  })

  it('keeps a value that it names too often, and a day that another row has: someone must look', () => {
    const kept = { ...ROW, id: 'row 3', value: '7' }
    const { text, left } = writtenPage(`${page}, 5 µs, 7 µs`, [...rows, kept], [...after, kept])
    expect(text).toContain('5\nµs')
    expect(text).toContain('2026-11-28')
    expect(left).toEqual(['row 1: 33.2 µs, not 5 µs', 'day: 2026-12-01'])
  })

  it('that exists can be written: every value with a check is found', () => {
    const figures: readonly PublishedFigure[] = JSON.parse(
      readFileSync(new URL('../../bench/figures.json', import.meta.url), 'utf8'),
    )
    for (const [name, of] of Map.groupBy(figures, (figure) => figure.page)) {
      const next = of.map((figure, i) =>
        figure.check === undefined ? figure : { ...figure, value: `0.${i}1` },
      )
      expect(writtenPage(readPage(name), of, next).left, name).toEqual([])
    }
  })
})

describe('A run', () => {
  const write = (root: string, rows: readonly PublishedFigure[]): void => {
    for (const folder of ['bench', 'docs']) mkdirSync(join(root, folder))
    writeFileSync(join(root, 'bench/figures.json'), JSON.stringify(rows))
    writeFileSync(join(root, 'docs/beside.md'), '33.2 µs, 40 µs, 2026-11-28\n')
  }
  const other = {
    ...ROW,
    id: 'another',
    check: 'P1 CPU TLS',
    value: '40',
    command: 'npm run bench -- --only P5',
  }
  const checks = [aCheck({ id: 'P1 CPU', value: 27.3 }), aCheck({ id: 'P1 CPU TLS', value: 50 })]
  const isRun = (command: string): boolean => command === ROW.command

  it('writes the figures of its own command, and says what is left to write', async () => {
    const root = temporaryDirectory()
    write(root, [ROW, other])
    const lines = await publish(root, isRun, aResult({ processor: 'AMD EPYC', checks }))
    expect(readFileSync(join(root, 'docs/beside.md'), 'utf8')).toBe('27.3 µs, 40 µs, 2026-11-28\n')
    expect(JSON.parse(readFileSync(join(root, 'bench/figures.json'), 'utf8'))).toEqual([
      { ...ROW, value: '27.3', day: '2026-01-02' },
      other,
    ])
    expect(lines).toEqual([
      'written: docs/beside.md and bench/figures.json',
      'write into docs/beside.md yourself: day: 2026-01-02',
    ])
  })

  it('writes no figure with a fault, and names what it did not measure', async () => {
    const root = temporaryDirectory()
    write(root, [ROW])
    const lines = await publish(root, isRun, aResult({ checks, faults: ['a wrong response'] }))
    expect(lines).toEqual(['bench/figures.json: a request: no value of P1 CPU'])
    expect(readFileSync(join(root, 'docs/beside.md'), 'utf8')).toContain('33.2 µs')
  })
})

it('P1 measures each figure of the whole job', () => {
  const figures: readonly PublishedFigure[] = JSON.parse(
    readFileSync(new URL('../../bench/figures.json', import.meta.url), 'utf8'),
  )
  const published = figures.filter(({ id }) => id.startsWith('the whole job: ')).map(({ check }) => check)
  expect(published).toEqual(JOBS.flatMap((name) => PROTOCOLS.map((protocol) => costId(name, protocol))))
})
