import { expect, it } from 'vitest'
import { reportFailure } from '../../src/commands/command.ts'
import { located } from '../../src/commands/configuration.ts'
import { problemsIn } from '../../src/compose/reload.ts'
import { causeOf, isBug, lacksResources, SetupError } from '../../src/system/setup-error.ts'

function reported(error: unknown): { readonly code: number; readonly lines: readonly string[] } {
  let text = ''
  const code = reportFailure('serve', error, {
    env: {},
    stderr: {
      write(written) {
        text += written
      },
    },
  })
  return { code, lines: text.split('\n') }
}

it('a problem that the operator must fix is a line each, and exit code 2', () => {
  expect(reported(new SetupError(['a is wrong', 'b is wrong']))).toEqual({
    code: 2,
    lines: ['postern serve: a is wrong', 'postern serve: b is wrong', ''],
  })
})

it('a problem that may pass by itself is exit code 1', () => {
  expect(reported(new SetupError('the port is in use', { exitCode: 1 }))).toEqual({
    code: 1,
    lines: ['postern serve: the port is in use', ''],
  })
})

it('a system error is one line without a stack', () => {
  const error = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
  expect(reported(error)).toEqual({ code: 1, lines: ['postern serve: ENOSPC: no space left on device', ''] })
})

it('a bug of Postern shows its stack, and exit code 1', () => {
  const { code, lines } = reported(new TypeError('x is not a function'))
  expect([code, lines[0]]).toEqual([1, 'postern serve: TypeError: x is not a function'])
  expect(lines.length).toBeGreaterThan(2)
})

/** The error of a scope that ended with `first` and whose parts could not be closed. */
function failedTwice(first: unknown): unknown {
  try {
    using opened = new DisposableStack()
    opened.defer(() => {
      throw new Error('the first part was not closed')
    })
    opened.defer(() => {
      throw new Error('the second part was not closed')
    })
    throw first
  } catch (error) {
    return error
  }
}

it('a failure stays the reported one if its scope cannot be closed, too', () => {
  const wrong = new SetupError(['a is wrong', 'b is wrong'], { key: 'listen' })
  const error = failedTwice(wrong)
  expect(reported(error)).toEqual(reported(wrong))
  expect(reported(failedTwice(new Error('the disk is full'))).lines).toEqual([
    'postern serve: the disk is full',
    '',
  ])
  expect(reported(located(error, () => 'postern.yaml:3')).lines[0]).toBe(
    'postern serve: postern.yaml:3: listen: a is wrong',
  )
  expect(problemsIn(error)).toEqual(wrong.problems)
  expect(causeOf(error)).toEqual(causeOf(wrong))
  const short = Object.assign(new Error('too many open files'), { code: 'EMFILE' })
  expect(lacksResources(failedTwice(short))).toBe(true)
  const bug = new TypeError('x is not a function')
  expect([isBug(failedTwice(bug)), causeOf(failedTwice(bug))]).toEqual([true, { err: bug }])
})
