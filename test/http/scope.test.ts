import { expect, it } from 'vitest'
import {
  type AllowRule,
  compileAllow,
  nameOfGrant,
  namesInText,
  textOfNames,
  UPGRADE,
} from '../../src/http/scope.ts'

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

it('values by name are read from the text that is made of them', () => {
  const values = new Map([
    ['monitor', '17'],
    ['admin', '12'],
  ])
  expect(textOfNames(values)).toBe('admin=12 monitor=17')
  expect(namesInText('admin=12 monitor=17')).toEqual(values)
  expect([textOfNames(new Map([['', 'x']])), namesInText('x'), namesInText('')]).toEqual([
    'x',
    new Map([['', 'x']]),
    new Map(),
  ])
})

it('the name of a grant stands before its first dot', () => {
  expect(['monitor.c0ffee', 'a.b.c', 'c0ffee'].map(nameOfGrant)).toEqual(['monitor', 'a', ''])
})
