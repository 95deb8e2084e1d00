import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { formatDuration } from '../../src/config/units.ts'
import { overlay, type YamlPart } from '../support/sidecar.ts'
import { effectiveYaml, load, MINIMAL } from './sources.ts'

/** The defaults of deploy/postern.schema.json, which `npm run reference` writes: a changed default shows in its diff. */
function defaultsIn(node: unknown): YamlPart {
  const { properties = {} } = node as { properties?: Record<string, { default?: unknown }> } // a node of JSON Schema
  return Object.fromEntries(
    Object.entries(properties).flatMap(([key, each]) => {
      const below = defaultsIn(each)
      if (Object.keys(below).length > 0) return [[key, below]]
      // A section of alternatives has no default.
      return 'properties' in each || !('default' in each) ? [] : [[key, each.default]]
    }),
  )
}

describe('the effective configuration', () => {
  it('has the default of every key, in the format of the file', () => {
    const schema: unknown = JSON.parse(
      readFileSync(new URL('../../deploy/postern.schema.json', import.meta.url), 'utf8'),
    )
    const page = effectiveYaml()
    expect(parse(page)).toEqual(overlay(defaultsIn(schema), parse(MINIMAL)))
  })

  it('masks secrets, and shows the files that contain secrets', () => {
    const sets = [
      'upstream.headers.Authorization=hunter2',
      'upstream.headers.Cookie.file=/run/secrets/cookie',
      'upstream.headers.Sec-*=null',
    ]
    const page = effectiveYaml({ sets })
    expect(page).not.toContain('hunter2')
    expect(page).toContain('Authorization: "***"')
    expect(page).toContain('file: /run/secrets/cookie')
    expect(page).toContain('Sec-*: null')
    expect(effectiveYaml({ file: page })).toBe(page)
  })

  it('loads as the same configuration', () => {
    const seconds = fc.integer({ min: 1, max: 3600 }).map((n) => formatDuration(n * 1000))
    const text = fc.constantFrom(
      'x',
      'null',
      'true',
      '12',
      '~',
      '- a',
      'a: b',
      '#a',
      '{a}',
      "it's",
      '0x1F',
      '1e3',
      '*a',
      'ä',
    )
    const password = fc.oneof(
      text.map((file) => ({ file })),
      fc.record({ htpasswd: fc.record({ file: text, user: fc.constantFrom('root', '0', 'no') }) }),
      fc.record({ shadow: fc.record({ file: text, user: fc.constantFrom('root', '0', 'no') }) }),
    )
    const user = fc.constantFrom('admin', '0', 'null', 'jäsøn')
    const account = { user, password: fc.record({ file: text }) }
    const tokenSession = fc.record(
      {
        login: fc.constantFrom(
          { path: '/l' },
          { path: '/l', json: { null: '$user', user_name: [1, { p: '$password', q: null }] } },
          { path: '/a?b=c:d', page: '/null', form: { constructor: 'a: b', 12: '$user', 'q r': '$password' } },
        ),
        token: fc.constantFrom({ header: 'X-T' }, { cookie: 'SID' }, { json: '/a~1b/0' }),
        send: fc.constantFrom(
          { header: 'X-T' },
          { header: 'X-T: a $token' },
          { header: 'Cookie: SID=$token' },
        ),
        expired: fc.array(
          fc.oneof(fc.integer({ min: 400, max: 499 }), fc.constant({ json: '/a~1b', value: false })),
        ),
        logout: fc.constantFrom({}, { path: '/x' }, { method: 'POST' }),
      },
      { requiredKeys: ['login', 'token', 'send'] },
    )
    const file = fc.record({
      listen: fc.record({
        address: fc.constantFrom('0.0.0.0:0', '[::1]:1', 'unix:/a b: c', 'fd:3', 'localhost:80'),
        tls: fc.oneof(fc.constantFrom('auto', 'off'), fc.record({ cert: text, key: text })),
        trusted_proxies: fc.array(fc.oneof(fc.ipV4(), fc.ipV6(), fc.constant('10.0.0.0/8'))),
        idle_timeout: seconds,
        memory: fc.integer({ min: 1_048_576, max: 1_073_741_824 }),
      }),
      admin: fc.record({ address: fc.constantFrom('off', 'localhost:9464', 'unix:/b') }),
      upstream: fc.record(
        {
          url: fc.constantFrom('http://device', 'https://[::1]:8443', 'http+unix:/a b'),
          host: fc.constantFrom('preserve', 'target', 'device:80', '10.0.0.1', '[::1]:80'),
          headers: fc.dictionary(
            fc.constantFrom('X-A', 'null', '12', 'constructor'),
            fc.record({ file: text }),
          ),
          tls: fc.oneof(
            fc.record({ ca: text, cert: text, key: text }),
            fc.record({
              insecure: fc.boolean(),
              max_version: fc.constantFrom('TLSv1', 'TLSv1.3'),
              groups: fc.array(fc.constantFrom('X25519', 'P-256'), { minLength: 1, maxLength: 3 }),
              weak: fc.constant(true),
            }),
          ),
          auth: fc.oneof(
            fc.constant('off'),
            fc.record({ kind: fc.constantFrom('basic', 'digest'), ...account }),
            fc.record({ kind: fc.constant('session'), ...account, session: tokenSession }),
          ),
          health: fc.record({ path: fc.constantFrom(null, '/', '/null', '/a:b') }),
        },
        { requiredKeys: ['url'] },
      ),
      password,
      tokens: fc.record({ rotate_refresh: fc.boolean(), refresh_grace: seconds }),
      limits: fc.record({
        api: fc.record({ window: seconds, per: fc.constantFrom('client', 'grant', 'device') }),
      }),
      public_paths: fc.array(fc.constantFrom('/a', '/b/')),
      state_dir: text,
      realm: fc.constantFrom('x', 'null', 'true', '12', "it's", ' '),
    })
    fc.assert(
      fc.property(file, (tree) => {
        // JSON is YAML.
        const given = { file: JSON.stringify(tree) }
        // `toStrictEqual` compares the property `constructor`, which may be the name of a header.
        expect(isDeepStrictEqual(load({ file: effectiveYaml(given) }), load(given))).toBe(true)
      }),
    )
  })

  it('loads as the same configuration with public paths that are signed in', () => {
    const auth = 'upstream.auth={kind: basic, user: a, password: {file: p}}'
    const sets = [auth, 'public_paths=[/a/, {path: /b, signed_in: true}]']
    const config = load({ sets })
    expect(config.publicPaths).toEqual(['/a/', { path: '/b', signedIn: true }])
    expect(load({ file: effectiveYaml({ sets }) })).toEqual(config)
  })

  it('loads as the same configuration with a pin', () => {
    const pin = `sha256/${Buffer.alloc(32, 1).toString('base64')}`
    const sets = ['upstream.url=https://d', `upstream.tls.pin=${pin}`]
    expect(load({ file: effectiveYaml({ sets }) })).toEqual(load({ sets }))
  })

  it('contains no key that a file may not have', () => {
    expect(load({ file: effectiveYaml({ file: MINIMAL }) })).toStrictEqual(load())
  })
})
