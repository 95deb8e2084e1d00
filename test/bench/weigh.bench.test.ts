import { join } from 'node:path'
import { expect, it } from 'vitest'
import { readBudget } from '../../bench/weigh/budget.ts'
import { shellBlock } from '../support/pages.ts'
import { run } from '../support/tools.ts'

const ROOT = join(import.meta.dirname, '../..')

it('a request, a start and an idle minute are no heavier than their budget, by the commands of bench/README.md', async () => {
  const [weigh = '', list = ''] = shellBlock('bench/README.md', 'npm run weigh').split('\n')
  const { code, stdout, stderr } = await run('sh', ['-c', weigh], { cwd: ROOT, timeout: 300_000 })
  expect(code, `${stdout}${stderr}`).toBe(0)
  for (const name of Object.keys(readBudget())) expect(stdout).toContain(`\n${name} `)
  const listed = await run('sh', ['-c', `${/^[^#]*/.exec(list)?.[0]} --quick`], {
    cwd: ROOT,
    timeout: 300_000,
  })
  expect(listed.stdout).toMatch(/^ {2}gate\/admit\.ts /m)
}, 610_000)
