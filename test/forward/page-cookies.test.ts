import { expect, it } from 'vitest'
import { requestFields } from '../../src/forward/request-fields.ts'
import { fieldValues } from '../../src/http/fields.ts'
import { startAdmin } from '../admin/viewing.ts'
import { admitted, PLAIN } from '../support/admitted.ts'
import { requestHead } from '../support/exchange.ts'

/** The `Cookie` fields that the device gets. */
function cookiesAtDevice(version: '1.1' | '2', ...cookies: readonly string[]): readonly string[] {
  const head = requestHead({
    version,
    fields: ['Host', 'a', ...cookies.flatMap((value) => ['Cookie', value])],
  })
  return fieldValues(requestFields(admitted(head), null, PLAIN), 'cookie')
}

it('C22 the device never sees a session of the live page, and every other cookie unchanged', async () => {
  const viewed = await startAdmin({ password: true })
  const session = await viewed.signIn()
  for (const version of ['1.1', '2'] as const) {
    expect(cookiesAtDevice(version, session)).toEqual([])
    expect(cookiesAtDevice(version, `a=1; ${session}; b="2;x"`)).toEqual(['a=1; b="2;x"'])
    expect(cookiesAtDevice(version, `${session};a=1`)).toEqual(['a=1'])
    const others = 'postern-=1;  postern-0123456789ab0=2; a=postern-0123456789ab'
    expect(cookiesAtDevice(version, others)).toEqual([others])
  }
  expect(cookiesAtDevice('1.1', session, 'a=1', session)).toEqual(['a=1'])
  expect(cookiesAtDevice('2', session, 'a=1', session, 'b=2')).toEqual(['a=1; b=2'])
})
