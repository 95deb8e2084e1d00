import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'vitest'
import { readResult } from '../../bench/figure.ts'
import { closeLater } from '../support/cleanup.ts'
import { needs, run } from '../support/tools.ts'

const ROOT = join(import.meta.dirname, '../..')

describe.concurrent('H143 a quick run of the bench, with real sidecars and a real server,', () => {
  it.for([
    ['what sharing costs a request', 'F1', 4],
    ['what several sidecars cost', 'F2', 1],
  ] as const)('measures %s', { timeout: 180_000 }, async ([, only, checks], { expect: assert }) => {
    needs('redis-server')
    const out = `fleet-${process.pid}-${only.length}`
    const file = join(ROOT, 'bench/results', out)
    closeLater(async () => {
      for (const kind of ['json', 'html']) await rm(`${file}.${kind}`, { force: true })
    })
    // autocannon counts once a second: on a busy machine it would find nothing in the one second of a quick run.
    const options = ['--source', '--quick', '--seconds', '2', '--only', only, '--out', out]
    const { stdout, stderr } = await run(process.execPath, [join(ROOT, 'bench/bench.ts'), ...options], {
      timeout: 170_000,
    })
    const { figures } = await readResult(`${file}.json`)
    assert(
      figures.map(({ id, faults }) => [id, faults]),
      `${stdout}${stderr}`,
    ).toEqual(only.split(',').map((id) => [id, []]))
    const values = figures.flatMap((figure) => figure.checks.map(({ value }) => value))
    assert(values).toHaveLength(checks)
    assert(values.every((value) => value !== undefined && Number.isFinite(value))).toBe(true)
    const cells = figures.flatMap(({ tables }) => tables.flatMap(({ rows }) => rows.flat()))
    assert(cells.filter((cell) => cell === '-' || cell.includes('NaN'))).toEqual([])
    assert(await readFile(`${file}.html`, 'utf8')).toContain(`<h2 id="${only.slice(0, 2)}">`)
  })
})
