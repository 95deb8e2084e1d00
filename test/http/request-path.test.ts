import { expect, it } from 'vitest'
import { createPathTable, pathOf, splitAbsolute } from '../../src/http/request-path.ts'

it('the path of a target is what stands before its first question mark', () => {
  expect(['/a?b?c', '/a', '?b', ''].map(pathOf)).toEqual(['/a', '/a', '', ''])
})

it('an absolute URL has its parts byte for byte, and no other text has any', () => {
  const parts = { scheme: 'HTTP', authority: 'u@A:80', rest: '?b', target: '/?b' }
  expect(splitAbsolute('HTTP://u@A:80?b')).toEqual(parts)
  expect(splitAbsolute('https://a/b')).toEqual({ scheme: 'https', authority: 'a', rest: '/b', target: '/b' })
  expect(['/a', 'ftp://a/', 'xhttp://a/'].map(splitAbsolute)).toEqual([undefined, undefined, undefined])
})

it('a name that ends in a slash has all paths below it, any other one path, and the longest wins', () => {
  const find = createPathTable(['/', '/a/', '/a/b/c/', '/a/b/', '/a', '/a/b/d'].map((name) => [name, name]))
  const paths = ['/', '/x', '/a', '/a/', '/a/x', '/a/b', '/a/b/x', '/a/b/c/x', '/a/b/d', '/a/b/d/x']
  const names = ['/', '/', '/a', '/a/', '/a/', '/a/', '/a/b/', '/a/b/c/', '/a/b/d', '/a/b/']
  expect(paths.map(find)).toEqual(names)
  expect(createPathTable([['/a', 1]])('/b')).toBeUndefined()
})
