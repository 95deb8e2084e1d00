import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { run } from '../support/tools.ts'

const WORKERS = new URL('../../src/password/crypt-workers.ts', import.meta.url).href
const JOB = JSON.stringify({
  credential: { kind: 'bcrypt', hash: '$2b$04$EybN/WSjTZqU1MmI73PHRusHjSxQfb/QBW/i0FUc0lYVYrsVOQTDq' },
  password: 'secret',
})

it.each([
  ['before its first job', 'workers.start()', ''],
  ['after a job', `console.log(await workers.matches(${JOB}))`, 'true\n'],
])('an idle thread keeps no process alive: %s', async (_when, work, stdout) => {
  const program = join(temporaryDirectory(), 'program.mjs')
  writeFileSync(
    program,
    `import { createCryptWorkers } from '${WORKERS}'\nconst workers = createCryptWorkers()\n${work}\n`,
  )
  expect(await run(process.execPath, [program])).toEqual({ code: 0, stdout, stderr: '' })
})
