import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { listedKeys } from '../../deploy/build/reference.ts'
import type { Changes } from '../../src/config/changes.ts'
import { knownKeys } from '../../src/config/known-keys.ts'
import { sharedPair } from '../support/made-once.ts'
import { HASHED_PASSWORD, overlay, PASSWORD, startSidecar, type YamlPart } from '../support/sidecar.ts'

/** The keys that wait for a restart, if the password is in a file before the reload. */
const FOR_A_RESTART = [
  'listen.address',
  'listen.redirect',
  'admin.address',
  'admin.tls',
  'password.device',
  'password.socket',
  'passwords',
  'tokens.store',
  'store.password_file',
  'store.prefix',
  'store.replicas',
  'store.tls.ca',
  'limits.store',
  'state_dir',
]

/** A part of a configuration in which the key has this value. */
const partOf = (key: string, value: unknown): YamlPart =>
  // The cast holds because a key has at least one name.
  key.split('.').reduceRight((below, name) => ({ [name]: below }), value) as YamlPart

/** Whether the changes name the key, a section with it, or a header of it. */
const names = (changes: readonly string[], key: string): boolean =>
  changes.some((each) => `${each}.`.startsWith(`${key}.`) || `${key}.`.startsWith(`${each}.`))

const KEYS = knownKeys()
  .filter(({ field }) => field.keys.size === 0)
  .map(({ path }) => path.join('.'))

it('a reload applies each key or names it for a restart, and another one takes it back', async () => {
  const sidecar = await startSidecar({ transport: 'tls' })
  const at = (name: string): string => join(sidecar.directory, name)
  const fileOf = (name: string, line: string): string => {
    writeFileSync(at(name), `${line}\n`, { mode: 0o600 })
    return at(name)
  }
  const shared = sharedPair()
  if (shared === 'auto') expect.unreachable('this is a test')
  const pair = { cert: at('cert'), key: at('key') }
  for (const part of ['cert', 'key'] as const) copyFileSync(shared[part], pair[part])
  const secret = fileOf('secret', 'a secret')
  const ofUser = { file: fileOf('users', `admin:${HASHED_PASSWORD}`), user: 'admin' }
  const account = { kind: 'digest', user: 'admin', password: { file: secret } }
  const login = { path: '/x', form: { p: '$password' } }
  const session = { login, token: { header: 'X-T' }, send: { header: 'X-T' } }

  /** In place of the example on the reference page: files that exist, and a value that differs from that of the start. */
  const values: Readonly<Record<string, unknown>> = {
    'listen.tls.cert': pair.cert,
    'listen.tls.key': pair.key,
    'admin.password_file': secret,
    'upstream.headers': { 'X-A': { file: secret } },
    'upstream.tls.ca': pair.cert,
    'upstream.tls.cert': pair.cert,
    'upstream.tls.key': pair.key,
    'upstream.auth.password.file': secret,
    'upstream.auth.session.login.json': login.form,
    'upstream.auth.session.login.form': login.form,
    'password.file': fileOf('same', PASSWORD),
    'password.htpasswd.file': ofUser.file,
    'password.htpasswd.user': ofUser.user,
    'password.shadow.file': ofUser.file,
    'password.shadow.user': ofUser.user,
    'tokens.store': 'file',
    'log.level': 'info',
    'log.format': 'pretty',
  }
  /** What a section needs beside the key. */
  const beside: Readonly<Record<string, YamlPart>> = {
    'listen.tls': { listen: { tls: pair } },
    'listen.tls.names': { listen: { tls: { cert: undefined, key: undefined } } },
    'upstream.tls': { upstream: { url: 'https://127.0.0.1' } },
    'upstream.tls.cert': { upstream: { tls: pair } },
    'upstream.tls.key': { upstream: { tls: pair } },
    'upstream.auth': { upstream: { auth: account } },
    'upstream.auth.check_path': { upstream: { auth: { kind: 'basic' } } },
    'upstream.auth.session': { upstream: { auth: { kind: 'session', user: undefined, session } } },
    'upstream.auth.session.login.json': { upstream: { auth: { session: { login: { form: undefined } } } } },
    'upstream.auth.session.token.cookie': { upstream: { auth: { session: { token: undefined } } } },
    'upstream.auth.session.token.json': { upstream: { auth: { session: { token: undefined } } } },
    password: { password: { file: undefined } },
    'password.htpasswd': { password: { htpasswd: ofUser } },
    'password.shadow': { password: { shadow: ofUser } },
    'password.device': {
      upstream: { auth: { kind: 'basic', user: 'admin', password: undefined, check_path: '/x' } },
    },
    passwords: { password: undefined },
    'limits.store': { tokens: { store: 'valkey://127.0.0.1' } },
  }
  const changeOf = (key: string): YamlPart => {
    const sections = key.split('.').map((_, at, all) => all.slice(0, at + 1).join('.'))
    const needed = sections.reduce((part, name) => overlay(part, beside[name] ?? {}), {} as YamlPart)
    return overlay(needed, partOf(key, values[key] ?? listedKeys.get(key)?.example))
  }

  const waiting: string[] = []
  for (const key of KEYS) {
    // The cast holds because it is what `Sidecar.reload` returns.
    const { live, restart } = (await sidecar.reload(changeOf(key))) as Changes
    if (names(restart, key)) waiting.push(key)
    else expect(names(live, key), key).toBe(true)
    const back = (await sidecar.reload({})) as Changes
    expect({ ...back, live: [...back.live].sort() }, key).toEqual({ live: [...live].sort(), restart: [] })
  }
  expect(waiting).toEqual(FOR_A_RESTART)
  expect((await sidecar.request({ token: await sidecar.token() })).status).toBe(200)
})
