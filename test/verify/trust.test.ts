import { expect, it } from 'vitest'
import { failureOf } from '../../src/verify/exchange.ts'

it('the failure of a certificate has none of the advice of Node, which has no effect on a run', () => {
  const hint = 'if the root CA is installed locally, try running Node.js with --use-system-ca'
  const error = Object.assign(new Error(`unable to verify the first certificate; ${hint}`), {
    code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  })
  expect(failureOf(error, undefined, 1000)).toBe('no response: unable to verify the first certificate')
})
