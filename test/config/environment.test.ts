import { describe, expect, it } from 'vitest'
import { listedKeys } from '../../deploy/build/reference.ts'
import { decode } from '../../src/config/decode.ts'
import { environmentName, knownKeys } from '../../src/config/known-keys.ts'
import { valueAt } from '../../src/config/yaml.ts'
import { load, problemsIn, treeOf } from './sources.ts'

const SESSION = 'upstream.auth.kind=session'
const LOGIN = 'upstream.auth.session.login.path=/x'
const TOKEN = 'upstream.auth.session.token.header=X-T'
const SEND = 'upstream.auth.session.send.header=X-T'

/** Another key that this key requires. */
const COMPANIONS: Readonly<Record<string, string | readonly string[]>> = {
  'limits.store': 'tokens.store=valkey://h',
  'listen.tls.cert': 'listen.tls.key=x',
  'upstream.tls.cert': 'upstream.tls.key=x',
  'upstream.tls.key': 'upstream.tls.cert=x',
  'listen.tls.key': 'listen.tls.cert=x',
  'upstream.tls.pin': 'upstream.url=https://d',
  'upstream.auth.session.login.method': [SESSION, LOGIN, TOKEN, SEND],
  'upstream.auth.session.login.path': [SESSION, TOKEN, SEND],
  'upstream.auth.session.login.page': [SESSION, LOGIN, TOKEN, SEND],
  'upstream.auth.session.login.json': [SESSION, LOGIN, TOKEN, SEND],
  'upstream.auth.session.login.form': [SESSION, LOGIN, TOKEN, SEND],
  'upstream.auth.session.token.header': [SESSION, LOGIN, SEND],
  'upstream.auth.session.token.cookie': [SESSION, LOGIN, SEND],
  'upstream.auth.session.token.json': [SESSION, LOGIN, SEND],
  'upstream.auth.session.send.header': [SESSION, LOGIN, TOKEN],
  'upstream.auth.session.expired': [SESSION, LOGIN, TOKEN, SEND],
  'upstream.auth.session.logout.method': [SESSION, LOGIN, TOKEN, SEND],
  'upstream.auth.session.logout.path': [SESSION, LOGIN, TOKEN, SEND],
  'upstream.auth.kind': ['upstream.auth.user=x', 'upstream.auth.password.file=x'],
  'upstream.auth.user': ['upstream.auth.kind=digest', 'upstream.auth.password.file=x'],
  'upstream.auth.password.file': ['upstream.auth.kind=digest', 'upstream.auth.user=x'],
  'upstream.auth.check_path': [SESSION, LOGIN],
  'password.device': 'upstream.auth={kind: basic, user: x}',
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
      const value = listedKeys.get(key)?.example ?? expect.fail(`no example for ${key}`)
      const { path, field } = known
      const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
      const sets = [COMPANIONS[key] ?? []].flat()
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
})
