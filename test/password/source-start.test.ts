import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { passwordSources } from '../../src/config/password-fields.ts'
import { openPasswords, type Passwords } from '../../src/password/sources.ts'
import { SetupError } from '../../src/system/setup-error.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { needs, run } from '../support/tools.ts'
import { PASSWORDS, VECTORS } from './vectors.ts'

type Source = NonNullable<Parameters<typeof passwordSources>[0]['password']>

function openSource(source: Source): Promise<Passwords> {
  return openPasswords(passwordSources({ password: source }), { clock: stillClock() })
}

async function opened(config: Source): Promise<Passwords> {
  const source = await openSource(config)
  closeLater(() => source[Symbol.dispose]())
  return source
}

function written(content: string | Uint8Array): string {
  const file = join(temporaryDirectory(), 'password')
  writeFileSync(file, content)
  return file
}

function line(tool: string): string {
  return VECTORS.find(([name]) => name === tool)?.[2] ?? expect.fail('no such vector')
}

const BCRYPT = line('htpasswd -nb -B')
const SHA512 = line('openssl passwd -6')

async function refusal(config: Source): Promise<string> {
  const source = openSource(config)
  const error: unknown = await source.then(
    (open) => {
      open[Symbol.dispose]()
      expect.fail('the source was accepted')
    },
    (failure: unknown) => failure,
  )
  return error instanceof SetupError ? error.message : expect.fail(String(error))
}

describe('A password file', () => {
  it.each([
    ['no line end', 'hunter2'],
    ['the line end of Unix', 'hunter2\n'],
    ['the line end of Windows', 'hunter2\r\n'],
    ['a byte order mark, as editors on Windows write it', '\ufeffhunter2\r\n'],
  ])('may have %s', async (_what, content) => {
    const source = await opened({ file: written(content) })
    expect(await source.verify('hunter2', '192.0.2.1')).toMatchObject({ result: 'right' })
    expect(await source.verify('hunter2\n', '192.0.2.1')).toMatchObject({ result: 'wrong' })
    expect(source.state()).toMatchObject({ readable: true })
  })

  it('keeps spaces around a password in plain text', async () => {
    const source = await opened({ file: written(' hunter2 \n') })
    expect(await source.verify(' hunter2 ', '192.0.2.1')).toMatchObject({ result: 'right' })
    expect(await source.verify('hunter2', '192.0.2.1')).toMatchObject({ result: 'wrong' })
  })

  it('may be 64 KiB long, and not a byte longer', async () => {
    const file = written('x'.repeat(65_536))
    await opened({ file })
    writeFileSync(file, 'x'.repeat(65_537))
    expect(await refusal({ file })).toBe(
      `password.file: ${file}: it is larger than 64 KiB; name another file`,
    )
  })

  it('may contain a hash', async () => {
    const source = await opened({ file: written(`${SHA512}\n`) })
    expect(await source.verify(PASSWORDS.unicode, '192.0.2.1')).toMatchObject({ result: 'right' })
    expect(await source.verify(SHA512, '192.0.2.1')).toMatchObject({ result: 'wrong' })
  })

  it.each<[string, string | Uint8Array, string]>([
    ['empty', '', 'it is empty, and an empty password is never accepted'],
    ['only an end of line', '\r\n', 'it is empty, and an empty password is never accepted'],
    ['several lines', 'hunter2\nhunter3\n', 'it has several lines, and must have exactly one'],
    ['a line and an empty one', 'hunter2\n\n', 'it has several lines, and must have exactly one'],
    ['no UTF-8', Buffer.from('hunter2ü', 'latin1'), 'it is not valid UTF-8'],
    ['UTF-16 with its byte order mark', Buffer.from('\ufeffhunter2', 'utf16le'), 'it is not valid UTF-8'],
    ['UTF-16 without', Buffer.from('hunter2', 'utf16le'), 'it contains a NUL byte'],
    [
      'half a hash',
      SHA512.slice(0, 60),
      'it is not a complete SHA crypt hash ($5$salt$hash or $6$salt$hash)',
    ],
  ])(
    'that is %s is refused with its path and the reason, without its content',
    async (_what, content, reason) => {
      const file = written(content)
      const message = await refusal({ file })
      expect(message).toBe(
        `password.file: ${file}: ${reason}; postern hash-password > ${file} writes a usable one`,
      )
      expect(message).not.toContain('hunter')
    },
  )

  it('that is missing, a folder or a pipe is refused without blocking', async () => {
    const folder = temporaryDirectory()
    const file = join(folder, 'pipe')
    expect(await refusal({ file })).toBe(
      `password.file: ${file}: there is no such file; postern hash-password > ${file} writes a usable one`,
    )
    expect(await refusal({ file: folder })).toBe(
      `password.file: ${folder}: it is a folder; name the file in it`,
    )
    expect(await refusal({ file: join(folder, 'no', 'such') })).toContain('there is no such file')
    needs('mkfifo')
    execFileSync('mkfifo', [file])
    expect(await refusal({ file })).toBe(
      `password.file: ${file}: it is not a regular file; name another file`,
    )
  })
})

describe('An htpasswd file', () => {
  it('is read for one user, among comments and other users', async () => {
    const file = written(`# comment\n\nother:${SHA512}\nadmin:${BCRYPT}\nadmin2:${SHA512}\n`)
    const source = await opened({ htpasswd: { file, user: 'admin' } })
    expect(await source.verify(PASSWORDS.unicode, '192.0.2.1')).toMatchObject({ result: 'right' })
    expect(await source.verify('hunter2', '192.0.2.1')).toMatchObject({ result: 'wrong' })
  })

  it('has its first entry of a user in effect, as in Apache', async () => {
    const file = written(`admin:{SHA}${'A'.repeat(27)}=\nadmin:${BCRYPT}\n`)
    const source = await opened({ htpasswd: { file, user: 'admin' } })
    expect(await source.verify(PASSWORDS.unicode, '192.0.2.1')).toMatchObject({ result: 'wrong' })
  })

  it('without the user or a hash that can be verified is refused', async () => {
    const file = written(`admin:hunter2\nempty:\n#ghost:${BCRYPT}\nnocolon\n`)
    const ask = (user: string) => refusal({ htpasswd: { file, user } })
    expect(await ask('nobody')).toBe(
      `password.htpasswd.file: ${file}: it has no user "nobody"; correct the path, or the entry of nobody in the file`,
    )
    expect(await ask('ghost')).toContain('it has no user "ghost"')
    expect(await ask('nocolon')).toContain('it has no user "nocolon"')
    expect(await ask('empty')).toContain('it is empty')
    expect(await ask('admin')).toMatch(/it is not a hash that can be verified; supported are (?!.*hunter2)/)
  })

  it('of the real htpasswd is read', async () => {
    needs('htpasswd')
    const file = join(temporaryDirectory(), 'htpasswd')
    await run('htpasswd', ['-ciB', file, 'admin'], { input: 'hunter2' })
    await run('htpasswd', ['-i', file, 'other'], { input: 'hunter3' })
    expect(
      await (await opened({ htpasswd: { file, user: 'admin' } })).verify('hunter2', '192.0.2.1'),
    ).toMatchObject({ result: 'right' })
    expect(
      await (await opened({ htpasswd: { file, user: 'other' } })).verify('hunter3', '192.0.2.1'),
    ).toMatchObject({ result: 'right' })
  })
})

describe('A shadow file', () => {
  it('is read for one user', async () => {
    const file = written(`root:*:19000:0:99999:7:::\nadmin:${SHA512}:19000:0:99999:7:::\n`)
    const source = await opened({ shadow: { file, user: 'admin' } })
    expect(await source.verify(PASSWORDS.unicode, '192.0.2.1')).toMatchObject({ result: 'right' })
    expect(await source.verify('19000', '192.0.2.1')).toMatchObject({ result: 'wrong' })
  })

  it.each(['*', '!', '!!', `!${SHA512}`])(
    'H234 in which %s locks the account has no password',
    async (field) => {
      const file = written(`root:${field}:19000:0:99999:7:::\n`)
      const source = await opened({ shadow: { file, user: 'root' } })
      expect(source.state()).toMatchObject({
        readable: true,
        absent: `password file ${file}: the account is locked`,
      })
      expect(await source.verify(PASSWORDS.unicode, '192.0.2.1')).toMatchObject({ result: 'wrong' })
    },
  )
})

describe('The fingerprint', () => {
  const salt = new Uint8Array(16).fill(7)

  it('C8 is equal across restarts if and only if the password is the same', async () => {
    const file = written('hunter2\n')
    const first = await (await opened({ file })).fingerprint(salt)
    writeFileSync(file, 'hunter2')
    expect(await (await opened({ file })).fingerprint(salt)).toBe(first)
    writeFileSync(file, 'hunter3')
    expect(await (await opened({ file })).fingerprint(salt)).not.toBe(first)
  })

  it('differs with another salt', async () => {
    const source = await opened({ file: written('hunter2') })
    expect(await source.fingerprint(new Uint8Array(16))).not.toBe(await source.fingerprint(salt))
  })

  it('depends on one user of a table, not on the others', async () => {
    const file = written(`admin:${BCRYPT}\nother:${SHA512}\n`)
    const first = await (await opened({ htpasswd: { file, user: 'admin' } })).fingerprint(salt)
    writeFileSync(file, `new:${SHA512}\nadmin:${BCRYPT}\n`)
    expect(await (await opened({ htpasswd: { file, user: 'admin' } })).fingerprint(salt)).toBe(first)
  })
})
