import { resolve } from 'node:path'
import process from 'node:process'
import { testArguments } from './test-arguments.ts'

// `npm test`: vitest in this process, with one more option, `--results FILE`.

try {
  const { args, asked, results } = testArguments(process.argv.slice(2))
  if (results !== undefined) {
    process.env.POSTERN_TEST_RESULTS = resolve(process.env.INIT_CWD ?? '.', results)
    process.env.POSTERN_TEST_ASKED = JSON.stringify(asked)
  }
  process.argv.splice(2, Number.POSITIVE_INFINITY, 'run', ...args)
  await import(new URL('vitest.mjs', import.meta.resolve('vitest/package.json')).href)
} catch (error) {
  process.stderr.write(`npm test: ${(error as Error).message}\n`)
  process.exitCode = 1
}
