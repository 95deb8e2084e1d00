import { expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { MINIMAL, problemsIn } from './sources.ts'

const DEVICE = 'upstream: {url: "http://127.0.0.1:8080"}\n'
const PASSWORD = 'password: {file: x}\n'

/** What operators get wrong, and what they are told. */
const MISTAKES: readonly (readonly [mistake: string, file: string, ...problems: string[]])[] = [
  [
    'a key twice',
    `${MINIMAL}listen:\n  address: 127.0.0.1:1\n  address: 127.0.0.1:2\n`,
    'postern.yaml:5: the key address occurs twice in one mapping, first in line 4; keep one of the two (column 3)',
  ],
  [
    'an open bracket',
    `upstream: {url: http://h\n${PASSWORD}`,
    'postern.yaml:2: the indentation is wrong, or a bracket is not closed (column 1)',
  ],
  [
    'an anchor in a loop',
    'a: &a [*a]\n',
    'postern.yaml:1: a.0: contains itself; write the value out without an alias',
  ],
  [
    'a section that is its own part',
    `${PASSWORD}upstream: &u\n  url: http://h\n  headers: *u\n`,
    'postern.yaml:4: upstream.headers: contains itself; write the value out without an alias',
  ],
  [
    'a prefix that is too long',
    `${MINIMAL}listen: {trusted_proxies: [10.0.0.0/33, "fd00::/129", 10/8]}`,
    'postern.yaml:3: listen.trusted_proxies.0: must have at most 32 bits after the slash, not 33 (given: "10.0.0.0/33")',
    'postern.yaml:3: listen.trusted_proxies.1: must have at most 128 bits after the slash, not 129 (given: "fd00::/129")',
    'postern.yaml:3: listen.trusted_proxies.2: must be a CIDR such as 10.0.0.0/8 or fd00::/8, a single address, or unix (given: "10/8")',
  ],
  [
    'a port that is too high',
    `${PASSWORD}upstream: {url: "http://h:99999"}\nlisten: {address: "127.0.0.1:99999"}\nadmin: {address: "[::1]:100000"}`,
    'postern.yaml:3: listen.address: must have a port from 0 to 65535, not 99999 (given: "127.0.0.1:99999")',
    'postern.yaml:4: admin.address: must have a port from 0 to 65535, not 100000 (given: "[::1]:100000")',
    'postern.yaml:2: upstream.url: must have a port from 1 to 65535, not 99999 (given: "http://h:99999")',
  ],
  [
    'text that YAML reads as a number',
    `${MINIMAL}realm: 0123`,
    'postern.yaml:3: realm: must be text without control characters; put it in quotes (given: 123)',
  ],
  [
    'a limit of 0',
    `${MINIMAL}limits: {oauth: {requests: 0}}`,
    'postern.yaml:3: limits.oauth.requests: must be a whole number from 1 to 1000000000; to lift the limit, write 1000000000 (given: 0)',
  ],
  [
    'the password itself',
    `${DEVICE}password: hunter2`,
    'postern.yaml:2: password: must have exactly one of file, htpasswd, shadow, device; such as {file: /etc/postern/password}, a file with one line, the password or its hash',
  ],
  [
    'a misspelt section',
    `upsteam: {url: http://h}\n${PASSWORD}`,
    'postern.yaml:1: upsteam: unknown key; did you mean upstream?',
  ],
  [
    'a misspelt key',
    `upstream: {ulr: http://h}\n${PASSWORD}`,
    'postern.yaml:1: upstream.ulr: unknown key; did you mean upstream.url?',
  ],
  [
    'the URL of the store in its section',
    `${MINIMAL}store: {url: valkey://h}`,
    'postern.yaml:3: store.url: unknown key; did you mean tokens.store?',
  ],
  [
    'a port alone',
    `${MINIMAL}listen: {port: 8443}`,
    'postern.yaml:3: listen.port: unknown key; did you mean listen.address?',
  ],
  [
    'a key with dots',
    `${MINIMAL}limits.wrong_passwords: slow`,
    'postern.yaml:3: limits.wrong_passwords: a key of the file has no dots; write limits: {wrong_passwords: "slow"}',
  ],
  [
    'a key with dots, although its section is there',
    `${MINIMAL}limits:\n  api: {window: 1m}\nlimits.api.requests: 5`,
    'postern.yaml:5: limits.api.requests: a key of the file has no dots; write requests: 5 below limits.api',
  ],
  [
    'keys with dots in place of whole sections, one of them a secret',
    'upstream.url: http://h\npassword.file: x',
    'postern.yaml:1: upstream.url: a key of the file has no dots; write upstream: {url: http://h}',
    'postern.yaml:2: password.file: a key of the file has no dots; write password: {file: ...}',
  ],
  [
    'a misspelt key with dots',
    `${MINIMAL}limits.wrong_password: slow`,
    'postern.yaml:3: limits.wrong_password: a key of the file has no dots; write limits: {wrong_passwords: "slow"}',
  ],
  [
    'a port alone, with dots',
    `${MINIMAL}listen.port: 8443`,
    'postern.yaml:3: listen.port: a key of the file has no dots; write listen: {address: ...}',
  ],
  [
    'a dot at the end of a section',
    `${MINIMAL}limits.: {}`,
    'postern.yaml:3: limits.: unknown key; did you mean limits?',
  ],
  [
    'dots for which nothing is near',
    `${MINIMAL}foo.bar: 1`,
    'postern.yaml:3: foo.bar: unknown key; deploy/configuration.md lists the known ones',
  ],
  [
    'a header with dots before it',
    `${MINIMAL}upstream.headers.X-Key: hunter2`,
    'postern.yaml:3: upstream.headers.X-Key: a key of the file has no dots; write headers: {X-Key: ...} below upstream',
  ],
  [
    'an IPv6 address without quotes',
    `${MINIMAL}listen:\n  address: [::1]:8443\n`,
    'postern.yaml:4: an IPv6 address in brackets needs quotes: write "[::1]:8443" (column 12)',
  ],
  [
    'an IPv6 address without quotes, in a mapping in one line',
    `${MINIMAL}admin: {address: [2001:db8::7]:9464}`,
    'postern.yaml:3: an IPv6 address in brackets needs quotes: write "[2001:db8::7]:9464" (column 18)',
  ],
  [
    'an IPv6 address without quotes and without a port',
    `${MINIMAL}listen: {address: [::1]}`,
    'postern.yaml:3: listen.address: must be host:port, [IPv6]:port, unix:/path or fd:3; put it in quotes, because a bracket begins a list',
  ],
  [
    'an IPv6 address without brackets',
    `${MINIMAL}listen: {address: "::1:8443"}`,
    'postern.yaml:3: listen.address: must be host:port, [IPv6]:port, unix:/path or fd:3; an IPv6 address needs brackets and a port, such as "[::1]:8443" (given: "::1:8443")',
  ],
  [
    'a key that is not indented',
    `${DEVICE}password:\nfile: x`,
    'postern.yaml:3: file: begins in the same column as password, whose key it is; indent it',
  ],
  [
    'a required key that is not indented',
    `upstream:\nurl: http://h\n${PASSWORD}`,
    'postern.yaml:2: url: begins in the same column as upstream, whose key it is; indent it',
  ],
  [
    'two keys that are not indented, deeper in the file',
    `${MINIMAL}listen:\n  tls:\n  cert: /x\n  key: /y`,
    'postern.yaml:5: listen.cert: begins in the same column as tls, whose key it is; indent it',
    'postern.yaml:6: listen.key: begins in the same column as tls, whose key it is; indent it',
  ],
  [
    'a misspelt word',
    `${PASSWORD}upstream: {url: "http://h", auth: {kind: digist, user: u, password: {file: x}}}`,
    'postern.yaml:2: upstream.auth.kind: must be one of basic, digest, session; did you mean digest?',
  ],
  [
    'a hash in place of the file that has it',
    `${DEVICE}password: {file: "$argon2id$v=19$m=1,t=1,p=1$c2FsdA$aGFzaA"}`,
    'postern.yaml:2: password.file: must be the path of a file with the hash, not the hash itself',
  ],
  [
    'the same with names',
    `${DEVICE}passwords: [{name: a, file: "$2b$12$abc"}]`,
    'postern.yaml:2: passwords.0.file: must be the path of a file with the hash, not the hash itself',
  ],
  ...(
    [
      ['an indentation', 'limits:\n\u00a0 wrong_passwords: slow', 4, 1, 'a no-break space (U+00A0)'],
      [
        'an indentation, behind a blank',
        'limits:\n \u00a0wrong_passwords: slow',
        4,
        2,
        'a no-break space (U+00A0)',
      ],
      ['the place of the blank behind a colon', 'realm:\u00a0x', 3, 7, 'a no-break space (U+00A0)'],
      ['front of a mapping', 'limits:\u00a0{wrong_passwords: slow}', 3, 8, 'a no-break space (U+00A0)'],
      ['front of a value', 'realm: \u202fx', 3, 8, 'a narrow no-break space (U+202F)'],
      ['the end of a value', 'realm: x\u3000', 3, 9, 'an ideographic space (U+3000)'],
      ['front of a key', '\u200brealm: x', 3, 1, 'a zero-width space (U+200B)'],
      ['a line of its own', '\u00a0\nrealm: x', 3, 1, 'a no-break space (U+00A0)'],
    ] as const
  ).map(
    ([where, text, line, column, name]) =>
      [
        `an odd blank in ${where}`,
        `${MINIMAL}${text}\n`,
        `postern.yaml:${line}: ${name} stands here, which YAML takes for text; type a blank instead (column ${column})`,
      ] as const,
  ),
]

it.each(MISTAKES)('H103 %s is told with its line and what to write', (_mistake, file, ...problems) => {
  expect(problemsIn({ file })).toEqual(problems)
})

it('H103 an odd blank is taken as it is within a text, in quotes and in a comment', () => {
  const file = `${MINIMAL}# a\u00a0comment:\u00a0b\nrealm: Haus\u00a07\nbrowser: {login: "off"} # \u00a0`
  expect(loadConfig({ file: { path: 'postern.yaml', text: file }, env: {}, sets: [] }).realm).toBe(
    'Haus\u00a07',
  )
  const quoted = `${MINIMAL}realm: "\u00a0x"`
  expect(loadConfig({ file: { path: 'postern.yaml', text: quoted }, env: {}, sets: [] }).realm).toBe(
    '\u00a0x',
  )
})

it('H103 an odd blank in a value from outside the file is shown by its code', () => {
  expect(problemsIn({ file: MINIMAL, sets: ['limits.wrong_passwords=slow\u00a0'] })).toEqual([
    expect.stringMatching(/did you mean slow\? \(given: "slow\\u00a0"\)$/),
  ])
})

it('H103 brackets without end are refused, and not a stack', () => {
  expect(problemsIn({ file: '['.repeat(100_000) })).toEqual([
    expect.stringMatching(/^postern\.yaml:1: it is nested too deeply \(column \d+\)$/),
  ])
})

it('H103 an object that contains itself is refused, and not a stack', () => {
  const object: Record<string, unknown> = { upstream: { url: 'http://h' }, password: { file: 'x' } }
  object.upstream = object
  expect(() => loadConfig({ object, env: {}, sets: [] })).toThrow(
    'configuration: upstream: contains itself; write the value out without an alias',
  )
})
