import fc from 'fast-check'

const statusLine = fc.oneof(
  { weight: 6, arbitrary: fc.constant('HTTP/1.1 200 OK') },
  fc.constantFrom(
    ...[
      'HTTP/1.1 404 Not Found',
      'HTTP/1.0 200 OK',
      'HTTP/1.1 204 No Content',
      'HTTP/1.1 304 Not Modified',
      'HTTP/1.1 200 ',
    ],
    ...[
      'HTTP/1.1 200',
      'HTTP/1.1 500 Oops',
      'HTTP/1.1 299 x',
      'HTTP/1.1 600 x',
      'HTTP/1.1 999 x',
      'HTTP/1.1 099 x',
    ],
    ...[
      'HTTP/1.1 101 Switching Protocols',
      'HTTP/1.1 206 Part',
      'HTTP/1.1 401 No',
      'HTTP/1.1 429 Slow',
      'HTTP/1.1 20 x',
    ],
    ...[
      'HTTP/2.0 200 OK',
      'ICY 200 OK',
      'HTTP/1.1 200 Verf\xfcgbar',
      'HTTP/1.1  200 OK',
      'HTTP/1.1 2000 OK',
      'http/1.1 200 OK',
    ],
  ),
)
const interim = fc.constantFrom(
  ...[
    '',
    '',
    '',
    '',
    'HTTP/1.1 100 Continue\r\n\r\n',
    'HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n',
    'HTTP/1.1 102 x\r\n\r\n',
  ],
)
const field = fc.constantFrom(
  ...[
    'Content-Type: text/plain',
    'Set-Cookie: a=1',
    'Set-Cookie: b=2',
    'X-A:',
    'X-A: caf\xe9',
    'Connection: close',
    'X-A : b',
  ],
  ...[
    'Connection: keep-alive',
    'Connection: x-a',
    'Keep-Alive: timeout=1',
    'Upgrade: websocket\r\nConnection: Upgrade',
  ],
  ...[
    'X-RateLimit-Limit: 5',
    'Retry-After: 7',
    'WWW-Authenticate: Basic realm="x"',
    'Location: /a',
    'Via: 1.0 x',
    'TE: x',
  ],
  ...[
    'Content-Length: 5',
    'Content-Length: 5, 5',
    'Transfer-Encoding: gzip',
    'Transfer-Encoding: chunked',
    ' folded',
    ': x',
  ],
  ...[
    'no colon',
    `X-Long: ${'v'.repeat(9000)}`,
    'X-CR: a\rX-Evil: 1',
    'X-Nul: a\0b',
    'Proxy-Authenticate: x',
    'Trailer: X-T',
  ],
)
const data = fc.oneof(
  fc.constantFrom('', 'hello', 'the whole body', 'x'.repeat(70_000)),
  fc.stringMatching(/^[ -~]{0,30}$/),
)

const framed = fc.oneof(
  { weight: 4, arbitrary: data.map((body) => ({ field: `Content-Length: ${body.length}`, body })) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(
        fc.array(
          data.filter((each) => each !== ''),
          { maxLength: 3 },
        ),
        fc.constantFrom('', 'X-T: 1\r\n', ';x'),
      )
      .map(([pieces, trailer]) => ({
        field: 'Transfer-Encoding: chunked',
        body: `${pieces.map((each) => `${each.length.toString(16)}\r\n${each}\r\n`).join('')}0${
          trailer === ';x' ? ';x\r\n' : `\r\n${trailer}`
        }\r\n`,
      })),
  },
  { weight: 2, arbitrary: data.map((body) => ({ field: 'X-Framing: none', body })) },
  {
    weight: 1,
    arbitrary: fc.tuple(data, fc.integer({ min: -3, max: 3 })).map(([body, off]) => ({
      field: `Content-Length: ${Math.max(0, body.length + off)}`,
      body,
    })),
  },
)

/** Responses of a device: mostly valid, often odd. */
export const deviceResponse: fc.Arbitrary<string> = fc
  .record({
    interim,
    statusLine,
    fields: fc.array(field, { maxLength: 2 }),
    framed,
    missing: fc.constantFrom(0, 0, 0, 0, 0, 1, 2, 3, 5, 8),
  })
  .map(({ interim, statusLine, fields, framed, missing }) => {
    const lines = [statusLine, 'Server: old', framed.field, ...fields]
    const body = framed.body.slice(0, Math.max(0, framed.body.length - missing))
    return `${interim}${lines.join('\r\n')}\r\n\r\n${body}`
  })
