import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { downloadAndTry, putBeforeDevice } from '../support/five-minutes.ts'
import { shellBlock } from '../support/pages.ts'
import { needs, run } from '../support/tools.ts'
import { cloneOfHead } from './clone.ts'

const MINUTES = 60_000

it(
  'the commands of docs/releasing.md make a release, and those of README.md download and run it',
  async () => {
    for (const tool of ['git', 'npm', 'dpkg-deb']) needs(tool)
    const clone = await cloneOfHead()
    const made = await run('sh', ['-ec', shellBlock('docs/releasing.md', 'npm run release')], {
      cwd: clone,
      env: { PATH: process.env.PATH, HOME: process.env.HOME ?? temporaryDirectory() },
      timeout: 15 * MINUTES,
    })
    expect(made.code, made.stdout + made.stderr).toBe(0)
    const { folder, temporary } = await downloadAndTry(join(clone, 'dist'))
    expect(readdirSync(temporary)).toEqual([])
    await putBeforeDevice(folder)
  },
  20 * MINUTES,
)
