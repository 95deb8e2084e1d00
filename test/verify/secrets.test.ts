import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createSecrets } from '../../src/verify/secrets.ts'

const html = (text: string): string =>
  text.replace(
    /[&<>"']/g,
    (each) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' })[each] ?? each,
  )

/** Every way in which a server may write a text. */
const ENCODINGS: Readonly<Record<string, (text: string) => string>> = {
  plain: (text) => text,
  url: encodeURIComponent,
  'url in lower case': (text) =>
    encodeURIComponent(text).replace(/%[0-9A-F]{2}/g, (each) => each.toLowerCase()),
  'URL that keeps what it may': (text) => encodeURI(text),
  'every byte percent-encoded': (text) => Buffer.from(text).toString('hex').replace(/../g, '%$&'),
  form: (text) => new URLSearchParams([['a', text]]).toString().slice(2),
  json: (text) => JSON.stringify(text).slice(1, -1),
  'JSON in ASCII': (text) =>
    JSON.stringify(text)
      .slice(1, -1)
      .replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
  'JSON in JSON': (text) => JSON.stringify(JSON.stringify(text)).slice(3, -3),
  html,
  'HTML in numbers': (text) => [...text].map((each) => `&#${each.codePointAt(0)};`).join(''),
  'HTML in JSON': (text) => JSON.stringify(html(text)).slice(1, -1),
  'a form in a URL': (text) => encodeURIComponent(new URLSearchParams([['a', text]]).toString().slice(2)),
  base64: (text) => Buffer.from(text).toString('base64'),
  'base64 of a URL': (text) => Buffer.from(text).toString('base64url'),
  'base64 in a URL': (text) => encodeURIComponent(Buffer.from(text).toString('base64')),
  'base64 with a user name': (text) => Buffer.from(`user:${text}`).toString('base64'),
  'base64 after two bytes': (text) => Buffer.from(`u:${text}`).toString('base64'),
  'UTF-8 in a header field': (text) => Buffer.from(text).toString('latin1'),
}

const password = fc
  .string({ unit: fc.constantFrom(...'abZ09 "\'%+&<>\\/;#=äß€漢😀'), minLength: 6, maxLength: 24 })
  .filter((text) => text.trim() === text && text !== '')

const token = fc.string({ unit: fc.constantFrom(...'abcdXYZ0189._~+/=-'), minLength: 12, maxLength: 60 })

describe('Secrets', () => {
  it.each(Object.entries(ENCODINGS))('are masked in a text, %s', (_name, encode) => {
    fc.assert(
      fc.property(password, fc.string(), fc.string(), (secret, before, after) => {
        const masked = createSecrets(secret).mask(`${before} ${encode(secret)} ${after}`)
        expect(masked).toContain('***')
        expect(masked).not.toContain(encode(secret))
        expect(masked).not.toContain(secret)
      }),
      { numRuns: 20 },
    )
  })

  it.each(Object.entries(ENCODINGS))('are masked when most of them is shown, %s', (_name, encode) => {
    fc.assert(
      fc.property(token, fc.double({ min: 0.5, max: 1, noNaN: true }), (secret, part) => {
        const characters = [...secret]
        const shown = characters.slice(0, Math.ceil(characters.length * part)).join('')
        const secrets = createSecrets('the password')
        secrets.learn(JSON.stringify({ access_token: secret }))
        const masked = secrets.mask(`before ${encode(shown)} after`)
        // What base64 shares with the next byte may stay: fewer than 8 bits.
        expect(masked).toMatch(/^before (?:[\w+/-]{1,7})?\*\*\*(?:[\w+/-]?(?:=|%3D)*)? after$/)
      }),
      { numRuns: 20 },
    )
  })

  it('are masked with one character more, and with the rest of another token that begins alike', () => {
    const secrets = createSecrets('the password')
    const begin = 'begin-of-both-tokens-'
    secrets.learn(`{"access_token":"${begin}12345","refresh_token":"${begin}123456789"}`)
    expect(secrets.mask(`(${begin}12345) (${begin}12345x) (${begin}123456789) (${begin}1)`)).toBe(
      '(***) (***x) (***) (***)',
    )
  })

  it('stay in the texts of every report, which are no secret in part either', () => {
    const secrets = createSecrets('password grant-7')
    expect(secrets.mask('the password')).toBe('the password')
    expect(secrets.mask('password grant-7')).toBe('***')
  })

  it('leave the text around them as it is', () => {
    const secrets = createSecrets('pass"word-1')
    expect(secrets.mask('before pass%22word-1, pass\\"word-1 and pass&quot;word-1 after')).toBe(
      'before ***, *** and *** after',
    )
    expect(secrets.mask('100%25 of "nothing" &amp; more')).toBe('100%25 of "nothing" &amp; more')
  })

  it('are masked longest first', () => {
    const secrets = createSecrets('abcd')
    secrets.learn('{"access_token":"xx-abcd-yy"}')
    expect(secrets.mask('xx-abcd-yy abcd')).toBe('*** ***')
  })

  it.each([
    ['{"error":"x","debug":{"sessions":[{"refresh_token":"nested-token-1"}]}}', 'nested-token-1'],
    ['{"accessToken":["listed-token-1"]}', 'listed-token-1'],
    ['access_token=form-encoded-token&token_type=bearer', 'form-encoded-token'],
    ['{"access_token":"broken-off-token-1","refr', 'broken-off-token-1'],
    ['{"access_token":123456789}', '123456789'],
  ])('are learnt from %s', (body, token) => {
    const secrets = createSecrets('the password')
    secrets.learn(body)
    expect(secrets.mask(`Bearer ${token}`)).toBe('Bearer ***')
  })

  it('do not make a hostile text slow', () => {
    const secret = `${'\\'.repeat(20)}${'%'.repeat(20)}${'&'.repeat(20)}x`
    const start = performance.now()
    createSecrets(secret).mask(`${'\\'.repeat(5000)}${'%25'.repeat(5000)}${'&amp;'.repeat(5000)}`)
    expect(performance.now() - start).toBeLessThan(2000)
  })

  it('are masked fast, many and long ones, in a long text', () => {
    const secrets = createSecrets('the password')
    for (let i = 0; i < 200; i += 1) secrets.learn(`{"access_token":"${`${i}`.repeat(43).slice(0, 43)}"}`)
    secrets.learn(`{"access_token":"${'a'.repeat(4000)}b"}`)
    const start = performance.now()
    expect(secrets.mask('a'.repeat(64 * 1024))).toContain('***')
    expect(performance.now() - start).toBeLessThan(2000)
  })
})
