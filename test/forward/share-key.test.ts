import { expect, it } from 'vitest'
import { requestFields } from '../../src/forward/request-fields.ts'
import { keyOf } from '../../src/forward/share.ts'
import { admitted, PLAIN } from '../support/admitted.ts'
import { requestHead } from '../support/exchange.ts'

const NONE: ReadonlySet<string> = new Set()

/** The key of a request behind a trusted proxy, which writes these fields. */
function key(
  fields: readonly string[],
  added: readonly string[] = [],
  set = NONE,
  peer = '127.0.0.1',
): string {
  const request = admitted(requestHead({ fields: ['Host', 'a', ...fields], peer }), ['127.0.0.0/8'])
  return keyOf(request, requestFields(request, null, { ...PLAIN, added }), set)
}

it.each([
  ['X-Forwarded-For', '192.0.2.1', '192.0.2.2'],
  ['X-Real-IP', '192.0.2.1', '192.0.2.2'],
  ['Via', '1.1 a', '1.1 b'],
  ['Forwarded', 'for=192.0.2.1;host=a;by="[::1]"', 'for="[2001:db8::1]:80";host=a;by=_x'],
])('H183 %s, which says where a request comes from, is no part of the question', (name, one, other) => {
  expect(key([name, one])).toBe(key([name, other]))
})

it.each([
  ['X-Forwarded-Host', 'a', 'b'],
  ['X-Forwarded-Proto', 'http', 'https'],
  ['X-Forwarded-Port', '80', '81'],
  ['Forwarded', 'for=192.0.2.1;host=a', 'for=192.0.2.1;host=b'],
  ['Forwarded', 'for=192.0.2.1;proto=http', 'for=192.0.2.1;proto=https'],
  ['Cookie', 'a=1', 'a=2'],
  ['Accept', 'a', 'b'],
])('H183 %s, which the device may answer to, is a part of the question', (name, one, other) => {
  expect(key([name, one])).not.toBe(key([name, other]))
})

it.each(['X-Client', 'X-Real-IP', 'Via', 'X-Forwarded-For', 'X-Request-Id', 'Forwarded'])(
  'H183 %s of upstream.headers is a part of the question, whatever its name',
  (name) => {
    const set = new Set([name.toLowerCase()])
    expect(key([], [name, 'ann'], set)).not.toBe(key([], [name, 'bob'], set))
  },
)

it('H183 no field can pass for another one', () => {
  expect(key(['A', 'b, c'])).not.toBe(key(['A', 'b', 'A', 'c']))
  expect(key(['A', 'b'])).not.toBe(key(['a', 'b']))
})
