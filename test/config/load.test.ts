import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { effectiveYaml, load, MINIMAL, problemsIn } from './sources.ts'

describe('the configuration', () => {
  it('has times in ms, sizes in bytes and addresses in parts', () => {
    const { listen, upstream, tokens } = load()
    expect(listen.address).toEqual({ kind: 'tcp', host: '0.0.0.0', port: 8443 })
    expect([listen.idleTimeout, load({ file: `${MINIMAL}listen: {memory: 8MiB}` }).listen.memory]).toEqual([
      60_000,
      8 << 20,
    ])
    expect([upstream.url.kind, upstream.url.origin]).toEqual(['tcp', 'http://127.0.0.1:8080'])
    expect(tokens.refreshLifetime).toBe(604_800_000)
  })

  it('is the same from a file that states the defaults', () => {
    expect(load({ file: effectiveYaml() })).toStrictEqual(load())
  })

  it('needs no file', () => {
    const env = {
      POSTERN_UPSTREAM_URL: 'http://127.0.0.1:8080',
      POSTERN_PASSWORD_FILE: '/etc/postern/password',
    }
    expect(loadConfig({ env, sets: [] })).toStrictEqual(load())
  })

  it('treats an empty section as absent', () => {
    const file = `${MINIMAL}limits:\n  # api: {requests: 5}\nlisten:\ntokens: {}\n`
    expect(load({ file })).toStrictEqual(load())
  })

  it('reads every alternative form of a value', () => {
    const config = load({
      file: `
listen: {address: "unix:/run/p.sock", tls: {cert: c.pem, key: k.pem}, trusted_proxies: [10.0.0.0/8, "::1"], memory: 8388608}
admin: {address: off}
upstream:
  url: http+unix:/run/device.sock
  host: "device.local:8080"
  headers: {Authorization: {file: /run/secrets/x}, X-Empty: ""}
  tls: {ca: ca.pem}
  health: {path: "/status?a=1"}
password: {shadow: {file: /etc/shadow, user: admin}}
tokens: {store: memory}
`,
    })
    expect(config.listen.address).toEqual({ kind: 'unix', path: '/run/p.sock' })
    expect(config.listen.tls).toEqual({ cert: 'c.pem', key: 'k.pem' })
    expect(config.listen.trustedProxies).toEqual(['10.0.0.0/8', '::1'])
    expect(config.listen.memory).toBe(8 * 1024 ** 2)
    expect(config.admin.address).toBe('off')
    expect(config.upstream.url).toEqual({
      kind: 'unix',
      path: '/run/device.sock',
      origin: 'http://localhost',
    })
    expect(config.upstream.host).toBe('device.local:8080')
    expect(config.upstream.headers).toEqual({ Authorization: { file: '/run/secrets/x' }, 'X-Empty': '' })
    expect(config.upstream.tls).toMatchObject({ ca: 'ca.pem', insecure: false })
    expect(config.upstream.health.path).toBe('/status?a=1')
    expect(config.password).toEqual({ shadow: { file: '/etc/shadow', user: 'admin' } })
    expect(config.tokens.store).toBe('memory')
  })

  it('accepts header names that are properties of every object', () => {
    const { headers } = load({
      sets: ['upstream.headers.constructor=x', 'upstream.headers.toString=y'],
    }).upstream
    expect(Object.entries(headers)).toEqual([
      ['constructor', 'x'],
      ['toString', 'y'],
    ])
  })
})

describe('the sources', () => {
  it('take precedence in the order flag, environment, file, default', () => {
    const file = `${MINIMAL}limits: {api: {requests: 2, window: 2s, per: device}}\n`
    const env = { POSTERN_LIMITS_API_REQUESTS: '3', POSTERN_LIMITS_API_WINDOW: '3s' }
    const { api, oauth } = load({ file, env, sets: ['limits.api.requests=4'] }).limits
    expect(api).toEqual({ requests: 4, window: 3000, per: 'device' })
    expect(oauth).toEqual({ requests: 30, window: 60_000, per: 'client' })
  })

  it('let a later flag override an earlier one', () => {
    expect(load({ sets: ['realm=a', 'realm=b=c'] }).realm).toBe('b=c')
  })

  it('take the state directory from systemd only if no other source sets it', () => {
    const env = { STATE_DIRECTORY: '/var/lib/postern:/var/lib/other' }
    expect(load({ env }).stateDir).toBe('/var/lib/postern')
    expect(load({ env, file: `${MINIMAL}state_dir: /data\n` }).stateDir).toBe('/data')
    expect(load({ env: { ...env, POSTERN_STATE_DIR: '/env' } }).stateDir).toBe('/env')
    expect(load({ env: { STATE_DIRECTORY: '' } }).stateDir).toBe('state')
  })

  it('name one state directory for what is made in it and for itself, also behind a link and `..`', () => {
    expect(load({ sets: ['state_dir=link/../state'] }).stateDir).toBe('state')
  })

  it('replace a password source of another kind from a source of lower precedence', () => {
    const file = 'upstream: {url: "http://h"}\npassword: {htpasswd: {file: a, user: b}}\n'
    expect(load({ file, env: { POSTERN_PASSWORD_FILE: 'x' } }).password).toEqual({ file: 'x' })
    expect(load({ file, sets: ['password.shadow.file=x', 'password.shadow.user=y'] }).password).toEqual({
      shadow: { file: 'x', user: 'y' },
    })
    expect(
      load({ file, env: { POSTERN_PASSWORD_FILE: 'x' }, sets: ['password={shadow: {file: y, user: z}}'] })
        .password,
    ).toEqual({
      shadow: { file: 'y', user: 'z' },
    })
  })

  it('change only single keys of a password source of the same kind from a source of lower precedence', () => {
    const file = 'upstream: {url: "http://h"}\npassword: {htpasswd: {file: a, user: b}}\n'
    expect(load({ file, env: { POSTERN_PASSWORD_HTPASSWD_USER: 'c' } }).password).toEqual({
      htpasswd: { file: 'a', user: 'c' },
    })
  })

  it('replace a word by a mapping and a mapping by a word', () => {
    const env = { POSTERN_LISTEN_TLS_CERT: 'c', POSTERN_LISTEN_TLS_KEY: 'k' }
    expect(load({ env }).listen.tls).toEqual({ cert: 'c', key: 'k' })
    expect(load({ env, sets: ['listen.tls=off'] }).listen.tls).toBe('off')
    expect(load({ env: { POSTERN_LISTEN_TLS: '{cert: c, key: k}' } }).listen.tls).toEqual({
      cert: 'c',
      key: 'k',
    })
  })

  it('can set one header or replace all; header names ignore case', () => {
    const file = MINIMAL.replace('}\n', ', headers: {x-foo: file, X-Bar: file}}\n')
    expect(load({ file, sets: ['upstream.headers.X-Foo=flag'] }).upstream.headers).toEqual({
      'X-Bar': 'file',
      'X-Foo': 'flag',
    })
    expect(load({ file, env: { POSTERN_UPSTREAM_HEADERS: '{X-Foo: bar}' } }).upstream.headers).toEqual({
      'X-Foo': 'bar',
    })
  })

  it('can leave a header out, whether the file sets it or not', () => {
    const file = MINIMAL.replace('}\n', ', headers: {x-foo: file, "Sec-*": null}}\n')
    const sets = [
      'upstream.headers.X-Foo=null',
      'upstream.headers.Cookie=null',
      'upstream.headers.Sec-*=null',
    ]
    expect(load({ file, sets }).upstream.headers).toEqual({ 'X-Foo': null, Cookie: null, 'Sec-*': null })
  })

  it('take a header from the command line literally, with its dots, unless it names a file', () => {
    const sets = [
      'upstream.headers.X-A={file: x}',
      'upstream.headers.x.b=1',
      'upstream.headers.file=f',
      'upstream.headers.X-C.file=/run/c',
    ]
    expect(load({ sets }).upstream.headers).toEqual({
      'X-A': '{file: x}',
      'x.b': '1',
      file: 'f',
      'X-C': { file: '/run/c' },
    })
  })

  it('change only those keys of a section that a mapping for it contains', () => {
    const file = `${MINIMAL}limits: {api: {requests: 2, window: 2s}}\n`
    const env = { POSTERN_LIMITS_API: '{requests: 3}', POSTERN_LIMITS_OAUTH: '' }
    expect(load({ file, env }).limits.api).toEqual({ requests: 3, window: 2000, per: 'client' })
    expect(load({ file, sets: ['limits={oauth: {per: device}}'] }).limits.oauth.per).toBe('device')
    const both = { POSTERN_LIMITS_API_REQUESTS: '4', POSTERN_LIMITS_API: '{requests: 3, window: 3s}' }
    expect(load({ env: both }).limits.api).toEqual({ requests: 4, window: 3000, per: 'client' })
  })

  it('are not modified', () => {
    const env = Object.freeze({ POSTERN_REALM: 'x' })
    const sets = Object.freeze(['realm=y'])
    expect(load({ env, sets }).realm).toBe('y')
    expect(problemsIn({ env, sets })).toEqual([])
  })

  it('cannot pollute the prototype of objects', () => {
    for (const set of [
      '__proto__.polluted=1',
      'upstream.headers.__proto__=1',
      'upstream.__proto__.url=x',
      'limits={__proto__: {polluted: 1}}',
    ]) {
      expect(problemsIn({ sets: [set] })).toHaveLength(1)
    }
    expect(problemsIn({ file: `${MINIMAL}__proto__: {polluted: 1}` })).toEqual([
      'postern.yaml: a key must not be __proto__',
    ])
    expect({}).not.toHaveProperty('polluted')
  })
})
