import fc from 'fast-check'
import { ACCESS } from '../case.ts'
import { inPieces, mutated } from '../mutation.ts'
import { playRequests } from '../requests.ts'
import { CLEARTEXT, ENCRYPTED, type Target } from '../target.ts'
import { endings } from './heads.ts'

const size = (length: number): fc.Arbitrary<string> => {
  const hex = length.toString(16)
  return fc.oneof(
    { weight: 8, arbitrary: fc.constant(hex) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        ...[
          `0${hex}`,
          `00000000${hex}`,
          hex.toUpperCase(),
          `0x${hex}`,
          ` ${hex}`,
          `${hex} `,
          `+${hex}`,
          `-${hex}`,
        ],
        ...[
          '',
          'g',
          'ffffffffffffffff',
          '7fffffffffffffff',
          `${hex};a=b`,
          `${hex};a="b\\"c"`,
          `${hex};\n`,
          `${hex}\t;a`,
        ],
      ),
    },
  )
}

const lineEnd = fc.oneof(
  { weight: 20, arbitrary: fc.constant('\r\n') },
  fc.constantFrom('\n', '\r', '\r\r\n', ''),
)

const chunk = fc
  .oneof(fc.stringMatching(/^[ -~]{0,40}$/), fc.constant('x'.repeat(3000)), fc.constant('GET / HTTP/1.1\r\n'))
  .chain((data) => fc.tuple(size(data.length), lineEnd, fc.constant(data), lineEnd))
  .map((parts) => parts.join(''))

const lastChunk = fc.constantFrom(
  '0\r\n\r\n',
  '0\r\n\r\n',
  '000\r\n\r\n',
  '0;x\r\n\r\n',
  '0\r\nX-T: 1\r\n\r\n',
  '',
)

const upload = fc
  .record({
    target: fc.constantFrom('/upload', '/upload', '/oauth/token'),
    token: fc.constantFrom(ACCESS, ACCESS, ACCESS, 'x'),
    fields: fc.constantFrom('', 'Expect: 100-continue\r\n', 'Connection: close\r\n', 'Trailer: X-T\r\n'),
    chunks: fc.array(chunk, { maxLength: 5 }),
    lastChunk,
    after: fc.constantFrom('', 'GET /after HTTP/1.1\r\nHost: x\r\n\r\n'),
  })
  .map(
    ({ target, token, fields, chunks, lastChunk, after }) =>
      `POST ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n${fields}` +
      `Transfer-Encoding: chunked\r\n\r\n${chunks.join('')}${lastChunk}${after}`,
  )

/** Chunked uploads, and requests that could be smuggled after them. */
export const chunks: Target = {
  name: 'chunks',
  settings: [CLEARTEXT, ENCRYPTED],
  cases: fc.record({ writes: inPieces(mutated(upload)), ending: endings }),
  async open(scenes) {
    const scene = await scenes.scripted()
    return async (item) => [...(await playRequests(scene, item)).faults]
  },
}
