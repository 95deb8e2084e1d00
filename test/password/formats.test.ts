import { beforeAll, describe, expect, it } from 'vitest'
import { hashPassword } from '../../src/password/key-derivation.ts'
import { parseStoredLine } from '../../src/password/stored-line.ts'
import { createVerifier, type Verification, type Verifier } from '../../src/password/verifier.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { needs, run } from '../support/tools.ts'
import { PASSWORDS, UNSUPPORTED, VECTORS } from './vectors.ts'
import { verifyOne } from './verify-one.ts'

const SHA512 = 'x'.repeat(86)

// One verifier for all tests, as in the sidecar, because each verifier starts its own threads.
let verifier: Verifier
beforeAll(() => {
  verifier = createVerifier(stillClock())
  closeLater(() => verifier.close())
})

function verify(line: string, password: string, plainAllowed = true): Promise<Verification> {
  const parsed = parseStoredLine(line, plainAllowed)
  return typeof parsed === 'string'
    ? expect.fail(`refused: ${parsed}`)
    : verifyOne(verifier, parsed, password, '192.0.2.1')
}

function reason(line: string, plainAllowed = true): string {
  const parsed = parseStoredLine(line, plainAllowed)
  return typeof parsed === 'string' ? parsed : expect.fail('the line was accepted')
}

describe('A stored line', () => {
  it.each(VECTORS)('of %s, password %s, accepts that password and no other', async (_tool, name, line) => {
    const password = PASSWORDS[name]
    expect(await verify(line, password, false)).toBe('right')
    expect(await verify(line, password.slice(1))).toBe('wrong')
    // One password per tool is enough: each of these costs as much time as the right one.
    if (name === 'block') return
    expect(await verify(line, password.toUpperCase())).toBe('wrong')
    expect(await verify(line, '')).toBe('wrong')
    expect(await verify(line, line)).toBe('wrong')
  })

  it('from the documentation of passlib is accepted', async () => {
    // passlib.hash.scrypt, "Format & Algorithm".
    const line = '$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E'
    expect(await verify(line, 'password')).toBe('right')
  })

  it('in plain text is compared byte by byte, in each of its forms', async () => {
    expect(await verify('caf\u00e9 ', 'caf\u00e9 ')).toBe('right')
    expect(await verify('caf\u00e9 ', 'cafe\u0301 ')).toBe('right')
    expect(await verify('cafe\u0301 ', 'caf\u00e9 ')).toBe('right')
    expect(await verify('caf\u00e9 ', 'cafe ')).toBe('wrong')
    // Compatibility forms (NFKC) are other passwords: the ligature and its letters, the blank and the no-break space.
    expect(await verify('\ufb01', 'fi')).toBe('wrong')
    expect(await verify('a b', 'a\u00a0b')).toBe('wrong')
    expect(await verify('caf\u00e9 ', 'caf\u00e9')).toBe('wrong')
    expect(await verify('caf\u00e9 ', '')).toBe('wrong')
  })

  it.each(['!bang', '*star', 'pa$$word', '$5 for coffee', '$', '$$', '{brace', '{SHA', 'user:name'])(
    'that begins like a hash but is none is a plain password: %s',
    async (line) => {
      expect(await verify(line, line)).toBe('right')
    },
  )

  it('with set padding bits in the base64 of bcrypt still matches', async () => {
    // The first is of mkpasswd. The last character of the second differs only in bits beyond the digest.
    const canonical = '$2a$05$tJiXZrrRBB6PJDplUT0i8uwWDbwnqMvCEzAOFjvvsWeStYc8S7wBC'
    expect(await verify(canonical, PASSWORDS.unicode)).toBe('right')
    expect(await verify(`${canonical.slice(0, -1)}D`, PASSWORDS.unicode)).toBe('right')
    expect(await verify(`${canonical.slice(0, -1)}G`, PASSWORDS.unicode)).toBe('wrong')
  })

  it('never accepts a password with a NUL, where bcrypt would end the password', async () => {
    const line = '$2b$06$Ldz0lnUE37.EoTRcMv4RM.wFuKJNfSCR9gYCGsNSBuZBdbAv3nqTi'
    expect(await verify(line, `${PASSWORDS.block}\0${PASSWORDS.block}`)).toBe('wrong')
  })
})

describe('A stored line is refused with a reason that does not quote it', () => {
  it.each(UNSUPPORTED)('if it is a hash of an unsupported kind: %s', (line) => {
    expect(reason(line)).toMatch(/unsupported kind; supported are \$argon2id\$, \$scrypt\$, bcrypt .*\$6\$/)
  })

  it.each([
    ['', 'it is empty'],
    [`"$6$salt$${SHA512}"`, 'quotes stand around the hash'],
    [`'{SHA}87u9ZqY9S/F0eUBXjsPQEDUw4h0='`, 'quotes stand around the hash'],
    [`\u201c$6$salt$${SHA512}\u201d`, 'quotes stand around the hash'],
    [`"$6$salt$${SHA512}`, 'quotes stand around the hash'],
    ['se\0cret', 'NUL'],
    ['$2b$10$tooshort', 'not a complete bcrypt hash'],
    ['$2b$03$Ldz0lnUE37.EoTRcMv4RM.wFuKJNfSCR9gYCGsNSBuZBdbAv3nqTi', 'cost is below 4'],
    ['$2b$17$Ldz0lnUE37.EoTRcMv4RM.wFuKJNfSCR9gYCGsNSBuZBdbAv3nqTi', 'cost is more than 16'],
    ['$1$salt$short', 'not a complete MD5 crypt hash'],
    [`$6$salt$${SHA512}x`, 'not a complete SHA crypt hash'],
    [`$5$salt$${SHA512}`, 'not a complete SHA crypt hash'],
    [`$6$rounds=999$salt$${SHA512}`, 'rounds are below 1000'],
    [`$6$rounds=10000001$salt$${SHA512}`, 'more than 10 million'],
    ['{SHA}short', 'not a complete {SHA} hash'],
    ['$argon2id$v=19$m=1024,t=3$b3RoZXJzYWx0$mIDTJVGWLPLkm83UW+N/ICz6', 'not a complete $argon2id$'],
    ['$argon2id$v=16$m=1024,t=3,p=4$b3RoZXJzYWx0$JRzDDK8UhNQzJ4WVCoJSYtePw4LLJRou', 'version is not 19'],
    ['$argon2id$v=19$m=1048577,t=1,p=1$b3RoZXJzYWx0$mIDTJVGWLPLkm83UW+N/ICz6', 'more than 1 GiB'],
    ['$argon2id$v=19$m=1048576,t=17,p=1$b3RoZXJzYWx0$mIDTJVGWLPLkm83UW+N/ICz6', 'cost is too high'],
    ['$argon2id$v=19$m=8,t=1,p=2$b3RoZXJzYWx0$mIDTJVGWLPLkm83UW+N/ICz6', 'outside of RFC 9106'],
    ['$argon2id$v=19$m=1024,t=1,p=65$b3RoZXJzYWx0$mIDTJVGWLPLkm83UW+N/ICz6', 'parallelism is more than 64'],
    ['$argon2id$v=19$m=1024,t=3,p=4$b3RoZXJzYWx0$mIDT', 'its hash is not 12 to 128 bytes'],
    ['$scrypt$ln=20,r=8,p=1$c2l4dGVlbiBzYWx0IGJ5dA$GeU3Qi2HwZ6RZBL3/Kf8oBN93DI', 'more than 1 GiB'],
    ['$scrypt$ln=999,r=8,p=1$c2l4dGVlbiBzYWx0IGJ5dA$GeU3Qi2HwZ6RZBL3/Kf8oBN93DI', 'more than 1 GiB'],
    ['$scrypt$ln=14,r=8,p=9999$c2l4dGVlbiBzYWx0IGJ5dA$GeU3Qi2HwZ6RZBL3/Kf8oBN93DI', 'cost is too high'],
    ['$scrypt$ln=0,r=8,p=1$c2l4dGVlbiBzYWx0IGJ5dA$GeU3Qi2HwZ6RZBL3/Kf8oBN93DI', 'outside of RFC 7914'],
    ['$scrypt$ln=14,r=8,p=1$c2l4$GeU3Qi2HwZ6RZBL3/Kf8oBN93DI', 'its salt is shorter than 8 bytes'],
  ])('%j: %s', (line, expected) => {
    expect(reason(line)).toContain(expected)
    expect(line.length > 8 && reason(line).includes(line.slice(-8))).toBe(false)
  })

  it.each(['!', '*', '!!', '!$6$salt$hash'])('if it is a locked account of a password table: %s', (line) => {
    expect(reason(line, false)).toBe('the account is locked')
  })

  it.each(['secret', 'iP4Yrd48IWZGU', 'x'])('if a password table contains %s instead of a hash', (line) => {
    expect(reason(line, false)).toContain('not a hash that can be verified')
  })
})

describe('A new hash of an installed tool accepts its password', () => {
  // Around the block and digest sizes of MD5, SHA-256 and SHA-512, where implementations of crypt(3) often fail.
  const lengths = [1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 128]

  it.each(['-1', '-apr1', '-5', '-6'])('openssl passwd %s', async (kind) => {
    needs('openssl')
    const passwords = lengths.map((length) => 'a1ü'.repeat(length).slice(0, length))
    const { stdout } = await run('openssl', ['passwd', kind, '-stdin'], {
      input: `${passwords.join('\n')}\n`,
    })
    const lines = stdout.trim().split('\n')
    expect(lines).toHaveLength(passwords.length)
    for (const [i, line] of lines.entries()) {
      const password = passwords[i] ?? expect.fail()
      expect(await verify(line, password, false), `length ${lengths[i]}`).toBe('right')
      expect(await verify(line, `${password}x`, false), `length ${lengths[i]}`).toBe('wrong')
    }
  })

  it.each([
    ['md5crypt'],
    ['sha256crypt', '-R', '1000'],
    ['sha512crypt', '-R', '7777'],
    ['bcrypt', '-R', '5'],
    ['bcrypt-a', '-R', '4'],
  ])('mkpasswd -m %s', async (method, ...rounds) => {
    needs('mkpasswd')
    const { stdout } = await run('mkpasswd', ['-s', '-m', method, ...rounds], { input: 'Grüße aus Köln\n' })
    expect(await verify(stdout.trim(), 'Grüße aus Köln', false)).toBe('right')
  })

  it.each(['-B', '-m', '-s', '-2', '-5'])('htpasswd -ni %s', async (kind) => {
    needs('htpasswd')
    const { stdout } = await run('htpasswd', ['-ni', kind, 'user'], { input: 'Grüße\n' })
    expect(await verify(stdout.trim().slice('user:'.length), 'Grüße', false)).toBe('right')
  })

  it('argon2 -id', async () => {
    needs('argon2')
    const { stdout } = await run('argon2', ['somesalt', '-id', '-e', '-m', '12', '-p', '2'], {
      input: 'Grüße',
    })
    expect(await verify(stdout.trim(), 'Grüße', false)).toBe('right')
  })
})

describe('hashPassword', () => {
  it('writes argon2id with the parameters that OWASP recommends, and a new salt each time', async () => {
    const [one, other] = await Promise.all([hashPassword('Grüße'), hashPassword('Grüße')])
    expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
    expect(one).not.toBe(other)
    expect(await verify(one, 'Grüße')).toBe('right')
    expect(await verify(one, 'Grüsse')).toBe('wrong')
  })

  it('agrees with the reference implementation of argon2', async () => {
    needs('argon2')
    // The command line of argon2 takes the salt as text, so the salt is ASCII.
    const line = VECTORS.find(
      ([tool, name]) => tool.startsWith('argon2 -id -k 19456') && name === 'unicode',
    )?.[2]
    const options = ['saltsaltsaltsalt', '-id', '-e', '-k', '19456', '-t', '2', '-p', '1', '-l', '32']
    expect((await run('argon2', options, { input: PASSWORDS.unicode })).stdout.trim()).toBe(line)
  })
})
