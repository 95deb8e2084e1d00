import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { SetupError } from '../../src/system/setup-error.ts'
import { load, MINIMAL, problemsIn, problemsWith } from './sources.ts'

const PIN = `sha256/${Buffer.alloc(32, 1).toString('base64')}`
const NO_TLS = `upstream.tls.pin: must be left out unless upstream.url begins with https: without TLS there is no certificate (given: "${PIN}")`
const NO_PIN =
  'must be sha256/BASE64: the SHA-256 of the whole certificate, as postern check prints it (sha256// of curl is that of the key)'

const WITHOUT_PASSWORD = 'upstream: {url: "http://127.0.0.1:8080"}\n'
const WITHOUT_DEVICE = 'password: {file: x}\n'

describe('a problem', () => {
  it('is one line with the source, the key, the rule and the value', () => {
    expect(problemsWith('limits: {api: {requests: many}}')).toEqual([
      'postern.yaml:3: limits.api.requests: must be a whole number from 1 to 1000000000; to lift the limit, write 1000000000 (given: "many")',
    ])
    expect(problemsIn({ env: { POSTERN_LIMITS_API_REQUESTS: '0' } })).toEqual([
      'POSTERN_LIMITS_API_REQUESTS: limits.api.requests: must be a whole number from 1 to 1000000000; to lift the limit, write 1000000000 (given: 0)',
    ])
    expect(problemsIn({ sets: ['limits.api.requests=1.5'] })).toEqual([
      '--set: limits.api.requests: must be a whole number from 1 to 1000000000; to lift the limit, write 1000000000 (given: 1.5)',
    ])
  })

  it('H228 that is a missing blank behind a colon says so, not that the key is unknown', () => {
    expect(problemsWith('limits:{api: {requests: 5}}')).toEqual([
      expect.stringMatching(/^postern\.yaml:3: .*a blank is missing behind `limits:` \(column 8\)$/),
    ])
    expect(problemsWith('limits:\n  api:{requests: 5}')).toContainEqual(
      'postern.yaml:4: limits.api:{requests: unknown key; a blank is missing behind `api:`',
    )
    const only = 'upstream:\n  url:http://device\npassword: file:/p\nlisten: tls:off'
    expect(problemsIn({ file: only })).toEqual([
      expect.stringMatching(/^postern\.yaml:4: listen: .*a blank is missing behind `tls:`/),
      expect.stringMatching(/^postern\.yaml:1: upstream: .*a blank is missing behind `url:`/),
      expect.stringMatching(/^postern\.yaml:3: password: .*a blank is missing behind `file:`/),
    ])
    // Only a known key is quoted: another text may be a secret.
    expect(problemsIn({ file: 'upstream: other:x\npassword: {file: /p}' })).toEqual([
      'postern.yaml:1: upstream: must be a mapping of keys (given: "other:x")',
    ])
  })

  it('is reported together with all others', () => {
    expect(
      problemsIn({
        file: 'upstream: {url: device}\nlog: {level: loud}\nzone: 1\n',
        env: { POSTERN_REALM: 'a\tb', POSTERN_LOGS: '' },
        sets: ['nonsense'],
      }),
    ).toEqual([
      `postern.yaml:1: upstream.url: must be the device's address, such as http://127.0.0.1:8080, https://device or http+unix:/run/device.sock (given: "device")`,
      'POSTERN_REALM: realm: must be text without control characters, such as a line end or a tab (given: "a\\tb")',
      'postern.yaml:2: log.level: must be one of fatal, error, warn, info, debug, trace, silent (given: "loud")',
      'postern.yaml:3: zone: unknown key; deploy/configuration.md lists the known ones',
      'postern.yaml: password: is missing; it must have exactly one of file, htpasswd, shadow, device; such as {file: /etc/postern/password}, a file with one line, the password or its hash',
      'POSTERN_LOGS: unknown variable; did you mean POSTERN_LOG?',
      '--set: must be key=value, such as --set limits.api.requests=120',
    ])
  })

  it('is thrown in a SetupError with a line for each problem', () => {
    const error = catchError(() => load({ file: 'a: 1\nb: 2\n' }))
    expect(error).toBeInstanceOf(SetupError)
    expect(String(error).split('\n')).toHaveLength(4)
  })

  it('names no file if there is none', () => {
    const error = catchError(() => loadConfig({ env: {}, sets: [] }))
    expect(error).toHaveProperty('problems', [
      "upstream.url: is missing; it must be the device's address, such as http://127.0.0.1:8080",
      'password: is missing; it must have exactly one of file, htpasswd, shadow, device; such as {file: /etc/postern/password}, a file with one line, the password or its hash',
    ])
  })

  it('has line and column if the file is invalid YAML, and is reported without consequential problems', () => {
    expect(problemsIn({ file: 'upstream: [\n', sets: ['x=1'] })).toEqual([
      'postern.yaml:2: the indentation is wrong, or a bracket is not closed (column 1)',
      expect.stringMatching(/^--set: x: unknown key; /),
    ])
  })

  it('H103 has the line of its key, or of the section where a key is missing', () => {
    const file = [
      'upstream:',
      '  url: http://127.0.0.1:8080',
      '  routes:',
      '    /a/: &camera',
      '      url: device',
      'password: {file: x}',
      '',
      'listen:',
      '  tls:',
      '    cert: c.pem',
      '  trusted_proxies:',
      '    - unix',
      '    - everybody',
      'limits: {',
      '  api: {requests: 0} }',
      'admin: # of no use',
      '  adress: x',
      '? realm',
      ': ""',
    ].join('\n')
    const places = problemsIn({ file }).map((problem) => problem.split(': ').slice(0, 2).join(' '))
    expect(places).toEqual([
      'postern.yaml:9 listen.tls.key',
      'postern.yaml:13 listen.trusted_proxies.1',
      'postern.yaml:17 admin.adress',
      'postern.yaml:5 upstream.routes./a/.url',
      'postern.yaml:15 limits.api.requests',
      'postern.yaml:18 realm',
    ])
  })

  it('H103 of a value behind an alias has the line of the anchor, where the value stands', () => {
    const file = `${MINIMAL}limits:\n  api: &same\n    requests: 0\n  oauth: *same\n`
    expect(problemsIn({ file }).map((problem) => problem.split(': ', 2).join(' '))).toEqual([
      'postern.yaml:5 limits.api.requests',
      'postern.yaml:5 limits.oauth.requests',
    ])
  })

  it('names the file if it contains no mapping', () => {
    expect(problemsIn({ file: '- a' })).toEqual([
      'postern.yaml: must be a mapping of keys, such as "upstream: {url: http://127.0.0.1:8080}"',
    ])
  })

  it('names the nearest known key for an unknown one', () => {
    expect(problemsWith('limits: {api: {request: 1}}')).toEqual([
      'postern.yaml:3: limits.api.request: unknown key; did you mean limits.api.requests?',
    ])
    expect(problemsIn({ sets: ['limits.api.request=1'] })).toEqual([
      '--set: limits.api.request: unknown key; did you mean limits.api.requests?',
    ])
    expect(problemsIn({ env: { POSTERN_LIMITS: '{apis: 1}' } })).toEqual([
      'POSTERN_LIMITS: limits.apis: unknown key; did you mean limits.api?',
    ])
    expect(problemsWith('listen: {tls: {cert: a, key: b, ca: c}}')).toEqual([
      expect.stringMatching(/^postern\.yaml:3: listen\.tls\.ca: unknown key; /),
    ])
  })
})

describe('a value', () => {
  it.each([
    [
      'listen: {address: 8443}',
      'listen.address: must be host:port, [IPv6]:port, unix:/path or fd:3 (given: 8443)',
    ],
    [
      'listen: {tls: no}',
      'listen.tls: must be auto, off, {cert: file, key: file} or {names: [name, ...]} (given: "no")',
    ],
    ['listen: {tls: {cert: a}}', 'listen.tls.key: is missing; it must be a path'],
    ['listen: {tls: {names: []}}', 'listen.tls.names: must hold at least one DNS name or IP address'],
    [
      'listen: {tls: {names: [a.example, https://b.example]}}',
      'listen.tls.names.1: must be a DNS name, such as device.example or *.device.example, or an IP address (given: "https://b.example")',
    ],
    [
      'listen: {tls: {names: [a.example], cert: a, key: b}}',
      'listen.tls.cert: must not be set together with names; keep one of the two (given: "a")',
    ],
    [
      'listen: {trusted_proxies: 10.0.0.0/8}',
      'listen.trusted_proxies: must be a list of CIDRs, addresses or `unix` (given: "10.0.0.0/8")',
    ],
    [
      'listen: {trusted_proxies: [10.0.0.0/33]}',
      'listen.trusted_proxies.0: must have at most 32 bits after the slash, not 33 (given: "10.0.0.0/33")',
    ],
    [
      'listen: {memory: 100}',
      'listen.memory: must be auto, or a size from 1MiB to 1024GiB, in bytes or such as 8KiB or 1MiB (given: 100)',
    ],
    [
      'listen: {memory: 8KB}',
      'listen.memory: must be a size: a number of bytes, or 8KiB, 1MiB (given: "8KB")',
    ],
    [
      'listen: {idle_timeout: 0}',
      'listen.idle_timeout: must be a duration from 1ms to 1d, such as 500ms, 10s, 5m, 1h or 7d (given: 0)',
    ],
    [
      'listen: {idle_timeout: soon}',
      'listen.idle_timeout: must be a duration: a number of seconds, or 500ms, 10s, 5m, 1h, 7d (given: "soon")',
    ],
    [
      'listen: {idle_timeout: [1]}',
      'listen.idle_timeout: must be a duration from 1ms to 1d, such as 500ms, 10s, 5m, 1h or 7d',
    ],
    ['listen: 5', 'listen: must be a mapping of keys (given: 5)'],
    [
      'admin: {address: false}',
      'admin.address: must be host:port, [IPv6]:port, unix:/path or fd:3, or off (given: false)',
    ],
    ['tokens: {rotate_refresh: yes}', 'tokens.rotate_refresh: must be true or false (given: "yes")'],
    ['log: {access: writes}', 'log.access: must be true, false or changes (given: "writes")'],
    ['tokens: {capacity: 1}', 'tokens.capacity: must be a whole number from 2 to 10000000 (given: 1)'],
    ['tokens: {access_lifetime: 1500ms}', 'tokens.access_lifetime: must be whole seconds (given: "1500ms")'],
    [
      'limits: {api: {window: 2d}}',
      'limits.api.window: must be a duration from 1s to 1d, such as 500ms, 10s, 5m, 1h or 7d (given: "2d")',
    ],
    ['limits: {api: {window: 500ms}}', 'limits.api.window: must be whole seconds (given: "500ms")'],
    ['state_dir: ""', 'state_dir: must be a path (given: "")'],
    ['state_dir: "a\\0b"', 'state_dir: must not contain control characters (given: "a\\u0000b")'],
    ['state_dir: "a\\nb"', 'state_dir: must not contain control characters (given: "a\\nb")'],
    ['admin: {password_file: "/a\\e[2J"}', 'admin.password_file: must not contain control characters'],
    // It turns what follows around on a terminal, so a line reads as another one.
    ['admin: {password_file: "/a\\u202eb"}', 'admin.password_file: must not contain control characters'],
    [
      'realm: "a\\nb"',
      'realm: must be text without control characters, such as a line end or a tab (given: "a\\nb")',
    ],
    ['realm:', 'realm: must be text without control characters (given: null)'],
    [
      'status_codes: https',
      'status_codes: must be one of contract, http; did you mean http? (given: "https")',
    ],
  ])('%s is refused', (line, problem) => {
    expect(problemsWith(line)).toEqual([`postern.yaml:3: ${problem}`])
  })

  it.each([
    [
      'host: a b',
      'upstream.host: must be preserve, target, or a host such as device.local:8080 (given: "a b")',
    ],
    [
      'host: "[1.2.3.4]"',
      'upstream.host: must be preserve, target, or a host such as device.local:8080 (given: "[1.2.3.4]")',
    ],
    [
      'health: {path: status}',
      'upstream.health.path: must be a path that begins with / and contains no spaces, or null (given: "status")',
    ],
    ['health: {path: 5}', 'upstream.health.path: must be a path that begins with /, or null (given: 5)'],
    [
      'queue: {size: 1e20}',
      'upstream.queue.size: must be a whole number from 0 to 1000000 (given: 100000000000000000000)',
    ],
    [
      'share: {paths: [/status?x]}',
      'upstream.share.paths.0: must be a path such as /login, or /static/ for everything below it (given: "/status?x")',
    ],
    [
      'share: {paths: [/a/../b]}',
      'upstream.share.paths.0: must be a plain path, without dot segments, empty segments or escapes (given: "/a/../b")',
    ],
    ['queue: {size: -1}', 'upstream.queue.size: must be a whole number from 0 to 1000000 (given: -1)'],
    [
      'headers: {X: 1}',
      'upstream.headers.X: must be text (in quotes if it looks like a number), {file: path}, {client_name: true}, or null, which leaves the field out',
    ],
    ['headers: {X: {file: ""}}', 'upstream.headers.X.file: must be a path'],
    [
      'headers: {X: {fill: a}}',
      'upstream.headers.X: must be text (in quotes if it looks like a number), {file: path}, {client_name: true}, or null, which leaves the field out',
    ],
    ['headers: [X]', 'upstream.headers: must be a mapping of names to values'],
    ['headers: {Host: a}', 'upstream.headers.Host: must not be set here; set upstream.host instead'],
    ['headers: {X: "a\\nb"}', 'upstream.headers.X: must not contain control characters or line ends'],
    [
      'headers: {X-Key: a, x_key: b}',
      'upstream.headers.X-Key: must be set only once; x_key is the same field',
      'upstream.headers.x_key: must be set only once; X-Key is the same field',
    ],
    [
      'headers: {X: a, x: b}',
      'upstream.headers.X: must be set only once; x is the same field',
      'upstream.headers.x: must be set only once; X is the same field',
    ],
    [
      'tls: {ca: a, insecure: true}',
      'upstream.tls.insecure: must be false if upstream.tls.ca is set, because upstream.tls.ca would be ignored (given: true)',
    ],
    [
      `tls: {pin: ${PIN}, insecure: true}`,
      'upstream.tls.insecure: must be false with pin, which accepts one certificate; keep pin (given: true)',
      NO_TLS,
    ],
    [
      `tls: {pin: ${PIN}, ca: a}`,
      'upstream.tls.ca: must be left out with pin, which accepts one certificate whatever its authority; keep one of the two (given: "a")',
      NO_TLS,
    ],
    [`tls: {pin: ${PIN}}`, NO_TLS],
    [
      `tls: {pin: "sha256 Fingerprint=${'01:'.repeat(31)}01"}`,
      `upstream.tls.pin: must be in Base64: write ${PIN} (given: "sha256 Fingerprint=${'01:'.repeat(13)}01…")`,
    ],
    ['tls: {pin: sha256/AAAA}', `upstream.tls.pin: ${NO_PIN} (given: "sha256/AAAA")`],
    [
      `tls: {pin: ${PIN.replace('/', '//')}}`,
      `upstream.tls.pin: ${NO_PIN} (given: "${PIN.replace('/', '//')}")`,
    ],
    [
      'tls: {max_version: TLSv1.1}',
      'upstream.tls.max_version: must be TLSv1.2 or TLSv1.3 without weak: true: OpenSSL speaks older versions only with weak signatures (given: "TLSv1.1")',
    ],
    ['tls: {groups: []}', 'upstream.tls.groups: must name at least one group, or be left out'],
    [
      'tls: {groups: ["P-256:P-384"]}',
      'upstream.tls.groups.0: must be the name of a group, such as X25519, P-256 or brainpoolP256r1 (given: "P-256:P-384")',
    ],
    [
      'tls: {groups: ["-X25519"]}',
      'upstream.tls.groups.0: must be the name of a group, such as X25519, P-256 or brainpoolP256r1 (given: "-X25519")',
    ],
    ...['DEFAULT', 'default', 'auto'].map((list) => [
      `tls: {groups: [P-256, ${list}]}`,
      `upstream.tls.groups.1: must be the name of one group, and ${list} stands for a list of OpenSSL or Node.js: leave groups out for the usual ones, or name each (given: "${list}")`,
    ]),
    ['tls: {cert: a}', 'upstream.tls.key: is missing; it must be a path, because cert is set'],
    ['tls: {key: a}', 'upstream.tls.cert: is missing; it must be a path, because key is set'],
    ['auth: on', 'upstream.auth: must be off, or a mapping with kind: basic, digest or session'],
    ['auth: {}', 'upstream.auth.kind: is missing; it must be one of basic, digest, session'],
    [
      'auth: {user: a, password: {file: b}}',
      'upstream.auth.kind: is missing; it must be one of basic, digest, session',
    ],
    [
      'auth: {kind: basic, check_path: x, session: {login: {path: /l}}}',
      'upstream.auth.check_path: must be a path that begins with / and contains no spaces',
    ],
    [
      'auth: {kind: basic, password: {file: b}, session: {login: {path: /l}}}',
      'upstream.auth.session: must be left out with kind: basic',
      'upstream.auth.user: is missing; it must be a user name',
    ],
    [
      'auth: {kind: "form", password: {file: b}, form: {path: /l}}',
      'upstream.auth.kind: must be one of basic, digest, session',
      'upstream.auth.form: unknown key; did you mean upstream.auth.session.login.form?',
    ],
    ['auth: {kind: session}', 'upstream.auth.session: is missing; it must be a mapping with login'],
    ['auth: {kind: digest, user: a}', 'upstream.auth.password.file: is missing; it must be a path'],
    ['auth: {kind: basic, password: {file: b}}', 'upstream.auth.user: is missing; it must be a user name'],
    [
      'auth: {kind: basic, user: "a:b", password: {file: b}}',
      'upstream.auth.user: must not contain a colon, which ends the user name in credentials, or control characters',
    ],
    ['auth: {kind: session, password: hunter2}', 'upstream.auth.password: must be a mapping of keys'],
    [
      'headers: {authorization: x}, auth: {kind: digest, user: a, password: {file: b}}',
      'upstream.headers.authorization: must not be set together with upstream.auth, which writes that field',
    ],
    [
      'headers: {x-token: x}, auth: {kind: session, session: {login: {path: /l}, token: {json: /t}, send: {header: X-Token}}}',
      'upstream.headers.x-token: must not be set together with upstream.auth, which writes that field',
    ],
    [
      'auth: {kind: session, session: {login: {path: /l}, token: {json: /t}}}',
      'upstream.auth.session.send.header: is missing; it must be the field in which requests carry the token',
    ],
    [
      'auth: {kind: session, session: {login: {path: /l}, send: {header: T}}}',
      'upstream.auth.session.token: is missing; it must have exactly one of header, cookie, json: send carries the token',
    ],
    [
      'auth: {kind: session, session: {}}',
      'upstream.auth.session.login.path: is missing; it must be a path that begins with /',
    ],
    [
      'auth: {kind: session, user: u, password: {file: p}, session: {login: {path: /l, form: {u: $User, p: $Password}}}}',
      'upstream.auth.session.login.form: must have $user as a value, because auth.user is set',
      'upstream.auth.session.login.form: must have $password as a value, because auth.password is set',
    ],
    [
      'auth: {kind: session, session: {login: {path: /l, json: {p: $password}, form: {u: $user}}}}',
      'upstream.auth.password.file: is missing; it must be a path: the login contains $password',
      'upstream.auth.session.login.form: must not be set together with json; keep one of the two',
      'upstream.auth.user: is missing; it must be a user name: the login contains $user',
    ],
    [
      'auth: {kind: session, session: {login: {path: /l}, token: {json: session/id}, send: {header: Host}, expired: [200]}}',
      'upstream.auth.session.token.json: must be a JSON Pointer (RFC 6901), such as /session/id',
      'upstream.auth.session.send.header: must not be set here; set upstream.host instead',
      'upstream.auth.session.expired.0: must be a whole number from 400 to 499',
    ],
    [
      'auth: {kind: session, session: {login: {path: /l}, token: {cookie: a b}, logout: {path: x}}}',
      'upstream.auth.session.token.cookie: must be the name of a cookie (RFC 6265)',
      'upstream.auth.session.logout.path: must be a path that begins with / and contains no spaces',
    ],
    ...['"T:"', '"T: x"', '"T: $token $token"', '"T: é $token"', '": $token"'].map((written) => [
      `auth: {kind: session, session: {login: {path: /l}, token: {json: /t}, send: {header: ${written}}}}`,
      `upstream.auth.session.send.header: must be the name of a header field, or the field such as "Authorization: Bearer $token"`,
    ]),
    ...['Cookie', '"cookie: $token"', '"Cookie: a b=$token"', '"Cookie: a=$token; b=c"'].map((written) => [
      `auth: {kind: session, session: {login: {path: /l}, token: {json: /t}, send: {header: ${written}}}}`,
      `upstream.auth.session.send.header: must name the cookie, such as "Cookie: NAME=$token"`,
    ]),
  ])('upstream: {%s} is refused', (key = '', ...problems) => {
    const file = MINIMAL.replace('"}', `", ${key}}`)
    expect(problemsIn({ file })).toEqual(problems.map((problem) => `postern.yaml:1: ${problem}`))
  })

  it.each([
    [
      'public_paths: [{path: /static/, signed_in: true}]',
      'public_paths.0.path: must not end with a slash if it is signed in: everything below it would be open under the account of upstream.auth (given: "/static/")',
    ],
    [
      'public_paths: [{path: /x, signed_in: false}]',
      'public_paths.0.signed_in: must be true; write a path that is not signed in as text (given: false)',
    ],
    [
      'public_paths: [{path: x, signed_in: true}]',
      'public_paths.0.path: must be a path such as /login, or /static/ for everything below it (given: "x")',
    ],
    [
      'public_paths: [7]',
      'public_paths.0: must be a path such as /login, or /static/ for everything below it, or {path: /index.html, signed_in: true} (given: 7)',
    ],
    [
      'public_paths: [{path: /x, signed_in: true}]',
      'public_paths.0.signed_in: must be left out without upstream.auth (given: true)',
    ],
  ])('%s is refused', (line, problem) => {
    expect(problemsIn({ file: `${MINIMAL}${line}\n` })).toEqual([`postern.yaml:3: ${problem}`])
  })

  it.each([
    [
      'password: {}',
      'password: must have exactly one of file, htpasswd, shadow, device; such as {file: /etc/postern/password}, a file with one line, the password or its hash',
    ],
    [
      'password:',
      'password: must have exactly one of file, htpasswd, shadow, device; such as {file: /etc/postern/password}, a file with one line, the password or its hash',
    ],
    [
      'password: {file: a, htpasswd: {file: b, user: c}}',
      'password.htpasswd: must not be set together with file; keep one of the two',
    ],
    ['password: {htpasswd: {file: b}}', 'password.htpasswd.user: is missing; it must be a user name'],
    [
      'password: {shadow: {file: b, user: "a:b"}}',
      'password.shadow.user: must not contain a colon, which ends the user name in such a file',
    ],
  ])('%s is refused', (line, problem) => {
    expect(problemsIn({ file: `${WITHOUT_PASSWORD}${line}\n` })).toEqual([`postern.yaml:2: ${problem}`])
  })

  it('from two variables that exclude each other is reported with the name of a variable', () => {
    const env = {
      POSTERN_PASSWORD_FILE: 'a',
      POSTERN_PASSWORD_SHADOW_FILE: 'b',
      POSTERN_PASSWORD_SHADOW_USER: 'c',
    }
    expect(problemsIn({ env })).toEqual([
      'POSTERN_PASSWORD_SHADOW_USER: password.shadow: must not be set together with file; keep one of the two',
    ])
  })

  it('that is missing in a pair is reported with the source of the other half', () => {
    expect(problemsIn({ sets: ['listen.tls.cert=a'] })).toEqual([
      '--set: listen.tls.key: is missing; it must be a path',
    ])
    expect(problemsIn({ file: WITHOUT_PASSWORD, env: { POSTERN_PASSWORD_HTPASSWD_FILE: 'a' } })).toEqual([
      'POSTERN_PASSWORD_HTPASSWD_FILE: password.htpasswd.user: is missing; it must be a user name',
    ])
  })

  it('of the wrong type for a section is reported although another source sets a key of the section', () => {
    expect(problemsIn({ file: `${MINIMAL}limits: 5\n`, env: { POSTERN_LIMITS_API_REQUESTS: '1' } })).toEqual([
      'postern.yaml:3: limits: must be a mapping of keys (given: 5)',
    ])
  })

  it('is cut off in the problem if it is long', () => {
    expect(problemsWith(`realm: "\\n${'ä'.repeat(100)}"`)).toEqual([
      `postern.yaml:3: realm: must be text without control characters, such as a line end or a tab (given: "\\n${'ä'.repeat(59)}…")`,
    ])
  })
})

describe('a contradiction', () => {
  it('is a refresh lifetime below the access lifetime', () => {
    expect(problemsWith('tokens: {access_lifetime: 2h, refresh_lifetime: 1h}')).toEqual([
      'postern.yaml:3: tokens.refresh_lifetime: must be at least tokens.access_lifetime, 2h (given: "1h")',
    ])
    expect(problemsIn({ env: { POSTERN_TOKENS_ACCESS_LIFETIME: '30d' } })).toEqual([
      'tokens.refresh_lifetime: must be at least tokens.access_lifetime, 30d (by default: 7d)',
    ])
  })

  it('is one address for two listeners', () => {
    expect(problemsWith('admin: {address: 0.0.0.0:8443}')).toEqual([
      'postern.yaml:3: admin.address: must differ from listen.address, or be off (given: "0.0.0.0:8443")',
    ])
    for (const [listen, admin] of [
      ['0.0.0.0:9000', '127.0.0.1:9000'],
      ['127.0.0.1:9000', '0.0.0.0:9000'],
      ['[::]:9000', '127.0.0.1:9000'],
      ['[::1]:9000', '[::]:9000'],
    ]) {
      expect(problemsWith(`listen: {address: "${listen}"}\nadmin: {address: "${admin}"}`)).toHaveLength(1)
    }
    expect(problemsWith('listen: {address: "0.0.0.0:9000"}\nadmin: {address: "[::1]:9000"}')).toEqual([])
    expect(problemsWith('listen: {address: "fd:3"}\nadmin: {address: "fd:3"}')).toHaveLength(1)
    expect(problemsWith('listen: {address: "localhost:0"}\nadmin: {address: "localhost:0"}')).toEqual([])
  })

  it('is a device that is the sidecar itself', () => {
    const itself = 'must be the device, not listen.address: the sidecar would forward to itself'
    expect(problemsIn({ sets: ['upstream.url=https://localhost:8443'] })).toEqual([
      `--set: upstream.url: ${itself} (given: "https://localhost:8443")`,
    ])
    expect(problemsIn({ sets: ['upstream.url=http+unix:/a', 'listen.address=unix:/a'] })).toHaveLength(1)
    expect(problemsIn({ sets: ['upstream.url=http://[::1]:80', 'listen.address=[::1]:80'] })).toHaveLength(1)
    expect(problemsIn({ sets: ['upstream.url=http://192.0.2.1:8443'] })).toEqual([])
    expect(problemsIn({ sets: ['upstream.url=http+unix:/a', 'listen.address=unix:/b'] })).toEqual([])
  })
})

it('H318 Strict-Transport-Security needs a certificate of the operator', () => {
  const device = 'password: {file: x}\nupstream:\n  url: "http://127.0.0.1"\n'
  const problems = (name: string, listen = '') =>
    problemsIn({ file: `${device}  response_headers: {${name}: max-age=9}\n${listen}` })
  const problem = (name: string) =>
    `postern.yaml:4: upstream.response_headers.${name}: must be left out unless listen.tls is {cert: file, key: file}: a browser that has seen the field offers no way around a certificate that it does not trust (given: "max-age=9")`
  for (const name of ['Strict-Transport-Security', 'strict_transport-SECURITY'])
    for (const tls of [
      '',
      'listen: {tls: auto}',
      'listen: {tls: off}',
      'listen: {tls: {names: [a.example]}}',
    ])
      expect(problems(name, tls)).toEqual([problem(name)])
  expect(problems('Strict-Transport-Security', 'listen: {tls: {cert: a, key: b}}')).toEqual([])
})

describe('a shared store', () => {
  const URL = 'tokens: {store: "valkey://h"}\n'

  it('is needed to share limits', () => {
    expect(problemsWith('limits: {store: shared}')).toEqual([
      'postern.yaml:3: limits.store: must be local unless tokens.store is the URL of a shared store (given: "shared")',
    ])
    expect(problemsWith(`${URL}limits: {store: shared}`)).toEqual([])
  })

  it('has one password, and TLS settings only with TLS', () => {
    expect(problemsWith('tokens: {store: "valkey://:a@h"}\nstore: {password_file: p}')).toEqual([
      'postern.yaml:4: store.password_file: must be left out if the URL in tokens.store has a password; keep one of the two (given: "p")',
    ])
    expect(problemsWith(`${URL}store: {tls: {ca: a}}`)).toEqual([
      'postern.yaml:4: store.tls.ca: must be left out unless the URL in tokens.store begins with valkeys or rediss (TLS) (given: "a")',
    ])
  })
})

describe('password.device', () => {
  const device = (auth: string): string =>
    `upstream: {url: "http://h", auth: ${auth}}\npassword: {device: true}\n`

  it('requires upstream.auth', () => {
    expect(problemsIn({ file: `${WITHOUT_PASSWORD}password: {device: true}\n` })).toEqual([
      'postern.yaml:2: password.device: must be set together with upstream.auth, which defines how to sign in',
    ])
    expect(problemsIn({ file: `${WITHOUT_PASSWORD}password: {device: false}\n` })).toEqual([
      'postern.yaml:2: password.device: must be true',
    ])
  })

  it('excludes a password file', () => {
    expect(problemsIn({ file: device('{kind: basic, user: a, password: {file: b}}') })).toEqual([
      'postern.yaml:1: upstream.auth.password.file: must be left out with password.device: the password of the last grant is used',
    ])
    expect(problemsIn({ file: device('{kind: digest, user: a}') })).toEqual([])
  })

  it.each([
    [
      '{login: {path: /l, form: {p: $password}}}',
      [
        'check_path: is missing; it must be a path that needs a login: password.device uses it to tell a right password from a wrong one',
      ],
    ],
    [
      '{login: {path: /l, json: {$password: p}}}',
      ['session.login.json: must contain $password: the device checks it for password.device'],
      '/x',
    ],
    [
      '{login: {path: /l}}',
      ['session.login.form: is missing; it must contain $password: the device checks it for password.device'],
      '/x',
    ],
    [
      '{login: {path: /l, json: {p: $password}}, token: {header: T}, send: {header: T}}',
      [
        'session.token: must be a cookie, or be left out, with password.device: a response without a token says nothing about the password',
      ],
      '/x',
    ],
    ['{login: {path: /l, json: {p: $password}}, token: {cookie: T}}', [], '/x'],
  ])('judges the session %s', (session, problems, checkPath = '') => {
    const page = checkPath === '' ? '' : `check_path: ${checkPath}, `
    const auth = `{kind: session, ${page}session: ${session}}`
    expect(problemsIn({ file: device(auth) })).toEqual(
      problems.map((problem) => `postern.yaml:1: upstream.auth.${problem}`),
    )
  })
})

describe('a secret', () => {
  it.each([
    [`${WITHOUT_DEVICE}upstream: {url: "http://admin:hunter2@device"}`],
    [`${WITHOUT_DEVICE}upstream: {url: "http://h", headers: {X: "hunter2\\n"}}`],
    [`${WITHOUT_DEVICE}upstream: {url: "http://h", headers: {X: {hunter: hunter2}}}`],
    [`${WITHOUT_DEVICE}upstream: {url: "http://h", headers: hunter2}`],
    [`${WITHOUT_DEVICE}upstream: {url: "http://h", headers: {X: [hunter2]}}`],
    [`${WITHOUT_PASSWORD}password: hunter2`],
    [`${WITHOUT_PASSWORD}password: {plain: hunter2}`],
    [`${WITHOUT_DEVICE}upstream: {url: "http://h", auth: "admin:hunter2"}`],
    [`${WITHOUT_DEVICE}upstream: {url: "http://h", auth: {kind: "admin:hunter2"}}`],
    [`${WITHOUT_DEVICE}upstream: {url: "http://h", auth: {kind: digest, user: a, password: hunter2}}`],
    [`${MINIMAL}tokens: {store: "http://:hunter2@h"}`],
    [`${MINIMAL}tokens: {store: "redis//:hunter2"}`],
    [`${MINIMAL}tokens: {store: "redis://:hunter2@h:0"}`],
    [`${MINIMAL}tokens: {store: "redis://:hunter2@h"}\nstore: {password_file: p}`],
    [`${MINIMAL}password: {file: "hunter2" hunter2}`],
  ])('never appears in a problem: %j', (file) => {
    const problems = problemsIn({ file })
    expect(problems).not.toEqual([])
    expect(problems.join('\n')).not.toContain('hunter2')
  })

  it('of a flag or variable never appears in a problem', () => {
    const problems = problemsIn({
      env: {
        POSTERN_UPSTREAM_HEADERS: '{X: hunter2',
        POSTERN_PASSWORD: 'hunter2',
        POSTERN_SECRET: 'hunter2',
      },
      sets: ['upstream.headers.Host=hunter2', 'hunter2', 'tokens.store=hunter2', 'secret=hunter2'],
    })
    expect(problems).toHaveLength(7)
    expect(problems.join('\n')).not.toContain('hunter2')
  })
})

function catchError(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  return expect.fail('nothing was thrown')
}

describe('passwords', () => {
  const problemsOf = (passwords: unknown, more: object = {}): readonly string[] =>
    problemsIn({ file: JSON.stringify({ upstream: { url: 'http://device' }, ...more, passwords }) }).map(
      (line) => line.replace(/^postern\.yaml(?::\d+)?: /, ''),
    )
  const a = { name: 'a', file: 'f' }

  it('no list, such as the password itself, is not repeated', () => {
    expect(problemsOf('correct horse battery staple')).toEqual([
      'passwords: must be a list such as [{name: admin, file: /etc/postern/password}]',
    ])
  })

  it.each([
    ['beside password', [a], 'passwords: must not be set together with password; keep one of the two'],
    ['none', [], 'passwords: must have 1 to 16 entries'],
    [
      '17',
      Array.from({ length: 17 }, (_, at) => ({ name: `n${at}`, file: 'f' })),
      'passwords: must have 1 to 16 entries',
    ],
    [
      'a name twice',
      [a, { name: 'a', file: 'g' }],
      'passwords.1.name: must not be the name of an earlier entry',
    ],
    ['no source', [{ name: 'a' }], 'passwords.0: must have exactly one of file, htpasswd, shadow'],
    [
      'two sources',
      [{ ...a, htpasswd: { file: 'f', user: 'u' } }],
      'passwords.0: must have exactly one of file, htpasswd, shadow',
    ],
    [
      'a name with a dot',
      [{ ...a, name: 'a.b' }],
      'passwords.0.name: must be at most 32 letters, digits, - and _, beginning with a letter or digit',
    ],
    [
      'an unknown word',
      [{ ...a, allow: 'write' }],
      'passwords.0.allow: must be read, or a list such as [{methods: [GET], paths: [/status]}]',
    ],
    [
      'a method in lower case',
      [{ ...a, allow: [{ methods: ['get'] }] }],
      'passwords.0.allow.0.methods.0: must be a method such as GET, in upper case, or UPGRADE for WebSockets',
    ],
    [
      'a path without a slash',
      [{ ...a, allow: [{ paths: ['status'] }] }],
      'passwords.0.allow.0.paths.0: must be a path such as /login',
    ],
    [
      'an ambiguous path',
      [{ ...a, allow: [{ paths: ['/a/../b'] }] }],
      'passwords.0.allow.0.paths.0: must be a plain path',
    ],
    ['a mistyped key', [{ ...a, alow: 'read' }], 'passwords.0.alow: unknown key'],
    [
      'a limit without per: name',
      [{ ...a, limit: { requests: 5, window: '60s' } }],
      'passwords.0.limit: must be left out unless limits.api.per is name, which counts by name',
    ],
    ['a limit without requests', [{ ...a, limit: { window: '60s' } }], 'passwords.0.limit.requests: '],
    ['a limit that is a number', [{ ...a, limit: 5 }], 'passwords.0.limit: must be a mapping of keys'],
    [
      'a limit of part of a second',
      [{ ...a, limit: { requests: 5, window: '1500ms' } }],
      'passwords.0.limit.window: ',
    ],
  ])('%s', (what, passwords, problem) => {
    const more = what === 'beside password' ? { password: { file: 'f' } } : {}
    const problems = problemsOf(passwords, more)
    expect(problems).toHaveLength(1)
    expect(problems[0]).toContain(problem)
  })

  it('are needed to count by name', () => {
    expect(problemsWith('limits: {api: {per: name}}')).toEqual([
      'postern.yaml:3: limits.api.per: must not be name without passwords, which have the names (given: "name")',
    ])
    expect(problemsOf([a], { limits: { oauth: { per: 'name' } } })).toEqual([])
  })

  it('sixteen names are accepted', () => {
    expect(problemsOf(Array.from({ length: 16 }, (_, at) => ({ name: `n${at}`, file: 'f' })))).toEqual([])
  })
})
