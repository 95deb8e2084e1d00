import { hash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { Credential } from '../../src/password/stored-line.ts'
import { parseStoredLine } from '../../src/password/stored-line.ts'
import { createVerifier, formsOf, type Verifier } from '../../src/password/verifier.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { shareOfThread } from '../support/lived-time.ts'
import { run } from '../support/tools.ts'
import { PASSWORDS, VECTORS } from './vectors.ts'
import { verifyOne } from './verify-one.ts'

function opened(): Verifier {
  const verifier = createVerifier(stillClock())
  closeLater(() => verifier.close())
  return verifier
}

function credential(line: string | undefined): Credential {
  const parsed = parseStoredLine(line ?? expect.fail('no such vector'), true)
  return typeof parsed === 'string' ? expect.fail(parsed) : parsed
}

function vector(tool: string): Credential {
  return credential(VECTORS.find(([name, password]) => name === tool && password === 'unicode')?.[2])
}

// `mkpasswd -m bcrypt -R 10`, the cost of most firmware and of `htpasswd -C 10`. The vectors are cheaper.
const BCRYPT_10 = '$2b$10$gACFa49eHRbvUBaspxI3kO4wgynE6hORKekKRQ.iaq9iZh8of6pj6'

// `mkpasswd -m sha512crypt -R 1000`, a fifth of the default cost.
const SHA512_1000 =
  '$6$rounds=1000$zhx8BP3AJj0Qd5xp$o93EMv0I21kY3LEiT1./I9dhIAHESMGMcH.rtS3HedX9LAMMu2w6QZBNOOV8l3JI0S4aagRbfPMGwwTH7pRQa/'
const SCRYPT_10 = '$scrypt$ln=10,r=4,p=3$c2l4dGVlbiBzYWx0IGJ5dA$GeU3Qi2HwZ6RZBL3/Kf8oBN93DI5NHCXLTHl3tZDf+E'

/**
 * A cheap hash, and a costly one for the first verifications: the default cost of real tools, or more. `$apr1$` runs where `$1$` does,
 * and `$5$` where `$6$` does.
 */
const KINDS: readonly [kind: string, cheap: () => Credential, costly?: () => Credential][] = [
  [
    'argon2id',
    () => vector('argon2 -id -m 10 -t 3 -p 4 -l 24'),
    () => vector('argon2 -id -k 19456 -t 2 -p 1 -l 32'),
  ],
  ['scrypt', () => credential(SCRYPT_10), () => vector('hashlib.scrypt')],
  ['bcrypt', () => vector('mkpasswd -m bcrypt -R 6'), () => credential(BCRYPT_10)],
  ['$1$', () => vector('openssl passwd -1')],
  ['$6$', () => credential(SHA512_1000), () => vector('mkpasswd -m sha512crypt -R 20000')],
]
/** How many verifications get the costly hash. */
const COSTLY = 4

describe('Two hundred concurrent verifications', () => {
  it.each(KINDS)(
    'H32 leave the event loop free: less than half of their work is done on it: %s',
    async (_kind, cheap, costly = cheap) => {
      const verifier = opened()
      await verifyOne(verifier, cheap(), 'warm up', '192.0.2.1')
      const share = shareOfThread()
      const verdicts = await Promise.all(
        Array.from({ length: 200 }, (_, place) =>
          // Each with a credential of its own: the same one would be compared once for all.
          verifyOne(verifier, place < COSTLY ? costly() : cheap(), PASSWORDS.unicode, '192.0.2.1'),
        ),
      )
      expect(share()).toBeLessThan(0.5)
      expect(verdicts).not.toContain('wrong')
      // Two that begin at once, and 64 that wait.
      expect(verdicts.filter((verdict) => verdict === 'right')).toHaveLength(66)
    },
  )

  it('H32 are bounded: sixty-six are accepted, the others are refused at once', async () => {
    const verifier = opened()
    const stored = vector('mkpasswd -m bcrypt -R 6')
    let settled = 0
    const all = Array.from({ length: 200 }, async (_, i) => {
      const verdict = await verifyOne(verifier, stored, `wrong ${i}`, '192.0.2.1')
      settled += 1
      return { verdict, place: settled }
    })
    const overloaded = (await Promise.all(all)).filter(({ verdict }) => verdict === 'overloaded')
    expect(overloaded).toHaveLength(134)
    expect(overloaded.every(({ place }) => place <= 134)).toBe(true)
  })

  it('H32 of a password in plain text are all accepted', async () => {
    const verifier = opened()
    const stored = credential('secret')
    const verdicts = await Promise.all(
      Array.from({ length: 200 }, () => verifyOne(verifier, stored, 'secret', '192.0.2.1')),
    )
    expect(new Set(verdicts)).toEqual(new Set(['right']))
  })
})

it('H32 a client that floods logins delays the login of another client by a few turns, and does not shut it out', async () => {
  const verifier = opened()
  const stored = credential(SCRYPT_10)
  let done = 0
  const flood = Array.from({ length: 200 }, async (_, i) => {
    const verdict = await verifyOne(verifier, stored, `wrong ${i}`, '192.0.2.66')
    if (verdict === 'wrong') done += 1
  })
  expect(await verifyOne(verifier, stored, PASSWORDS.unicode, '192.0.2.1')).not.toBe('overloaded')
  // The two that were under way, and those that were drawn before it, each of two with a chance of a half; not the 64 that waited.
  expect(done).toBeLessThan(20)
  await Promise.all(flood)
})

describe('The forms of a password', () => {
  const [composed, decomposed] = ['caf\u00e9', 'cafe\u0301']
  /** `printf 'caf\u00e9' | openssl passwd -1 -salt salt -stdin`, and the same of `cafe\u0301`. */
  const lines = { nfc: '$1$salt$8LK2ccq1WNBdY1BaIa64V.', nfd: '$1$salt$SNiniucu7hYdhBynWEsVz/' }

  it('match a hash of the composed or the decomposed one, whichever comes', async () => {
    const verifier = opened()
    for (const line of [lines.nfc, lines.nfd]) {
      for (const form of [composed, decomposed])
        expect(await verifyOne(verifier, credential(line), form, '192.0.2.1'), line).toBe('right')
    }
    expect(await verifyOne(verifier, credential(lines.nfc), 'cafe', '192.0.2.1')).toBe('wrong')
  })

  it('H195 are compared with every credential, and the bytes as they came are matched first', async () => {
    const both = [credential(lines.nfd), credential(lines.nfc)]
    const verifier = opened()
    expect(await verifier.verify(both, decomposed, 'client')).toEqual([0])
    expect(await verifier.verify(both, composed, 'client')).toEqual([1])
    // Neither composed nor decomposed: the composed one comes before the other.
    const mixed = formsOf('e\u0301\u00e9')
    expect(mixed).toEqual(['e\u0301\u00e9', '\u00e9\u00e9', 'e\u0301e\u0301'])
  })

  it('are at most 511 bytes long', () => {
    expect(formsOf('\u00e9'.repeat(170))).toEqual(['\u00e9'.repeat(170), 'e\u0301'.repeat(170)])
    expect(formsOf('\u00e9'.repeat(171))).toEqual(['\u00e9'.repeat(171)])
    expect(formsOf('plain')).toEqual(['plain'])
  })

  it('are all compared, whether the first one matches or none', async () => {
    let compared = 0
    const counted: Credential = {
      kind: 'plain',
      get digest() {
        compared += 1
        return hash('sha256', composed, 'buffer')
      },
    }
    const counts: number[] = []
    for (const password of [composed, decomposed, `${composed} wrong`]) {
      await verifyOne(opened(), counted, password, '192.0.2.1')
      counts.push(compared)
    }
    expect(counts).toEqual([2, 4, 6])
  })
})

describe('A verification', () => {
  it('of an overlong password does not run crypt(3)', async () => {
    const verifier = opened()
    // With ten million rounds, the test would time out if the hash were computed.
    const stored = credential(`$6$rounds=10000000$salt$${'x'.repeat(86)}`)
    expect(await verifyOne(verifier, stored, 'x'.repeat(512), '192.0.2.1')).toBe('wrong')
    expect(await verifyOne(verifier, stored, 'ü'.repeat(256), '192.0.2.1')).toBe('wrong')
  })

  it('of the longest password that crypt(3) accepts is computed', async () => {
    // `python3 -c 'import crypt; crypt.crypt("a" * 511, "$5$salt")'`, Python 3.11.7 with libxcrypt 4.4.33.
    const stored = credential('$5$salt$2FUznUDcll82P8L4OB2Aw8c7dBp/lwekrWP2/TAhbj0')
    expect(await verifyOne(opened(), stored, 'a'.repeat(511), '192.0.2.1')).toBe('right')
  })

  it('rejects if its thread fails, and the next one gets a new thread', async () => {
    const verifier = opened()
    // The parser never makes this credential, which makes bcrypt throw.
    const broken: Credential = { kind: 'bcrypt', hash: 'broken' }
    await expect(verifyOne(verifier, broken, 'x', '192.0.2.1')).rejects.toThrow('a password worker failed')
    await expect(verifyOne(verifier, broken, 'x', '192.0.2.1')).rejects.toThrow('a password worker failed')
    await expect(verifyOne(verifier, broken, 'x', '192.0.2.1')).rejects.toThrow('a password worker failed')
    expect(await verifyOne(verifier, vector('mkpasswd -m bcrypt -R 6'), PASSWORDS.unicode, '192.0.2.1')).toBe(
      'right',
    )
  })

  it('rejects if the verifier closes meanwhile or was closed before', async () => {
    const verifier = opened()
    const stored = credential(BCRYPT_10.replace('$10$', '$14$'))
    const pending = verifyOne(verifier, stored, 'x', '192.0.2.1')
    // After this turn the thread has its job.
    await Promise.resolve()
    verifier.close()
    await expect(pending).rejects.toThrow('a password worker failed')
    await expect(verifyOne(verifier, stored, 'x', '192.0.2.1')).rejects.toThrow('closed')
  })

  it('keeps the process alive until its result, and no longer', async () => {
    const source = `
      import { parseStoredLine } from ${JSON.stringify(new URL('../../src/password/stored-line.ts', import.meta.url))}
      import { createVerifier } from ${JSON.stringify(new URL('../../src/password/verifier.ts', import.meta.url))}
      const parsed = parseStoredLine(${JSON.stringify(BCRYPT_10)}, false)
      import { stillClock } from ${JSON.stringify(new URL('../support/clock.ts', import.meta.url))}
      createVerifier(stillClock()).verify([parsed], ${JSON.stringify(PASSWORDS.unicode)}, '192.0.2.1').then(console.log)
    `
    const done = await run(process.execPath, ['--eval', source])
    expect(done).toEqual({ code: 0, stdout: '[ 0 ]\n', stderr: '' })
  })
})
