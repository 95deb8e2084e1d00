import { describe, expect, it } from 'vitest'
import { WORDS as LOGIN_WORDS } from '../../src/browser/login-page.ts'
import { WORDS } from '../../src/gate/refusal-words.ts'
import { prefersHtml } from '../../src/http/browsers.ts'
import { passUntil } from '../support/clock.ts'
import { expectError } from '../support/expectations.ts'
import type { Response } from '../support/message.ts'
import { unusedPort } from '../support/raw.ts'
import { type ApiRequest, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'
import { logIn, NAVIGATION, startWithLogin } from './browsing.ts'

/** The fields that belong to the body of a response, and those that differ between any two responses. */
const OF_ONE_RESPONSE =
  /^(?:content-.*|cache-control|pragma|x-content-type-options|x-frame-options|cross-origin-opener-policy|referrer-policy|refresh|x-request-id|x-ratelimit-remaining|ratelimit|date)$/i

/** A second may pass between two responses. */
const OF_TIME = /^(?:x-ratelimit-reset|retry-after)$/i

/** The fields of a response that its body does not decide. */
function othersOf({ fields }: Response): string[] {
  const names = fields.filter((_, i) => i % 2 === 0)
  return names.flatMap((name, i) => {
    if (OF_ONE_RESPONSE.test(name)) return []
    return [`${name.toLowerCase()}: ${OF_TIME.test(name) ? 'a time' : fields[2 * i + 1]}`]
  })
}

/** Checks a page of Postern, and that it shows nothing of the request but its id. */
function expectPage(response: Response, status: number, title: string): void {
  expect([response.status, response.header('content-type')]).toEqual([status, 'text/html; charset=utf-8'])
  expect(response.text).toContain(`<h1>${title}</h1>`)
  expect(response.header('content-length')).toBe(String(response.body.length))
  expect(response.body.length).toBeLessThan(4096)
  expect(response.header('content-security-policy')).toMatch(/^default-src 'none'; /)
  expect(response.header('x-content-type-options')).toBe('nosniff')
  expect(response.header('cross-origin-opener-policy')).toBe('same-origin')
  expect(response.header('cache-control')).toBe('no-store')
  expect(response.text).not.toMatch(/<script|secret|127\.|postern|http-equiv/i)
  expect(response.text).toContain(`<code>${response.header('x-request-id')}</code>`)
}

/** A sidecar whose device is down, with its token. */
async function startDown(
  options: Parameters<typeof startSidecar>[0] = {},
): Promise<{ sidecar: TestSidecar; token: string }> {
  const sidecar = await startSidecar({
    ...options,
    device: { url: `http://127.0.0.1:${await unusedPort()}` },
  })
  return { sidecar, token: await sidecar.token() }
}

const path = '/secret?secret=secret'

describeProtocols('Refusals of navigations', (transport) => {
  it.each(['contract', 'http'] as const)(
    'H315 each is a page with the status and the fields of the JSON, with status_codes: %s',
    async (statusCodes) => {
      const precise = statusCodes === 'http'
      const config = { status_codes: statusCodes, limits: { ietf_headers: true } }
      const { sidecar, token } = await startDown({ transport, config })
      const rows: readonly (readonly [string, number, string, ApiRequest])[] = [
        ['no token', 401, WORDS.en.token[0], { path }],
        ['a method', precise ? 405 : 400, WORDS.en.invalid[0], { path, method: 'TRACE', token }],
        ['the token endpoint', precise ? 405 : 400, WORDS.en.invalid[0], { path: '/oauth/token?secret' }],
        ['a device that is down', precise ? 502 : 500, WORDS.en.down[0], { path, token }],
        [
          'an upload to it',
          precise ? 502 : 500,
          WORDS.en.down[0],
          { path, token, method: 'POST', body: 'secret' },
        ],
      ]
      for (const [what, status, title, request] of rows) {
        const json = await sidecar.request(request)
        const page = await sidecar.request({ ...request, fields: NAVIGATION })
        expect(json.json().error, what).toBeDefined()
        expect(json.header('x-content-type-options'), what).toBe('nosniff')
        expectPage(page, status, title)
        expect(page.status, what).toBe(json.status)
        expect(othersOf(page), what).toEqual(othersOf(json))
      }
    },
  )

  it('H315 past the limit, too, and a HEAD has the fields of it without a body', async () => {
    const sidecar = await startSidecar({
      transport,
      config: { limits: { api: { requests: 1, window: '1h' } } },
    })
    await sidecar.request()
    const json = await sidecar.request({ path })
    const page = await sidecar.request({ path, fields: NAVIGATION })
    expectError(json, 429, 'rate_limited')
    expectPage(page, 429, WORDS.en.limited[0])
    expect(othersOf(page)).toEqual(othersOf(json))
    const wait = page.header('retry-after')
    expect(wait).toMatch(/^\d+$/)
    expect(page.header('refresh')).toBe(`${wait}; url=${path}`)
    expect(page.text).toContain(`Seconds to wait: ${wait}<`)
    const head = await sidecar.request({ path, method: 'HEAD', fields: NAVIGATION })
    expect([head.status, head.body.length, head.header('refresh')]).toEqual([429, 0, undefined])
    expect(head.header('content-type')).toBe('text/html; charset=utf-8')
  })

  it('H315 an upload that is refused unread is answered by a page', async () => {
    const sidecar = await startSidecar({ transport, config: { upstream: { max_body: '1KiB' } } })
    const token = await sidecar.token()
    const body = Buffer.alloc(1 << 20)
    const page = await sidecar.request({ path, method: 'POST', token, body, fields: NAVIGATION })
    expectPage(page, 400, WORDS.en.large[0])
    expect(page.text).toContain(WORDS.en.unsent)
  })

  it('H315 a program gets JSON, also a Java program with a token or at the token endpoint', async () => {
    const { sidecar, token } = await startDown({ transport })
    const java = ['Accept', 'text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2']
    const rows = [
      [],
      ['Accept', '*/*'],
      ['Accept', 'application/json, text/plain, */*'],
      ['Accept', 'text/html', 'Sec-Fetch-Mode', 'cors'],
      ['Accept', 'text/html', 'Sec-Fetch-Mode', 'no-cors'],
      ['Sec-Fetch-Mode', 'navigate', 'Sec-Fetch-Mode', 'cors'],
      java,
    ]
    for (const fields of rows)
      expectError(await sidecar.request({ token, fields }), 500, 'upstream_unavailable')
    const form = { grant_type: 'password', password: 'wrong' }
    expectError(await sidecar.postToken(form, { fields: java }), 400, 'invalid_grant')
    expectPage(await sidecar.request({ fields: java }), 401, WORDS.en.token[0])
    const unknown = await sidecar.request({ token: 'unknown', fields: NAVIGATION })
    expectError(unknown, 401, 'invalid_token')
  })

  it('H316 only a GET of this origin is sent again by itself, and only where the device has not got it', async () => {
    const { sidecar, token } = await startDown({ transport })
    const ask = (request: ApiRequest = {}): Promise<Response> =>
      sidecar.request({ token, path, ...request, fields: [...NAVIGATION, ...(request.fields ?? [])] })
    const down = await ask()
    expect([down.header('retry-after'), down.header('refresh')]).toEqual(['5', `5; url=${path}`])
    expect(down.text).toContain(`<a href="">${WORDS.en.again}</a>`)
    for (const method of ['POST', 'PUT', 'DELETE']) {
      const sent = await ask({ method, body: 'secret' })
      expect([sent.header('retry-after'), sent.header('refresh')]).toEqual(['5', undefined])
      expect(sent.text).toContain(WORDS.en.unsent)
      expect(sent.text).not.toContain('<a ')
    }
    for (const site of ['cross-site', 'same-site']) {
      const fields = ['Sec-Fetch-Mode', 'navigate', 'Sec-Fetch-Site', site]
      const foreign = await sidecar.request({ token, path, fields })
      expect([foreign.header('retry-after'), foreign.header('refresh')]).toEqual(['5', undefined])
      expect(foreign.text).toContain('<a href="/">')
      expect(foreign.text).not.toContain('href=""')
    }
  })

  it('H316 a request that may have reached the device is not sent again by itself', async () => {
    const sidecar = await startSidecar({ transport })
    sidecar.device.handle((request) => void request.socket.destroy())
    const token = await sidecar.token()
    const page = await sidecar.request({ path, token, fields: NAVIGATION })
    expectPage(page, 500, WORDS.en.failed[0])
    expect([page.header('retry-after'), page.header('refresh')]).toEqual([undefined, undefined])
    expect(page.text).toContain(`<a href="">${WORDS.en.again}</a>`)
    const sent = await sidecar.request({ path, token, method: 'POST', body: 'a', fields: NAVIGATION })
    expect(sent.text).toContain(WORDS.en.unsure)
  })

  it('H316 nor is one that the device took and that was repeated in vain', async () => {
    const sidecar = await startSidecar({ transport })
    const token = await sidecar.token()
    const connection = await sidecar.connect()
    const fields = ['Authorization', `Bearer ${token}`, ...NAVIGATION]
    expect((await connection.send({ path, fields })).text).toBe('from the device')
    sidecar.device.handle((request) => {
      sidecar.device.server.close()
      request.socket.destroy()
    })
    const page = await passUntil(sidecar.clock, connection.send({ path, fields }))
    expect(sidecar.device.requests.length).toBe(2)
    expectPage(page, 500, WORDS.en.down[0])
    expect([page.header('retry-after'), page.header('refresh')]).toEqual([undefined, undefined])
  })

  it('H317 the page speaks the language of the browser, and English for anything else', async () => {
    const { sidecar, token } = await startDown({ transport, config: { realm: 'Boiler <b>&"' } })
    const ask = (accepted: string): Promise<Response> =>
      sidecar.request({ token, path, fields: [...NAVIGATION, 'Accept-Language', accepted] })
    for (const [language, words] of Object.entries(WORDS)) {
      const page = await ask(`${language}-XX, en;q=0.5`)
      expectPage(page, 500, words.down[0])
      expect(page.text).toContain(`<html lang="${language}">`)
      expect(page.text).toContain('Boiler &lt;b&gt;&amp;&quot;</p>')
      expect(page.text).toContain(`${words.soon} 5<`)
    }
    for (const junk of [
      'pt',
      '"><script>',
      '__proto__',
      'constructor',
      'de;q=0',
      ','.repeat(4000),
      'x'.repeat(4000),
    ])
      expectPage(await ask(junk), 500, WORDS.en.down[0])
  })
})

it('H315 with a session, a refusal that a login does not help is a page, too', async () => {
  const sidecar = await startWithLogin({ transport: 'h2' })
  const cookie = await logIn(sidecar)
  sidecar.device.handle((request) => void request.socket.destroy())
  const page = await sidecar.request({ path, fields: [...NAVIGATION, 'Cookie', cookie] })
  expectPage(page, 500, WORDS.en.failed[0])
})

it('H316 with sessions, only a request that says that it is of this origin is sent again: the next one has the cookie', async () => {
  const sidecar = await startSidecar({
    config: { browser: { login: 'on' }, limits: { api: { requests: 1, window: '1h' } } },
  })
  await sidecar.request()
  const silent = await sidecar.request({ path, fields: ['Accept', 'text/html'] })
  expectPage(silent, 429, WORDS.en.limited[0])
  expect(silent.header('refresh')).toBeUndefined()
  expect(silent.text).not.toContain('href=""')
  const typed = await sidecar.request({ path, fields: NAVIGATION })
  expect(typed.header('refresh')).toBe(`${typed.header('retry-after')}; url=${path}`)
})

it('H317 speaks the languages of the login page, each with the same sentences', () => {
  expect(Object.keys(WORDS)).toEqual(Object.keys(LOGIN_WORDS))
  for (const words of Object.values(WORDS)) {
    expect(Object.keys(words)).toEqual(Object.keys(WORDS.en))
    expect(JSON.stringify(words)).not.toMatch(/[<>&]/)
  }
})

describe('H315 Accept prefers HTML', () => {
  it.each([
    'text/html',
    'TEXT/HTML',
    'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
    'text/html, application/xhtml+xml, */*',
    'text/html;q=0.9, application/json;q=0.8',
    'text/html, application/json;q=0.9',
    'application/*;q=0.5, text/html;q=0.6',
    'application/json;q=0, */*, text/html',
  ])('in %s', (accept) => expect(prefersHtml([accept])).toBe(true))
  it.each([
    '',
    '*/*',
    'application/json',
    'application/json, text/plain, */*',
    'text/html, application/json',
    'text/html;q=0.8, application/json',
    'text/html;q=0.5, */*;q=0.8',
    'text/html;q=0',
    'text/html;q=2',
    'text/html;q=x',
    'application/xhtml+xml',
    'text/html2',
    'xtext/html',
    'text/*',
  ])('not in %s', (accept) => expect(prefersHtml([accept])).toBe(false))
  it('read from all fields of that name', () => {
    expect(prefersHtml(['text/html;q=0.5', 'application/json'])).toBe(false)
    expect(prefersHtml(['application/json;q=0.5', 'text/html'])).toBe(true)
  })
})
