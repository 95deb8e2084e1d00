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
})
