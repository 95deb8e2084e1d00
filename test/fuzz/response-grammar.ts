import fc from 'fast-check'
import { among, BODIES, row, ruling } from '../listen/http1-messages.ts'
import { deviceResponse } from './device-grammar.ts'
import { mutated } from './mutation.ts'

/** Heads with arbitrary framing, and bodies that may fit them. */
const framedResponse = fc
  .record({
    interim: among('', '', '', 'HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 103 x\r\nLink: </a>\r\n\r\n'),
    version: among('1.1', '1.1', '1.0'),
    status: among('200 OK', '200 OK', '200 OK', '204 No', '304 Not', '404'),
    fields: row(ruling, 3),
    body: among(...BODIES),
  })
  .map(
    ({ interim, version, status, fields, body }) =>
      `${interim}HTTP/${version} ${status}\r\n${fields}\r\n${body}`,
  )

/** Violations of RFC 9112 in old firmware. The strict rules refuse them. */
const LOOSENINGS: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => text.replaceAll('\r\n', '\n'),
  (text) => text.replaceAll('\r\n', '\r\r\n'),
  (text) => text.replace('HTTP/', 'http/'),
  (text) => text.replace(': ', ' : '),
  (text) => text.replace(': ', ':\r\n '),
  (text) => text.replace(/content-length: (\d+)/i, 'Content-Length: $1\r\nContent-Length: $1'),
  (text) => text.replace(/transfer-encoding: chunked/i, 'Content-Length: 3\r\nTransfer-Encoding: chunked'),
  (text) => text.replace(/\r\n([0-9a-f]+)\r\n/, '\r\n $1 \r\n'),
]

/** Responses of devices, some with violations of old firmware, and damaged. */
export const responseText: fc.Arbitrary<string> = mutated(
  fc
    .tuple(
      fc.oneof(deviceResponse, framedResponse),
      fc.constantFrom(LOOSENINGS[0], LOOSENINGS[0], ...LOOSENINGS).filter((loosen) => loosen !== undefined),
    )
    .map(([text, loosen]) => loosen(text)),
)
