import { expect, it } from 'vitest'
import { reportFailure } from '../../src/commands/command.ts'
import { SetupError } from '../../src/system/setup-error.ts'

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
