import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { readResult } from '../../bench/result.ts'
import { closeLater } from '../support/cleanup.ts'
import { needs, run } from '../support/tools.ts'

const ROOT = join(import.meta.dirname, '../..')

it('H143 a quick run of the bench measures what sharing costs, with real sidecars and a real server', async () => {
  needs('redis-server')
  const out = `fleet-${process.pid}`
  const file = join(ROOT, 'bench/results', out)
  closeLater(async () => {
    for (const kind of ['json', 'html']) await rm(`${file}.${kind}`, { force: true })
  })
  const args = [join(ROOT, 'bench/bench.ts'), '--source', '--only', 'F1,F2,F3', '--quick', '--out', out]
  const { stdout, stderr } = await run(process.execPath, args, { timeout: 170_000 })
  const { figures } = await readResult(`${file}.json`)
  expect(
    figures.flatMap(({ id, faults }) => [[id, faults]]),
    `${stdout}${stderr}`,
  ).toEqual([
    ['F1', []],
    ['F2', []],
    ['F3', []],
  ])
  const values = figures.flatMap(({ checks }) => checks.map(({ value }) => value))
  expect(values).toHaveLength(9)
  expect(values.every((value) => value !== undefined && Number.isFinite(value))).toBe(true)
  const cells = figures.flatMap(({ tables }) => tables.flatMap(({ rows }) => rows.flat()))
  expect(cells.filter((cell) => cell === '-' || cell.includes('NaN'))).toEqual([])
  expect(await readFile(`${file}.html`, 'utf8')).toContain('<h2 id="F3">')
}, 180_000)
