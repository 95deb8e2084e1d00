import { expect, it } from 'vitest'
import { problemsIn } from './sources.ts'

const problemsWith = (upstream: string): readonly string[] =>
  problemsIn({ file: `password: {file: x}\nupstream: {url: "http://127.0.0.1", ${upstream}}\n` })

it.each([
  ['Host', 'must not be null: HTTP requires it, and upstream.host changes it'],
  ['content-length', 'must not be null: without it the device cannot find the end of the body'],
  ['Transfer-Encoding', 'must not be null: without it'],
  ['connection', 'must not be null: the sidecar writes it itself'],
  ['Upgrade', 'must not be null: the sidecar writes it itself'],
  ['Content_Length', 'must not be null: without it the device cannot find the end of the body'],
  ['Sec-WebSocket-Key', 'must not be null: a WebSocket handshake needs it, and "Sec-*" leaves it alone'],
  ['sec-websocket-*', 'must not be null: a WebSocket handshake needs it'],
  ['*', 'must have a field name such as Cookie'],
  ['x-*-y', 'must have a field name such as Cookie'],
  ['a b', 'must have a field name such as Cookie'],
])('H172 upstream.headers refuses null for %s, and says why', (name, why) => {
  expect(problemsWith(`headers: {"${name}": null}`)).toEqual([
    expect.stringContaining(`upstream.headers.${name}: ${why}`),
  ])
})

it('H172 upstream.headers takes null for names in any case, and for beginnings of names', () => {
  expect(problemsWith('headers: {Cookie: null, "sec-*": null, X-Forwarded-For: null, "c*": null}')).toEqual(
    [],
  )
  expect(problemsWith('headers: {"X-*": null, X-Key: a, X--: b, Authorization: null}')).toEqual([])
})

it('H172 only null stands for many fields, and a field stands once', () => {
  expect(problemsWith('headers: {"X-*": a}')).toEqual([
    'postern.yaml:2: upstream.headers.X-*: must be null: a name that ends with * stands for many fields',
  ])
  expect(problemsWith('headers: {X-Key: null, x_key: a}')).toEqual([
    expect.stringContaining('upstream.headers.X-Key: must be set only once; x_key is the same field'),
    expect.stringContaining('upstream.headers.x_key: must be set only once; X-Key is the same field'),
  ])
})

it('H172 a field that the sidecar writes can only be left out', () => {
  expect(problemsWith('headers: {via: a}')).toEqual([
    'postern.yaml:2: upstream.headers.via: must be null, which leaves it out: the sidecar writes its value itself',
  ])
  expect(problemsWith('headers: {via: null, X-Request-Id: null, "X-Forwarded-*": null}')).toEqual([])
})

it('H172 a field that upstream.auth writes may be left out of what clients send', () => {
  const auth = 'auth: {kind: basic, user: a, password: {file: b}}'
  expect(problemsWith(`headers: {Authorization: null}, ${auth}`)).toEqual([])
})

it('H174 a version that is no text says how to write it', () => {
  expect(problemsWith('version: 1.0')).toEqual([
    expect.stringMatching(/upstream\.version: must be "1\.0" or "1\.1", in quotes/),
  ])
})
