import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { changesBetween } from '../../src/config/changes.ts'
import { FORMER_RULE, formerKeys } from '../../src/config/former-auth.ts'
import { environmentName } from '../../src/config/known-keys.ts'
import { load, problemsIn } from './sources.ts'

const FILE = { password: { file: '/p' } }
const ACCOUNT = { user: 'admin', password: { file: '/etc/device' } }
const SESSION = {
  login: { path: '/l', json: { u: '$user', p: '$password' } },
  token: { header: 'X-T' },
  send: { header: 'X-T' },
}

/** The former spelling of each kind, and the present one. */
const PAIRS = [
  [{ basic: ACCOUNT }, { kind: 'basic', ...ACCOUNT }],
  [{ digest: { ...ACCOUNT, check_path: '/x' } }, { kind: 'digest', ...ACCOUNT, check_path: '/x' }],
  [
    { form: { ...ACCOUNT, check_path: '/x', path: '/login.cgi', success: { status: 302 } } },
    { kind: 'form', ...ACCOUNT, check_path: '/x', form: { path: '/login.cgi', success: { status: 302 } } },
  ],
  [{ form: { password: { file: '/d' } } }, { kind: 'form', password: { file: '/d' } }],
  [{ session: { ...ACCOUNT, ...SESSION } }, { kind: 'session', ...ACCOUNT, session: SESSION }],
  [
    { session: { ...SESSION, login: { path: '/l' } } },
    { kind: 'session', session: { ...SESSION, login: { path: '/l' } } },
  ],
] as const

const inMain = (auth: unknown): string =>
  JSON.stringify({ ...FILE, upstream: { url: 'http://device', auth } })
const inRoute = (auth: unknown): string =>
  JSON.stringify({
    ...FILE,
    upstream: { url: 'http://device', routes: { '/a.b/': { url: 'http://b', auth } } },
  })

describe('the former spelling of upstream.auth', () => {
  it.each(PAIRS.map((pair) => [JSON.stringify(pair[0]), ...pair] as const))(
    'H327 %s means the same as the present one, in each service and from each source',
    (_name, former, present) => {
      const wanted = load({ file: inMain(present) })
      expect(load({ file: inMain(former) })).toEqual(wanted)
      expect(changesBetween(wanted, load({ file: inMain(former) }))).toEqual({ live: [], restart: [] })
      expect(load({ file: inRoute(former) })).toEqual(load({ file: inRoute(present) }))

      const file = inMain('off')
      const text = JSON.stringify(former)
      expect(load({ file, env: { POSTERN_UPSTREAM_AUTH: text } })).toEqual(wanted)
      expect(load({ file, sets: [`upstream.auth=${text}`] })).toEqual(wanted)
      const [[kind = '', below] = []] = Object.entries(former)
      for (const [key, value] of Object.entries(below ?? {})) {
        if (typeof value === 'object') continue
        const others = JSON.stringify({ [kind]: { ...below, [key]: undefined } })
        const sets = [`upstream.auth=${others}`, `upstream.auth.${kind}.${key}=${value}`]
        expect(load({ file, sets })).toEqual(wanted)
      }
    },
  )

  it.each(formerKeys().map((path) => [path.join('.'), path] as const))(
    'H327 %s is a variable and a flag',
    (key, path) => {
      const [, , kind = '', name = ''] = path
      const isSession = kind === 'session'
      const needed = isSession ? { ...ACCOUNT, ...SESSION } : ACCOUNT
      const value =
        name === ''
          ? JSON.stringify(needed)
          : { user: 'other', password: '{file: /o}', check_path: '/o' }[name]
      const text = path.at(-1) === 'file' ? '/o' : String(value)
      const file = inMain({ [kind]: needed })
      const before = load({ file })
      const after = load({ file, env: { [environmentName(path)]: text } })
      if (name !== '') expect(after).not.toEqual(before)
      expect(load({ file, sets: [`${key}=${text}`] })).toEqual(after)
      expect(FORMER_RULE.find(after)).toHaveLength(1)
    },
  )

  it('H327 is one problem beside the present one, wherever they come from, and the problem names both', () => {
    const both = (former: string, present: string): string =>
      `upstream.auth: must have one spelling, and has ${former}, which is the former one, and ${present}; keep the present one`
    const present = inMain({ kind: 'basic', ...ACCOUNT })
    expect(problemsIn({ file: present, sets: ['upstream.auth.basic.user=x'] })).toEqual([
      expect.stringContaining(both('upstream.auth.basic', 'upstream.auth.kind')),
    ])
    expect(
      problemsIn({
        file: inMain('off'),
        env: { POSTERN_UPSTREAM_AUTH_KIND: 'digest', POSTERN_UPSTREAM_AUTH_FORM_USER: 'x' },
      }),
    ).toEqual([expect.stringContaining(both('upstream.auth.form.user', 'upstream.auth.kind'))])
    expect(problemsIn({ file: inRoute({ user: 'a', digest: ACCOUNT }) })).toEqual([
      expect.stringContaining('upstream.routes./a.b/.auth: must have one spelling'),
    ])
  })

  it('H327 keeps the names and lines of its keys in problems', () => {
    const file = [
      'password: {file: /p}',
      'upstream:',
      '  url: http://device',
      '  auth:',
      '    digest:',
      '      user: a:b',
      '      pasword: {file: /d}',
    ].join('\n')
    expect(problemsIn({ file })).toEqual([
      expect.stringMatching(/^postern\.yaml:6: upstream\.auth\.digest\.user: must not contain a colon/),
      expect.stringMatching(/^postern\.yaml:7: upstream\.auth\.digest\.pasword: unknown key/),
    ])
  })

  it('H327 is warned of with the lines to write, which have no secret and mean the same', () => {
    for (const [former, present] of PAIRS) {
      const [warning] = FORMER_RULE.find(load({ file: inMain(former) }))
      expect(warning).toMatchObject({ key: 'upstream.auth' })
      const { form: _, session: __, ...moved } = present as Record<string, unknown>
      const lines = parse(
        String(warning?.remedy)
          .replace(/^write /, '')
          .replace(/, and below it .*/, ''),
      )
      expect(lines.auth).toMatchObject(moved)
      expect(warning?.remedy).not.toContain('$password')
      expect(FORMER_RULE.find(load({ file: inMain(present) }))).toEqual([])
    }
    expect(FORMER_RULE.find(load({ file: inRoute(PAIRS[0][0]) }))).toMatchObject([
      { key: 'upstream.routes./a.b/.auth' },
    ])
  })

  it('H327 of another kind replaces the whole account of a source of lower rank, and is a problem beside one of the same rank', () => {
    const FORM = { form: { ...ACCOUNT, check_path: '/x', path: '/login.cgi' } }
    const wanted = load({ file: inMain({ kind: 'basic', user: 'b', password: { file: '/b' } }) })
    const env = { POSTERN_UPSTREAM_AUTH_BASIC_USER: 'b', POSTERN_UPSTREAM_AUTH_BASIC_PASSWORD_FILE: '/b' }
    for (const former of [FORM, { form: {} }, { session: SESSION }])
      expect(load({ file: inMain(former), env })).toEqual(wanted)
    const whole = 'upstream.auth.basic={user: b, password: {file: /b}}'
    expect(load({ file: inMain(FORM), sets: [whole] })).toEqual(wanted)
    expect(
      load({ file: inMain('off'), env: { POSTERN_UPSTREAM_AUTH: JSON.stringify(FORM) }, sets: [whole] }),
    ).toEqual(wanted)
    expect(
      load({ file: inMain(FORM), sets: ['upstream={auth: {basic: {user: b, password: {file: /b}}}}'] }),
    ).toEqual(wanted)
    // A key with one spelling comes first among the variables.
    const formOnly = {
      POSTERN_UPSTREAM_AUTH_FORM_FIELDS: 'a=b',
      POSTERN_UPSTREAM_AUTH_FORM_PASSWORD_FILE: '/b',
    }
    expect(load({ file: inMain({ basic: { ...ACCOUNT, check_path: '/x' } }), env: formOnly })).toEqual(
      load({ file: inMain({ kind: 'form', password: { file: '/b' }, form: { fields: ['a=b'] } }) }),
    )

    expect(
      problemsIn({
        file: inMain('off'),
        sets: [whole, 'upstream.auth.digest={user: c, password: {file: /c}}'],
      }),
    ).toEqual(['--set: upstream.auth.digest: must not be set together with basic; keep one of the two'])
  })

  it('H327 is forgotten where a source of higher rank sets off', () => {
    const off = load({
      file: inMain({ basic: { user: 'a:b' }, digest: ACCOUNT }),
      sets: ['upstream.auth=off'],
    })
    expect(off).toEqual(load({ file: inMain('off') }))
    expect(FORMER_RULE.find(off)).toEqual([])
    const sets = ['upstream.auth=off', `upstream.auth=${JSON.stringify({ kind: 'digest', ...ACCOUNT })}`]
    expect(load({ file: inMain({ basic: ACCOUNT }), sets })).toEqual(
      load({ file: inMain({ kind: 'digest', ...ACCOUNT }) }),
    )
  })

  it('H327 is a flag of a route, too, whose name may contain everything', () => {
    const sets = [
      'upstream.routes./a.b/.auth.basic.user=admin',
      'upstream.routes./a.b/.auth.basic.password.file=/d',
    ]
    expect(load({ file: inRoute('off'), sets })).toEqual(
      load({ file: inRoute({ kind: 'basic', user: 'admin', password: { file: '/d' } }) }),
    )
    const headers = { file: inMain('off'), sets: ['upstream.headers.auth.basic=x'] }
    expect(load(headers).upstream.headers).toEqual({ 'auth.basic': 'x' })
  })

  it('H327 has its kind once', () => {
    expect(problemsIn({ file: inMain({ basic: { ...ACCOUNT, kind: 'digest' } }) })).toEqual([
      expect.stringContaining('upstream.auth.basic.kind: must be left out, because the kind is basic'),
    ])
  })

  it('H327 is warned of with the values as they are', () => {
    const account = { user: 'a,b', password: { file: '/d,e' } }
    const [warning] = FORMER_RULE.find(load({ file: inMain({ basic: account }) }))
    expect(parse(String(warning?.remedy).replace(/^write /, '')).auth).toEqual({ kind: 'basic', ...account })
  })
})
