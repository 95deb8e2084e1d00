import fc from 'fast-check'
import { ACCESS } from './case.ts'

const METHODS =
  'GET GET GET POST POST PUT HEAD DELETE OPTIONS PATCH PROPFIND M-SEARCH TRACE CONNECT QUERY'.split(' ')

const TARGETS = [
  ...[
    '/',
    '/a',
    '/a/b?c=d',
    '//a',
    '/a/../b',
    '/%2e%2e/a',
    '/a%2Fb',
    '/a%zz',
    '/a;b=c',
    '/a\\b',
    '/~x',
    '/a?x=%0d%0a',
  ],
  ...['/oauth/token/', '//oauth/token', '/oauth/%74oken', '/oauth/token?x', '/OAUTH/token', '/oauth/token;x'],
  ...[
    '/oauth/token',
    '*',
    'http://x/abs',
    'HTTP://x',
    'http://y/other',
    'x:80',
    '/a#b',
    '/a b',
    '',
    'a',
    `/${'l'.repeat(900)}`,
  ],
]

const FIELDS = [
  ...[
    'Accept: */*',
    'X-Empty:',
    'X-Blank: \t ',
    'X-8bit: caf\xe9',
    'Cookie: a=1',
    'Cookie: b=2',
    'X-Quote: "a, b"',
  ],
  ...[
    'Content-Length: 0',
    'Content-Length: 3',
    'Content-Length: +3',
    'Content-Length: 3, 3',
    'Content-Length: 0x3',
  ],
  ...[
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: ,chunked',
    'TE: trailers',
  ],
  ...[
    'Transfer-Encoding: identity',
    'Transfer-Encoding:\tchunked',
    'transfer-encoding: CHUNKED',
    'Content_Length: 3',
  ],
  ...[
    'Connection: close',
    'Connection: keep-alive',
    'Connection: x-a, authorization',
    'Connection: content-length',
  ],
  ...[
    'Expect: 100-continue',
    'Expect: 100-Continue',
    'Expect: 200-ok',
    'Keep-Alive: timeout=1',
    'Trailer: X-T',
  ],
  ...['Upgrade: websocket\r\nConnection: Upgrade', 'Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings'],
  ...['Upgrade: h2c, WebSocket\r\nConnection: Upgrade', 'Upgrade: TLS/1.2\r\nConnection: Upgrade'],
  ...[
    'Host: y',
    'Host: x',
    'Host: a b',
    'Host: a@b',
    'Host: [::1]:80',
    'X-Forwarded-For: 192.0.2.1',
    'X_Forwarded_For: 1',
  ],
  ...[
    'Forwarded: for=1',
    'Via: 1.0 x',
    'Proxy-Authorization: Basic eA==',
    'Range: bytes=0-1',
    '__proto__: x',
    'X-A : b',
  ],
  ...[
    ' folded',
    'no colon',
    ': no name',
    'X-Nul: a\0b',
    'X-CR: a\rX-Evil: 1',
    'X-LF: a\nX-Evil: 1',
    `X-Long: ${'v'.repeat(3000)}`,
  ],
]

/** A live token, another credential, or none. */
const credentials: fc.Arbitrary<string> = fc.oneof(
  { weight: 6, arbitrary: fc.constant(`Authorization: Bearer ${ACCESS}`) },
  { weight: 2, arbitrary: fc.constantFrom('', 'Authorization: Bearer x', 'Authorization: Basic eA==') },
  { weight: 1, arbitrary: fc.constant(`Authorization: Bearer ${ACCESS}\r\nAuthorization: Bearer x`) },
)

const name = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}$/)
const field = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...FIELDS) },
  { weight: 1, arbitrary: fc.tuple(name, fc.stringMatching(/^[ -~]{0,20}$/)).map(([n, v]) => `X${n}: ${v}`) },
)

const BODIES: readonly string[] = [
  ...['', '', '', 'abc', 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n'],
  ...['3\r\nabc\r\n0\r\n\r\n', '0\r\n\r\n', '3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n', '3;a=b\r\nabc\r\n0\r\n\r\n'],
]

/** Requests: mostly valid, often odd. */
export const requestText: fc.Arbitrary<string> = fc
  .record({
    empty: fc.oneof(
      { weight: 6, arbitrary: fc.constant('') },
      fc.constantFrom('\r\n', '\r\n\r\n', '\r\n'.repeat(9)),
    ),
    method: fc.constantFrom(...METHODS),
    target: fc.oneof({ weight: 2, arbitrary: fc.constant('/plain') }, fc.constantFrom(...TARGETS)),
    version: fc.constantFrom('1.1', '1.1', '1.1', '1.1', '1.1', '1.0', '2.0', '1.2', '0.9'),
    host: fc.constantFrom('Host: x', 'Host: x', 'Host: x', 'Host: x', 'host:x', ''),
    credentials,
    fields: fc.array(field, { maxLength: 3 }),
    body: fc.constantFrom(...BODIES),
  })
  .map(({ empty, method, target, version, host, credentials, fields, body }) => {
    const lines = [host, credentials, ...fields].filter((line) => line !== '')
    return `${empty}${[`${method} ${target} HTTP/${version}`, ...lines].join('\r\n')}\r\n\r\n${body}`
  })
