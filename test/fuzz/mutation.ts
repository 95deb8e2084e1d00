import fc from 'fast-check'
import { ACCESS } from './case.ts'

/** One change to a text. `at` is a fraction of its length. */
type Mutation =
  | { readonly kind: 'set'; readonly at: number; readonly bytes: string }
  | { readonly kind: 'insert'; readonly at: number; readonly bytes: string }
  | { readonly kind: 'remove'; readonly at: number; readonly count: number }
  | { readonly kind: 'repeat'; readonly at: number; readonly count: number }

/** Bytes that make parsers disagree. */
const TROUBLE = [
  ...['\r\n', '\n', '\r', '\0', ' ', '\t', ':', ',', ';', '\r\n\r\n', '\n\n', '\r\r\n', '\r\n ', '0\r\n\r\n'],
  ...['\x80', '\xff', '\x0b', '\x0c', '\x1b', '\x7f', '%00', '%0d%0a', '..', '//', '?', '#', '"', '\\'],
  ...[
    'Transfer-Encoding: chunked\r\n',
    'Content-Length: 3\r\n',
    'X-Evil: 1\r\n',
    '\rX-Evil: 1',
    '\nX-Evil: 1\n',
  ],
  ...[
    'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
    '9'.repeat(20),
  ],
]

const place = fc.double({ min: 0, max: 1, noNaN: true })
const bytes = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...TROUBLE) },
  { weight: 1, arbitrary: fc.nat(255).map((code) => String.fromCharCode(code)) },
)

const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.record({ kind: fc.constant('set' as const), at: place, bytes }),
  fc.record({ kind: fc.constant('insert' as const), at: place, bytes }),
  fc.record({ kind: fc.constant('remove' as const), at: place, count: fc.integer({ min: 1, max: 8 }) }),
  fc.record({ kind: fc.constant('repeat' as const), at: place, count: fc.integer({ min: 1, max: 60 }) }),
)

function apply(text: string, change: Mutation): string {
  const at = Math.floor(change.at * text.length)
  switch (change.kind) {
    case 'set':
      return text.slice(0, at) + change.bytes + text.slice(at + change.bytes.length)
    case 'insert':
      return text.slice(0, at) + change.bytes + text.slice(at)
    case 'remove':
      return text.slice(0, at) + text.slice(at + change.count)
    case 'repeat':
      return text.slice(0, at + change.count) + text.slice(at)
  }
}

/** Texts of a grammar. More than half are damaged in up to three places. */
export function mutated(grammar: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(grammar, fc.oneof(fc.constant([]), fc.array(mutation, { minLength: 1, maxLength: 3 })))
    .map(([text, changes]) => changes.reduce(apply, text))
}

/** The text in one to three writes. */
export function inPieces(whole: fc.Arbitrary<string>): fc.Arbitrary<string[]> {
  return fc
    .tuple(whole, fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.array(place, { maxLength: 2 })))
    .map(([text, cuts]) => {
      const places = [
        0,
        ...cuts.map((cut) => Math.floor(cut * text.length)).sort((a, b) => a - b),
        text.length,
      ]
      return places.slice(1).map((end, i) => text.slice(places[i], end))
    })
    .map((pieces) => pieces.filter((piece, i) => i === 0 || piece !== ''))
}

/** An unknown token, as long as a live one. */
export const UNKNOWN_TOKEN: string = 'x'.repeat(ACCESS.length)

/** Removes the live tokens from a fourth of the texts: nothing of those may reach the device. */
export function oftenWithoutTokens(whole: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(whole, fc.nat(3))
    .map(([text, chance]) => (chance === 0 ? text.replaceAll(ACCESS, UNKNOWN_TOKEN) : text))
}
