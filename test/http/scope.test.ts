import { expect, it } from 'vitest'
import { type AllowRule, compileAllow, UPGRADE } from '../../src/http/scope.ts'
import { rows } from '../support/rows.ts'

/** The `allow` of the example on the pages. */
const allows = compileAllow([{ methods: ['GET', 'HEAD'], paths: ['/status', '/api/sensors/'] }])

it.each([
  ['GET', '/status'],
  ['HEAD', '/status?verbose=1'],
  ['GET', '/status?/../x'],
  ['GET', '/api/sensors/'],
  ['GET', '/api/sensors/7?x=/../y'],
])('H193 an allow has %s %s', (method, target) => {
  expect(allows(method, target)).toBe(true)
})

it.each([
  ['POST', '/status'],
  ['OPTIONS', '/status'],
  ['PUT', '/api/sensors/7'],
  ['DELETE', '/firmware'],
  ['get', '/status'],
  [UPGRADE, '/status'],
])('H193 an allow does not have the method of %s %s', (method, target) => {
  expect(allows(method, target)).toBe(false)
})

it.each(rows`
  /
  /STATUS
  /status/
  /status.
  /status%20
  /status%00
  /status;x
  /status/../firmware
  /firmware;/status
  /firmware?/status
  /firmware%3f/status
  /api/sensors
  //api/sensors/7
  /api//sensors/7
  /%61pi/sensors/7
  /API/sensors/7
  /api/sensors/../firmware
  /api/sensors/./../firmware
  /api/sensors/%2e%2e/firmware
  /api/sensors/.%2E/firmware
  /api/sensors/..%2ffirmware
  /api/sensors/..%5cfirmware
  /api/sensors/..\\firmware
  /api/sensors/..;/firmware
  /api/sensors/..;x=1/firmware
  /api/sensors/..%20/firmware
  /api/sensors/..%09/firmware
  /api/sensors/.../firmware
  /api/sensors/..
  /api/sensors//../../firmware
  /api/sensors/%252e%252e/firmware
  /api/sensors/%%32%65%%32%65/firmware
  /api/sensors/%2%65%2%65/firmware
  /api/sensors/%u002e%u002e/firmware
  /api/sensors/%c0%ae%c0%ae/firmware
  /api/sensors/%e0%80%ae/firmware
  /api/sensors/%f0%80%80%ae/firmware
  /api/sensors/x%00/../firmware
  /api/sensors/x%00
  /api/sensors/x%23
  /api/sensors/x%3b
  /api/sensors/x%3f/../../firmware`)('H193 %s is within no list of paths', (target) => {
  expect(allows('GET', target)).toBe(false)
})

it('H193 a rule without methods is for every method but no upgrade, one without paths for every path, also an ambiguous one', () => {
  const some: readonly AllowRule[] = [{ paths: ['/api/'] }, { methods: ['POST', UPGRADE] }]
  const may = compileAllow(some)
  expect([
    may('DELETE', '/api/x'),
    may('POST', '/any'),
    may('POST', '/api/../x'),
    may(UPGRADE, '/any'),
  ]).toEqual(Array(4).fill(true))
  expect([may('DELETE', '/any'), may('DELETE', '/api/../x')]).toEqual([false, false])
  expect(compileAllow([{}])(UPGRADE, '/')).toBe(false)
  expect(compileAllow([])('GET', '/')).toBe(false)
})

it('H193 allow: read is GET, HEAD and OPTIONS everywhere', () => {
  const read = compileAllow('read')
  const methods = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND', UPGRADE]
  for (const path of ['/', '/any/path', '/odd/../path'])
    expect(methods.filter((method) => read(method, path))).toEqual(['GET', 'HEAD', 'OPTIONS'])
})
