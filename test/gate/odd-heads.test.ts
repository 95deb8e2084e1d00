import { expect, it } from 'vitest'
import { type ClassifyRules, classify } from '../../src/gate/classify.ts'
import type { Classified } from '../../src/http/admission.ts'
import { type HeadPart, requestHead } from '../support/request-head.ts'
import { rows } from '../support/rows.ts'

const RULES: ClassifyRules = {
  headerCaps: { maxHeaderSize: 16 * 1024, maxHeaderCount: 100 },
  revocationPath: undefined,
  browser: false,
  cors: undefined,
}

const classified = (part: HeadPart): Classified => classify(requestHead(part), RULES)

it.each(rows`
  ∅
  ␣
  a b
  a,b
  a/b
  a?b
  a#b
  a@b
  u:p@device
  a\\b
  http://device
  %zz
  "a"
  <a>
  [::1
  ::1
  [x]
  [::1]x
  a:b
  a:1:2
  a:-1
  a:99999999
  a\xe4
  a\tb
  a|b
  a^b
  []`)('H20 a Host of %j is malformed, in each HTTP version and also beside an authority', (host) => {
  const parts: readonly HeadPart[] = [
    { fields: ['Host', host] },
    { version: '1.0', fields: ['Host', host] },
    { version: '2', authority: 'device.example', fields: ['Host', host] },
    { version: '2', authority: host, fields: [] },
  ]
  for (const part of parts)
    expect(classified(part)).toMatchObject({ fault: { kind: 'malformed' }, ambiguous: true })
})

/** Paths that some parser reads as `/oauth/token`. */
const DISGUISES = rows`
  //oauth/token
  /oauth//token
  ///oauth///token
  /oauth/token/
  /oauth/token//
  /oauth/token/.
  /./oauth/token
  /oauth/./token
  /x/../oauth/token
  /oauth/x/../token
  /oauth/token/x/..
  /../oauth/token
  /%2e/oauth/token
  /oauth/%2e/token
  /x/%2e%2e/oauth/token
  /oauth/x/.%2e/token
  /x/%2E./oauth/token
  /%6fauth/token
  /%6Fauth/token
  /oauth/%74oken
  /oauth/toke%6e
  /%6f%61%75%74%68/%74%6f%6b%65%6e
  /oauth%2ftoken
  /oauth%2Ftoken
  /%2foauth/token
  /oauth/token%2f
  /%256fauth/token
  /oauth/%2574oken
  /oauth%252ftoken
  /x/%252e%252e/oauth/token
  /oauth\\token
  /\\oauth/token
  /oauth/token\\
  /oauth%5ctoken
  /x\\..\\oauth/token
  /oauth/token;x
  /oauth/token;
  /oauth;x/token
  /oauth/token;jsessionid=1
  /;/oauth/token
  /x/..;/oauth/token
  /oauth/token%23
  /oauth/token%3f
  /oauth/token%3Fx
  /oauth/token&
  /oauth/token,
  /oauth/token%00
  /oauth/token%00.js
  /oauth/token%20
  /oauth/token+
  /oauth/token%0a
  /oauth/token%0d%0a
  /OAuth/Token
  /OAUTH/TOKEN
  /oauth/Token
  /oauth/token.
  /oauth/token.json
  /oauth/token~
  /oauth/token:
  /%c0%afoauth/token
  /oauth%c0%aftoken
  /oauth/%u0074oken
  /oauth/toke%ef%bd%8e
  /oauth/tok%65n%zz
  /api/../oauth/token
  /x?/../oauth/token
  /?/oauth/token
  /oauth
  /oauth/
  /oauth/tokens
  /oauth/tok
  /`

it.each(DISGUISES)('H24 C1 %s is a path of the device, byte for byte', (target) => {
  for (const version of ['1.1', '2'] as const)
    expect(classified({ version, target })).toMatchObject({ target, endpoint: 'api', fault: undefined })
})

it.each(rows`
  %2foauth/token
  \\oauth\\token
  /oauth/token#
  /oauth/token#f
  /oauth/token#x
  /a#b
  /#
  /\xe9
  /\xff
  /x\x80
  /oauth/token\xa0
  /\xff\xfe
  ∅
  x
  *
  ?x
  ?
  #
  .
  \\
  x/y
  ../x
  /x#
  /x\\y#
  /a b
  /oauth/token␣
  \t/
  /a\tb
  /a\x7fb`)('H27 the target %j is no path in any HTTP version', (target) => {
  for (const version of ['1.1', '2'] as const)
    expect(classified({ version, target })).toMatchObject({ fault: { kind: 'malformed' }, ambiguous: true })
})

const DEVICE = ['Host', 'device']

it.each([
  ['http://device/a?b', '/a?b'],
  ['HTTP://DEVICE/a', '/a'],
  ['https://device/a//b', '/a//b'],
  ['http://device', '/'],
  ['http://device?a=/b', '/?a=/b'],
  ['http://device/http://other/', '/http://other/'],
  ['http://device//other/', '//other/'],
  ['http://device//oauth/token', '//oauth/token'],
  ['//other/a', '//other/a'],
])('H25 the target %s is read as %s', (target, path) => {
  const found = classified({ target, fields: DEVICE })
  expect(found).toMatchObject({ target: path, endpoint: 'api', host: 'device', fault: undefined })
})

it.each(rows`
  http://other/
  http://device:81/
  http://device.evil/
  http://u@device/
  http://u:p@device/
  http://device@other/
  http://device%00/
  http://device\\@other/
  http:///
  http:/device/
  http:device
  http://
  http://?
  http://#
  ftp://device/
  file:///etc/passwd
  gopher://device/
  ws://device/
  javascript:1
  device:80
  device
  http://device/#f
  http://device#f
  http://[::1/
  http://device/\xe9
  http://device\xe9/
  http://dev ice/`)('H25 the target %j is malformed', (target) => {
  expect(classified({ target, fields: DEVICE })).toMatchObject({
    fault: { kind: 'malformed' },
    ambiguous: true,
  })
})

/** The bytes of a field name that are no letter or digit (RFC 9110 §5.6.2). To a CGI program each is a `_`. */
const PUNCTUATION = [..."!#$%&'*+-.^_`|~"]

it.each([
  ...['X-Forwarded-For', 'X-Forwarded-Proto', 'X-Forwarded-Host', 'X-Forwarded-Anything', 'X-Real-IP'],
  ...['X-Request-Id', 'Content-Length', 'Transfer-Encoding'],
  // Fields of one hop, which Postern removes.
  ...['Keep-Alive', 'Proxy-Authorization', 'Proxy-Connection', 'HTTP2-Settings'],
])('H18 a twin of %s in any punctuation and case is malformed', (name) => {
  const mixed = [name.replace('-', '.').toUpperCase(), name.replace(/-(?!.*-)/, '~')]
  const twins = PUNCTUATION.filter((byte) => byte !== '-').map((byte) => name.replaceAll('-', () => byte))
  for (const twin of [...twins, ...mixed, name.replaceAll('-', '_').toLowerCase()])
    expect(classified({ fields: [...DEVICE, twin, '5'] }), twin).toMatchObject({
      fault: { kind: 'malformed' },
      ambiguous: true,
    })
})

it('H18 a name that only looks like a guarded one is none of its twins, and neither is the guarded name', () => {
  const names = [
    'X-Real-IP',
    'XRealIP',
    'X_Real',
    'X.Real.IPs',
    'X_Forwarded',
    'Contentlength',
    'Prox_y',
    '~',
  ]
  for (const name of names) expect(classified({ fields: [...DEVICE, name, '5'] }).fault, name).toBeUndefined()
})

it('H27 a target in absolute form is no path in HTTP/2', () => {
  expect(classified({ version: '2', target: 'http://device.example/' }).fault?.kind).toBe('malformed')
})
