import { expect, it } from 'vitest'
import { isSameAddress, parseUpstreamUrl } from '../../src/config/address.ts'

function isSame(one: string, other: string): boolean {
  const [first, second] = [parseUpstreamUrl(one), parseUpstreamUrl(other)]
  if (!('value' in first && 'value' in second)) throw new Error(`no address: ${one} or ${other}`)
  return isSameAddress(first.value, second.value)
}

it.each([
  ['http://127.0.0.1', 'http://127.0.0.1:80/'],
  ['http://127.0.0.1:81', 'http://localhost:81'],
  ['http://127.0.0.1:81', 'http://LOCALHOST.:81'],
  ['http://127.0.0.1:81', 'http://[::1]:81'],
  ['http://127.0.0.1:81', 'http://[::ffff:127.0.0.1]:81'],
  ['http://192.0.2.7', 'http://[::ffff:192.0.2.7]'],
  ['http://device:443', 'https://Device.'],
  ['http://127.1', 'http://localhost'],
  ['http+unix:/run/a.sock', 'http+unix:///run/a.sock'],
])('C25 %s and %s are one address', (one, other) => {
  expect([isSame(one, other), isSame(other, one)]).toEqual([true, true])
})

it.each([
  ['http://127.0.0.1', 'http://127.0.0.1:81'],
  ['http://127.0.0.1', 'http://127.0.0.2'],
  ['http://localhost', 'http://localhost.example'],
  ['http://[fe80::1%eth0]', 'http://[fe80::1%eth1]'],
  ['http://localhost', 'http+unix:/run/a.sock'],
  ['http+unix:/run/a.sock', 'http+unix:/run/b.sock'],
])('C25 %s and %s are two addresses', (one, other) => {
  expect([isSame(one, other), isSame(other, one)]).toEqual([false, false])
})
