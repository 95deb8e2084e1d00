import { readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import process from 'node:process'
import { parseResults } from './results-file.ts'
import { testArguments } from './test-arguments.ts'

// `npm test`: vitest in this process, with one more option, `--results FILE`.

try {
  const { args, asked, results } = testArguments(process.argv.slice(2))
  if (results !== undefined) {
    const file = resolve(process.env.INIT_CWD ?? '.', results)
    // Before the minutes that the run takes: whether it can be written. A run that is killed leaves no earlier one behind.
    const before = readFileSync(file, { encoding: 'utf8', flag: 'a+' })
    if (before !== '' && parseResults(before) === undefined)
      throw new Error(`${file} is there, and is no file of npm test -- --results FILE: name another one`)
    writeFileSync(file, '')
    process.env.POSTERN_TEST_RESULTS = file
    process.env.POSTERN_TEST_ASKED = JSON.stringify(asked)
  }
  process.argv.splice(2, Number.POSITIVE_INFINITY, 'run', ...args)
  await import(new URL('vitest.mjs', import.meta.resolve('vitest/package.json')).href)
} catch (error) {
  process.stderr.write(`npm test: ${(error as Error).message}\n`)
  process.exitCode = 1
}
