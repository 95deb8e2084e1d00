import { describe, expect, it } from 'vitest'
import { decode } from '../../src/config/decode.ts'
import { environmentName, knownKeys } from '../../src/config/known-keys.ts'
import { valueAt, type YamlValue } from '../../src/config/yaml.ts'
import { load, problemsIn, treeOf } from './sources.ts'

const PIN = `sha256/${Buffer.alloc(32, 1).toString('base64')}`

const ON = { basic: { user: 'a', password: { file: 'p' }, check_path: '/' } }

/** For every key that is no section: a value that is not its default, as text and as in the file. */
const EXAMPLES: Readonly<Record<string, readonly [text: string, value: YamlValue]>> = {
  'listen.address': ['[::1]:1', '[::1]:1'],
  'listen.reuse_port': ['true', true],
  'listen.insecure': ['true', true],
  'listen.tls': ['off', 'off'],
  'listen.tls.cert': ['c.pem', 'c.pem'],
  'listen.tls.key': ['k.pem', 'k.pem'],
  'listen.tls.names': ['A.example,2001:DB8::7', ['a.example', '2001:db8::7']],
  'listen.allow': ['192.0.2.0/24', ['192.0.2.0/24']],
  'listen.deny': ['192.0.2.66', ['192.0.2.66']],
  'admin.allow': ['10.0.0.0/8', ['10.0.0.0/8']],
  'admin.deny': ['10.0.0.1', ['10.0.0.1']],
  'listen.trusted_proxies': ['10.0.0.0/8, ::1', ['10.0.0.0/8', '::1']],
  'listen.handshake_timeout': ['1', '1s'],
  'listen.header_timeout': ['500ms', '500ms'],
  'listen.body_timeout': ['1m', '1m'],
  'listen.idle_timeout': ['1d', '1d'],
  'listen.max_header_size': ['2048', '2KiB'],
  'listen.max_header_count': ['7', 7],
  'listen.max_connections': ['7', 7],
  'listen.max_connections_per_client': ['7', 7],
  'listen.max_streams': ['7', 7],
  'listen.max_resets': ['7', 7],
  'listen.max_control_frames': ['7', 7],
  'listen.memory': ['64MiB', '64MiB'],
  'listen.max_queued_bytes': ['1MiB', '1MiB'],
  'admin.address': ['off', 'off'],
  'admin.password_file': ['p', 'p'],
  'admin.hosts': ['ops.example, *.lan.example', ['ops.example', '*.lan.example']],
  'upstream.url': ['https://device', 'https://device'],
  'upstream.host': ['target', 'target'],
  'upstream.headers': ['{X-Foo: bar}', { 'X-Foo': 'bar' }],
  'upstream.tls.min_version': ['TLSv1.3', 'TLSv1.3'],
  'upstream.tls.weak': ['true', true],
  'upstream.tls.pin': [PIN, PIN],
  'upstream.tls.ca': ['ca.pem', 'ca.pem'],
  'upstream.tls.cert': ['c.pem', 'c.pem'],
  'upstream.tls.key': ['k.pem', 'k.pem'],
  'upstream.tls.server_name': ['A.example', 'A.example'],
  'upstream.tls.insecure': ['true', true],
  'upstream.auth': ['{basic: {user: a, password: {file: p}}}', ON],
  'upstream.auth.basic.user': ['1', '1'],
  'upstream.auth.basic.password.file': ['p', 'p'],
  'upstream.auth.basic.check_path': ['/x', '/x'],
  'upstream.auth.digest.user': ['1', '1'],
  'upstream.auth.digest.password.file': ['p', 'p'],
  'upstream.auth.digest.check_path': ['/x', '/x'],
  'upstream.auth.form.user': ['null', 'null'],
  'upstream.auth.form.password.file': ['p', 'p'],
  'upstream.auth.form.path': ['/x', '/x'],
  'upstream.auth.form.login_page': ['/x', '/x'],
  'upstream.auth.form.user_field': ['u', 'u'],
  'upstream.auth.form.password_field': ['p', 'p'],
  'upstream.auth.form.fields': ['a=1, b=', ['a=1', 'b=']],
  'upstream.auth.form.session_cookie': ['SID', 'SID'],
  'upstream.auth.form.on_change': ['follow', 'follow'],
  'upstream.auth.form.success.status': ['302', 302],
  'upstream.auth.form.success.location': ['/x', '/x'],
  'upstream.auth.form.check_path': ['/x', '/x'],
  'upstream.auth.session.user': ['1', '1'],
  'upstream.auth.session.password.file': ['p', 'p'],
  'upstream.auth.session.login.method': ['PUT', 'PUT'],
  'upstream.auth.session.login.path': ['/x', '/x'],
  'upstream.auth.session.login.json': ['{a: [1, {b: x}]}', { a: [1, { b: 'x' }] }],
  'upstream.auth.session.login.form': ['{a: b}', { a: 'b' }],
  'upstream.auth.session.token.header': ['X-T', 'X-T'],
  'upstream.auth.session.token.cookie': ['SID', 'SID'],
  'upstream.auth.session.token.json': ['/a~1b/0', '/a~1b/0'],
  'upstream.auth.session.send.header': ['X-T', 'X-T'],
  'upstream.auth.session.send.prefix': ['Bearer ', 'Bearer '],
  'upstream.auth.session.send.cookie': ['SID', 'SID'],
  'upstream.auth.session.on_change': ['follow', 'follow'],
  'upstream.auth.session.expired': ['[409, 401]', [409, 401]],
  'upstream.auth.session.logout.method': ['POST', 'POST'],
  'upstream.auth.session.logout.path': ['/x', '/x'],
  'upstream.auth.session.logout.path.header': ['Location', 'Location'],
  'upstream.parser': ['strict', 'strict'],
  'upstream.forwarding': ['minimal', 'minimal'],
  'upstream.drop': ['Cookie, sec-*', ['Cookie', 'sec-*']],
  'upstream.drop_response': ['Server, x-powered-*', ['Server', 'x-powered-*']],
  'upstream.version': ['1.0', '1.0'],
  'upstream.rewrite': ['on', 'on'],
  'upstream.connect_timeout': ['1s', '1s'],
  'upstream.response_timeout': ['1s', '1s'],
  'upstream.idle_timeout': ['1s', '1s'],
  'upstream.reuse': ['never', 'never'],
  'upstream.buffer_uploads': ['1MiB', '1MiB'],
  'upstream.max_body': ['64KiB', '64KiB'],
  'upstream.min_upload_rate': ['2KiB', '2KiB'],
  'upstream.max_in_flight': ['1', 1],
  'upstream.max_in_flight.min': ['2', 2],
  'upstream.max_in_flight.max': ['16', 16],
  'upstream.max_tunnels': ['1', 1],
  'upstream.stream_after': ['1s', '1s'],
  'upstream.max_streams': ['1', 1],
  'upstream.queue.size': ['0', 0],
  'upstream.queue.timeout': ['1s', '1s'],
  'upstream.share.paths': ['/a, /b/', ['/a', '/b/']],
  'upstream.share.for': ['1s', '1s'],
  'upstream.health.path': ['/a?b={1}', '/a?b={1}'],
  'upstream.health.interval': ['1s', '1s'],
  'upstream.routes': ['{/a/: {url: http://b}}', { '/a/': { url: 'http://b' } }],
  'password.file': ['p', 'p'],
  'password.htpasswd.file': ['p', 'p'],
  'password.htpasswd.user': ['1', '1'],
  'password.shadow.file': ['p', 'p'],
  'password.shadow.user': ['true', 'true'],
  'password.device': ['true', true],
  'tokens.store': ['memory', 'memory'],
  'tokens.capacity': ['2', 2],
  'tokens.issued': ['25', 25],
  'tokens.access_lifetime': ['2h', '2h'],
  'tokens.refresh_lifetime': ['8d', '8d'],
  'tokens.rotate_refresh': ['true', true],
  'tokens.grant_lifetime': ['30d', '30d'],
  'tokens.refresh_grace': ['0', '0s'],
  'tokens.offline_grace': ['0', '0s'],
  'store.password_file': ['p', 'p'],
  'store.prefix': ['123', '123'],
  'store.timeout': ['500ms', '500ms'],
  'store.replicas': ['2', 2],
  'store.tls.ca': ['ca.pem', 'ca.pem'],
  'store.tls.insecure': ['true', true],
  'limits.store': ['shared', 'shared'],
  'limits.api.requests': ['120', 120],
  'limits.api.window': ['1h', '1h'],
  'limits.api.per': ['grant', 'grant'],
  'limits.oauth.requests': ['1', 1],
  'limits.oauth.window': ['1h', '1h'],
  'limits.oauth.per': ['device', 'device'],
  'limits.max_keys': ['9', 9],
  'limits.wrong_passwords': ['slow', 'slow'],
  'limits.ietf_headers': ['true', true],
  'oauth.revocation_path': ['/oauth/revoke', '/oauth/revoke'],
  'browser.login': ['on', 'on'],
  'browser.idle': ['30m', '30m'],
  'browser.hsts': ['365d', '365d'],
  'browser.limit.requests': ['700', 700],
  'browser.limit.window': ['30s', '30s'],
  'cors.origins': ['https://a.example, http://b:81', ['https://a.example', 'http://b:81']],
  public_paths: ['/login, /static/', ['/login', '/static/']],
  enforce: ['false', false],
  state_dir: ['123', '123'],
  realm: ['true', 'true'],
  status_codes: ['http', 'http'],
  'log.level': ['debug', 'debug'],
  'log.format': ['json', 'json'],
  'log.access': ['false', false],
  'log.query': ['action,mode', ['action', 'mode']],
  shutdown_grace: ['0s', '0s'],
}

const LOGIN = 'upstream.auth.session.login.path=/x'
const TOKEN = 'upstream.auth.session.token.header=X-T'
const SEND = 'upstream.auth.session.send.header=X-T'

/** Another key that this key requires. */
const COMPANIONS: Readonly<Record<string, string | readonly string[]>> = {
  'listen.reuse_port': ['tokens.store=valkey://h', 'listen.tls=off'],
  'browser.hsts': ['listen.tls.cert=c.pem', 'listen.tls.key=k.pem'],
  'limits.store': 'tokens.store=valkey://h',
  'listen.tls.cert': 'listen.tls.key=x',
  'upstream.tls.cert': 'upstream.tls.key=x',
  'upstream.tls.key': 'upstream.tls.cert=x',
  'listen.tls.key': 'listen.tls.cert=x',
  'upstream.tls.pin': 'upstream.url=https://d',
  'upstream.auth.basic.user': 'upstream.auth.basic.password.file=x',
  'upstream.auth.basic.password.file': 'upstream.auth.basic.user=x',
  'upstream.auth.basic.check_path': 'upstream.auth.basic={user: x, password: {file: x}}',
  'upstream.auth.digest.user': 'upstream.auth.digest.password.file=x',
  'upstream.auth.digest.password.file': 'upstream.auth.digest.user=x',
  'upstream.auth.digest.check_path': 'upstream.auth.digest={user: x, password: {file: x}}',
  'upstream.auth.session.user': [LOGIN, TOKEN, SEND],
  'upstream.auth.session.password.file': [LOGIN, TOKEN, SEND],
  'upstream.auth.session.login.method': [LOGIN, TOKEN, SEND],
  'upstream.auth.session.login.path': [TOKEN, SEND],
  'upstream.auth.session.login.json': [LOGIN, TOKEN, SEND],
  'upstream.auth.session.login.form': [LOGIN, TOKEN, SEND],
  'upstream.auth.session.token.header': [LOGIN, SEND],
  'upstream.auth.session.token.cookie': [LOGIN, SEND],
  'upstream.auth.session.token.json': [LOGIN, SEND],
  'upstream.auth.session.send.header': [LOGIN, TOKEN],
  'upstream.auth.session.send.prefix': [LOGIN, TOKEN, SEND],
  'upstream.auth.session.send.cookie': [LOGIN, TOKEN],
  'upstream.auth.session.on_change': [LOGIN, TOKEN, SEND],
  'upstream.auth.session.expired': [LOGIN, TOKEN, SEND],
  'upstream.auth.session.logout.method': [LOGIN, TOKEN, SEND, 'upstream.auth.session.logout.path=/x'],
  'upstream.auth.session.logout.path': [LOGIN, TOKEN, SEND],
  'upstream.auth.session.logout.path.header': [LOGIN, TOKEN, SEND],
  'password.device': 'upstream.auth={basic: {user: x}}',
  'password.htpasswd.file': 'password.htpasswd.user=x',
  'password.htpasswd.user': 'password.htpasswd.file=x',
  'password.shadow.file': 'password.shadow.user=x',
  'password.shadow.user': 'password.shadow.file=x',
}

/** `passwords` excludes `password`, which the file of the other tests has. */
const LEAVES = knownKeys().filter(
  ({ path, field }) => (field.keys.size === 0 || field.kind === 'either') && path[0] !== 'passwords',
)

describe('the environment', () => {
  it.each(LEAVES.map((known) => [known.path.join('.'), known] as const))(
    'sets %s, and so does a flag',
    (key, known) => {
      const [text, value] = EXAMPLES[key] ?? expect.fail(`no example for ${key}`)
      const { path, field } = known
      const form = key.startsWith('upstream.auth.form.') && !key.endsWith('.file')
      const companion = form ? ['upstream.auth.form.password.file=x'] : (COMPANIONS[key] ?? [])
      const sets = [companion].flat()
      const env = { [environmentName(path)]: text }
      const byEnvironment = load({ env, sets })
      const found = valueAt(treeOf({ env, sets }), path) ?? expect.fail('it is not set')
      expect(decode(field, found)).toEqual(decode(field, value))
      expect(load({ sets: [...sets, `${key}=${text}`] })).toEqual(byEnvironment)
    },
  )

  it('sets passwords, and so does a flag', () => {
    const file = 'upstream: {url: "http://device"}'
    const text = '[{name: a, file: f, allow: read}]'
    const byEnvironment = load({ file, env: { POSTERN_PASSWORDS: text } })
    expect(byEnvironment.passwords).toEqual([{ name: 'a', file: 'f', allow: 'read', enforce: true }])
    expect(load({ file, sets: [`passwords=${text}`] })).toEqual(byEnvironment)
  })

  it('has a distinct name for each key', () => {
    expect(new Set(knownKeys().map(({ path }) => environmentName(path))).size).toBe(knownKeys().length)
  })

  it('accepts a list as YAML or with commas', () => {
    expect(load({ env: { POSTERN_LISTEN_TRUSTED_PROXIES: '[10.0.0.0/8]' } }).listen.trustedProxies).toEqual([
      '10.0.0.0/8',
    ])
    expect(load({ env: { POSTERN_LISTEN_TRUSTED_PROXIES: '' } }).listen.trustedProxies).toEqual([])
  })

  it('is overridden by a flag that removes the health path', () => {
    expect(
      load({ env: { POSTERN_UPSTREAM_HEALTH_PATH: '/x' }, sets: ['upstream.health.path=null'] }).upstream
        .health.path,
    ).toBeNull()
  })

  it('may contain the variables of the command line and of the tests', () => {
    expect(
      problemsIn({ env: { POSTERN_CONFIG: 'x', POSTERN_TEST_VALKEY: 'y', HOME: '/', MY_POSTERN_X: '1' } }),
    ).toEqual([])
  })

  it('may contain what Kubernetes injects for a Service named postern or postern-metrics', () => {
    const env = Object.fromEntries(
      ['POSTERN', 'POSTERN_METRICS'].flatMap((name) => [
        [`${name}_SERVICE_HOST`, '10.0.0.1'],
        [`${name}_SERVICE_PORT`, '443'],
        [`${name}_SERVICE_PORT_HTTPS`, '443'],
        [`${name}_PORT`, 'tcp://10.0.0.1:443'],
        [`${name}_PORT_443_TCP`, 'tcp://10.0.0.1:443'],
        [`${name}_PORT_443_TCP_PROTO`, 'tcp'],
        [`${name}_PORT_443_TCP_PORT`, '443'],
        [`${name}_PORT_443_TCP_ADDR`, '10.0.0.1'],
      ]),
    )
    expect(problemsIn({ env })).toEqual([])
  })

  it.each([
    ['POSTERN_LIMIT_API_REQUESTS', '1', 'did you mean POSTERN_LIMITS_API_REQUESTS?'],
    ['POSTERN_UPSTREAM_HEADERS_X', 'secret', 'did you mean POSTERN_UPSTREAM_HEADERS?'],
    ['POSTERN_LISTEN_PORT', '8443', 'did you mean POSTERN_LISTEN_ADDRESS?'],
    ['POSTERN_ADM', '127.0.0.1:9', 'did you mean POSTERN_ADMIN?'],
    ['POSTERN_PORT', '8443', 'deploy/configuration.md lists the known ones'],
    ['POSTERN_HOME', '/srv', 'deploy/configuration.md lists the known ones'],
    ['POSTERN_VERSION', '1', 'deploy/configuration.md lists the known ones'],
    ['POSTERN_', 'x', 'deploy/configuration.md lists the known ones'],
  ])('must not contain %s', (name, value, advice) => {
    expect(problemsIn({ env: { [name]: value } })).toEqual([`${name}: unknown variable; ${advice}`])
  })

  it('is reported with the variable and the position in it when its YAML is invalid', () => {
    expect(problemsIn({ env: { POSTERN_UPSTREAM_HEADERS: '{X: 1' } })).toEqual([
      'POSTERN_UPSTREAM_HEADERS: upstream.headers: line 1: a closing quote, a comma, a colon or a bracket is missing (column 6)',
    ])
  })
})
