import { expect, it } from 'vitest'
import { problemsIn } from './sources.ts'

const problemsWith = (upstream: string): readonly string[] =>
  problemsIn({ file: `password: {file: x}\nupstream: {url: "http://127.0.0.1", ${upstream}}\n` })

it.each([
  ['Host', 'must not name Host: HTTP requires it, and upstream.host changes it'],
  ['content-length', 'must not name content-length: without it the device cannot find the end of the body'],
  ['Transfer-Encoding', 'must not name Transfer-Encoding: without it'],
  ['connection', 'must not name connection: the sidecar writes it itself'],
  ['Upgrade', 'must not name Upgrade: the sidecar writes it itself'],
  [
    'Sec-WebSocket-Key',
    'must not name Sec-WebSocket-Key: a WebSocket handshake needs it, and sec-* leaves it alone',
  ],
  ['sec-websocket-*', 'must not name sec-websocket-*: a WebSocket handshake needs it'],
  ['*', 'must be a field name such as cookie'],
  ['x-*-y', 'must be a field name such as cookie'],
  ['a b', 'must be a field name such as cookie'],
])('H172 upstream.drop refuses %s, and says why', (name, why) => {
  expect(problemsWith(`drop: ["${name}"]`)).toEqual([expect.stringContaining(`upstream.drop.0: ${why}`)])
})

it('H172 upstream.drop takes names in any case, and beginnings of names', () => {
  expect(problemsWith('drop: [Cookie, "sec-*", X-Forwarded-For, "c*"]')).toEqual([])
})

it('H174 a version that is no text says how to write it', () => {
  expect(problemsWith('version: 1.0')).toEqual([
    expect.stringMatching(/upstream\.version: must be "1\.0" or "1\.1", in quotes/),
  ])
})
