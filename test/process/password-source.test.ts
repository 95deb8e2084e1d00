import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { PASSWORDS, VECTORS } from '../password/vectors.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { PASSWORD, type YamlPart } from '../support/sidecar.ts'
import { underFileModes } from '../support/tools.ts'
import { runInProcess } from './in-process.ts'
import { prepareSite, runPostern, type Serving, type Site } from './serve.ts'

/** Checks two logins, one with a wrong password, and returns the access token of the other. */
async function expectLogin(sidecar: Serving, right: string, wrong: string): Promise<string> {
  const [yes, no] = await Promise.all([sidecar.login(right), sidecar.login(wrong)])
  expect([no.status, no.json().error]).toEqual([400, 'invalid_grant'])
  expect([yes.status, yes.json().token_type]).toEqual([200, 'Bearer'])
  return String(yes.json().access_token)
}

/** Makes each line the password in turn. A stream under the earlier password breaks when the next one takes effect. */
async function expectAll(site: Site, source: YamlPart, lines: readonly [string, string][]): Promise<void> {
  site.device.handle((_request, response) => {
    response.write('streaming')
  })
  const write = (line: string): void =>
    writeFileSync(
      site.passwordFile,
      'file' in source ? `${line}\n` : `root:*:1:0::::\nadmin:${line}:1:0:::\n`,
    )
  const [first] = lines
  write(first?.[1] ?? '')
  site.configure({ password: { file: undefined, ...source } })
  const sidecar = await site.serveHere()
  for (const [i, [password]] of lines.entries()) {
    const token = await expectLogin(sidecar, password, `${password}.`)
    const next = lines[i + 1]
    if (next === undefined) break
    const connection = await sidecar.connect()
    const stream = connection.start({ fields: ['Authorization', `Bearer ${token}`] })
    await stream.waitFor('streaming')
    write(next[1])
    await expect(stream.response).rejects.toThrow('the connection')
  }
}

const vector = (tool: string): [string, string] => {
  const [, which, line] = VECTORS.find(([name]) => name.startsWith(tool)) ?? ['', 'unicode', 'none']
  return [PASSWORDS[which], line]
}

it('a password file accepts the password in plain text and each kind of hash that the real tools make', async () => {
  const site = await prepareSite()
  await expectAll(site, { file: site.passwordFile }, [
    [PASSWORD, PASSWORD],
    vector('argon2 -id -k'),
    vector('hashlib.scrypt'),
    vector('mkpasswd -m bcrypt-a'),
    vector('mkpasswd -m bcrypt -R'),
    vector('htpasswd -nb -B'),
    vector('openssl passwd -1'),
    vector('openssl passwd -5'),
    vector('mkpasswd -m sha512crypt'),
  ])
})

it('an htpasswd file accepts the password of the configured user', async () => {
  const site = await prepareSite()
  const lines = [
    'htpasswd -nb -B',
    'htpasswd -nb -m',
    'htpasswd -nb -2',
    'htpasswd -nb -5',
    'htpasswd -nb -s',
  ]
  await expectAll(site, { htpasswd: { file: site.passwordFile, user: 'admin' } }, lines.map(vector))
})

it('a shadow file accepts the password of the configured user', async () => {
  const site = await prepareSite()
  const lines = ['openssl passwd -1', 'mkpasswd -m sha256crypt', 'openssl passwd -6', 'mkpasswd -m bcrypt']
  await expectAll(site, { shadow: { file: site.passwordFile, user: 'admin' } }, lines.map(vector))
})

it('a password source that cannot be used ends the start with exit 2 and the reason, without the secret', async () => {
  const folder = temporaryDirectory()
  const file = (path: string): YamlPart => ({ file: path })
  const cases: readonly [content: string, source: (path: string) => YamlPart, reason: string][] = [
    ['', (path) => file(`${path}.none`), 'there is no such file'],
    ['', file, 'it is empty, and an empty password is never accepted'],
    ['$y$j9T$secret$secret\n', file, 'it is a hash of an unsupported kind'],
    ['other:secret\n', (path) => ({ htpasswd: { file: path, user: 'admin' } }), 'it has no user "admin"'],
    [
      'root:!secret:1::::::\n',
      (path) => ({ shadow: { file: path, user: 'admin' } }),
      'it has no user "admin"',
    ],
  ]
  await Promise.all(
    cases.map(async ([content, source, reason], i) => {
      const [path, config] = [join(folder, `password-${i}`), join(folder, `config-${i}`)]
      writeFileSync(path, content)
      const yaml = {
        upstream: { url: 'http://127.0.0.1:9' },
        password: source(path),
        state_dir: `${path}-state`,
      }
      writeFileSync(config, JSON.stringify({ ...yaml, listen: { tls: 'off' } }))
      const { code, stdout, stderr } = await runInProcess(['serve', '--config', config])
      expect([code, stdout]).toEqual([2, ''])
      expect(stderr).toMatch(/^postern serve: \/\S+config-\d:1: password\.\S+: \/.*; .*\n$/)
      expect(stderr).toContain(reason)
      expect(stderr).not.toContain('secret')
    }),
  )
})

it('a password source that the process may not read ends the start with exit 2 and the reason', async () => {
  const path = join(temporaryDirectory(), 'password')
  writeFileSync(path, 'secret\n', { mode: 0o000 })
  const settings = {
    'password.file': path,
    'upstream.url': 'http://127.0.0.1:9',
    'listen.tls': 'off',
    'tokens.store': 'memory',
  }
  const sets = Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`])
  expect(await runPostern(['serve', ...sets], { under: underFileModes() })).toEqual({
    code: 2,
    signal: null,
    stdout: '',
    stderr: `postern serve: --set: password.file: ${path}: permission to read it is denied; let the user that runs Postern read it and search its folder\n`,
  })
})
