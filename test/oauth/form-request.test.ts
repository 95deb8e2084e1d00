import { expect, it } from 'vitest'
import type { Exchange } from '../../src/http/exchange.ts'
import { BrokenBodyError, StalledBodyError } from '../../src/http/refusal.ts'
import { readFormBody } from '../../src/oauth/form-request.ts'

/** An exchange whose body fails. `readFormBody` uses nothing else of it. */
const failing = (error: Error): Exchange =>
  ({
    async *body() {
      yield Buffer.from('grant_type=')
      throw error
    },
  }) as unknown as Exchange

it.each([
  ['broke off', new BrokenBodyError(), 'malformed'],
  ['stalled', new StalledBodyError(), 'request-timeout'],
])('C9 a token request whose body %s is refused as %s', async (_name, error, kind) => {
  expect(await readFormBody(failing(error), 1000)).toMatchObject({ kind })
})

it('C9 a bug of Postern is rethrown, not refused as a fault of the client', async () => {
  const bug = new TypeError('x is not a function')
  await expect(readFormBody(failing(bug), 1000)).rejects.toBe(bug)
})
