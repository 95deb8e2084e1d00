import { readFile, rm, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { run } from '../support/tools.ts'
import { aCheck, aResult } from './a-result.ts'

const ROOT = join(import.meta.dirname, '../..')
const bench = (...args: string[]): ReturnType<typeof run> =>
  run(process.execPath, [join(ROOT, 'bench/bench.ts'), ...args])

it('the bench measures, writes its two files, and exits with 1 if a figure is worse than before', async () => {
  const before = join(temporaryDirectory(), 'before.json')
  const impossible = aCheck({ id: 'P10 admission', unit: 'µs', better: 'less', value: 0.001 })
  const earlier = aResult({ checks: [impossible], processor: cpus()[0]?.model.trim() ?? '' })
  const machine = { ...earlier.machine, node: process.versions.node }
  await writeFile(before, JSON.stringify({ ...earlier, machine }))
  const out = `test-${process.pid}`
  const [json, html] = ['json', 'html'].map((kind) => join(ROOT, 'bench/results', `${out}.${kind}`))
  closeLater(async () => {
    for (const file of [json, html]) await rm(file ?? '', { force: true })
  })

  const { code, stdout, stderr } = await bench(
    '--quick',
    '--source',
    '--only',
    'P10',
    '--out',
    out,
    '--compare',
    before,
  )
  expect(stderr).toContain('P10  Cost of one admission')
  expect(stdout).toMatch(/P10 admission\s+one admission\s+\d+\.\d+ µs/)
  expect(stdout).toMatch(/WORSE\s+P10 admission\s+0\.0010\s/)
  expect(code).toBe(1)
  const result = JSON.parse(await readFile(json ?? '', 'utf8')) as ReturnType<typeof aResult>
  expect(result.figures.map(({ id, faults }) => [id, faults])).toEqual([['P10', []]])
  expect(await readFile(html ?? '', 'utf8')).toContain('<h2 id="P10">')
})

it('the bench refuses a file to compare with that is no result', async () => {
  const { code, stderr } = await bench('--compare', join(ROOT, 'package.json'))
  expect(code).toBe(1)
  expect(stderr).toMatch(/^--compare: .*package\.json is not a result of this bench/)
})
