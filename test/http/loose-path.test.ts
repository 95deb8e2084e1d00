import { expect, it } from 'vitest'
import { loosePathOf } from '../../src/http/request-path.ts'

it.each([
  '/login',
  '/LOGIN/',
  '//login',
  '/./x/../login;v=1',
  '/%6cogin',
  '/%256cogin',
  '/%25256cogin',
  '/%2525256cogin',
  '/x%252f..%252flogin',
  '/login%3fx',
  '/login%253fx?y',
  '/login?x',
])('%s is the login page to some device', (target) => {
  expect(loosePathOf(target)).toBe('/login')
})

it.each(['/log', '/login/x', '/login%', '/a%zz', '/%2525252525256cogin'])('%s is another page', (target) => {
  expect(loosePathOf(target)).not.toBe('/login')
})
