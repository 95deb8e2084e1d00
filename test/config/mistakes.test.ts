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
]

it.each(MISTAKES)('H103 %s is told with its line and what to write', (_mistake, file, ...problems) => {
  expect(problemsIn({ file })).toEqual(problems)
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
