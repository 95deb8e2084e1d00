import { writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { WORDS_OF_401 } from '../../src/gate/refusal-response.ts'
import { passUntil, stillClock } from '../support/clock.ts'
import type { Response } from '../support/message.ts'
import { explained } from '../support/records.ts'
import { FORM_TYPE, PASSWORD, startSidecar } from '../support/sidecar.ts'
import { transports } from '../support/transports.ts'
import { FROM_PAGE, logIn, NAVIGATION, SESSION, startWithLogin, submitLogin } from './browsing.ts'

const CSP =
  /^default-src 'none'; img-src data:; style-src 'sha256-[\w+/]{43}='; form-action 'self'; base-uri 'none'; frame-ancestors 'self'$/

function expectPage(response: Response, status = 401): void {
  expect(response.status).toBe(status)
  expect(response.header('content-type')).toBe('text/html; charset=utf-8')
  expect(response.header('content-security-policy')).toMatch(CSP)
  expect(response.header('x-frame-options')).toBe('SAMEORIGIN')
  expect(response.header('cache-control')).toBe('no-store')
  expect(response.header('x-ratelimit-limit')).toBeDefined()
  expect(response.text).not.toContain('<script')
}

/** Where the form of the page leads after the login. */
function targetOf(response: Response): string | null {
  const [, action = ''] = /<form method="post" action="([^"]+)">/.exec(response.text) ?? []
  expect(action).toMatch(/^\/oauth\/login\?to=/)
  return new URL(action.replaceAll('&amp;', '&'), 'https://a').searchParams.get('to')
}

for (const transport of transports) {
  it(`H187 H188 a browser logs in at the path that it asked for, and out, over ${transport}`, async () => {
    const sidecar = await startWithLogin({ transport, config: { realm: 'Boiler <2>' } })
    const path = '/settings/net?tab="1"&x=%22'
    const page = await sidecar.request({ path, fields: NAVIGATION })
    expectPage(page)
    expect(page.header('www-authenticate')).toBe('Bearer realm="Boiler <2>"')
    expect(page.header('location')).toBeUndefined()
    expect(page.text).toContain('<h1>Boiler &lt;2&gt;</h1>')
    expect(page.text).toContain('<html lang="en">')
    expect(targetOf(page)).toBe(path)

    const wrong = await submitLogin(sidecar, { password: 'wrong', to: path })
    expectPage(wrong, 400)
    expect(wrong.text).toContain('<p id="message" role="alert">Wrong password.</p>')
    expect(targetOf(wrong)).toBe(path)
    expect(wrong.values('set-cookie')).toEqual([])

    const right = await submitLogin(sidecar, { to: path })
    expectPage(right, 200)
    expect(right.text).toContain(
      '<meta http-equiv="refresh" content="0; url=/settings/net?tab=&quot;1&quot;&amp;x=%22">',
    )
    const [set = ''] = right.values('set-cookie')
    expect(set).toMatch(SESSION)
    const cookie = set.split(';', 1)[0] ?? ''
    expect(sidecar.device.requests).toEqual([])

    const loaded = await sidecar.request({ path, fields: [...NAVIGATION, 'Cookie', `a=1; ${cookie}; b=2`] })
    expect(loaded.text).toBe('from the device')
    expect(sidecar.device.requests[0]?.target).toBe(path)
    expect(sidecar.device.requests[0]?.values('cookie')).toEqual(['a=1; b=2'])

    const question = await sidecar.request({
      path: '/oauth/logout',
      fields: [...NAVIGATION, 'Cookie', cookie],
    })
    expectPage(question, 200)
    expect(question.text).toContain('action="/oauth/logout"')
    const out = await sidecar.request({
      method: 'POST',
      path: '/oauth/logout',
      fields: [...FROM_PAGE, 'Cookie', cookie],
    })
    expect(out.status).toBe(200)
    expect(out.header('set-cookie')).toMatch(/^__Host-postern=; .*Max-Age=0$/)
    expectPage(await sidecar.request({ fields: [...NAVIGATION, 'Cookie', cookie] }))
    expect(await sidecar.metric('postern_tokens')).toBe(0)
    expect(sidecar.device.requests.length).toBe(1)
    expect(JSON.stringify(sidecar.logLines())).not.toContain(cookie.slice(15))
  })
}

it('H187 only a browser that opens a page gets the login page; every other 401 is that of C11', async () => {
  const sidecar = await startWithLogin()
  const json = JSON.stringify({ error: 'invalid_token', error_description: WORDS_OF_401.missing })
  const html = ['Accept', 'text/html,application/xhtml+xml,*/*;q=0.8']
  expectPage(await sidecar.request({ fields: html }))
  expectPage(
    await sidecar.request({ fields: ['Sec-Fetch-Mode', 'navigate', 'Sec-Fetch-Site', 'cross-site'] }),
  )
  for (const fields of [[], ['Accept', '*/*'], FROM_PAGE, [...FROM_PAGE, ...html]]) {
    const refused = await sidecar.request({ fields })
    expect(refused.status).toBe(401)
    expect(refused.text).toBe(json)
  }
  const shown = await sidecar.request({ token: 'unknown', fields: NAVIGATION })
  expect(shown.status).toBe(401)
  expect(shown.json().error).toBe('invalid_token')
  const head = await sidecar.request({ method: 'HEAD', fields: NAVIGATION })
  expect(head.status).toBe(401)
  expect(head.body.length).toBe(0)
})

it('H187 without browser.login there is no form and no endpoint', async () => {
  const sidecar = await startSidecar()
  const refused = await sidecar.request({ fields: NAVIGATION })
  expectPage(refused)
  expect(refused.text).not.toMatch(/<form|<input/)
  expect((await submitLogin(sidecar)).status).toBe(401)
  const token = await sidecar.token()
  expect((await sidecar.request({ path: '/oauth/login', token })).text).toBe('from the device')
})

it('H187 the page speaks the language of the browser', async () => {
  const sidecar = await startWithLogin()
  const language = async (accepted: string): Promise<string | undefined> => {
    const page = await sidecar.request({ fields: [...NAVIGATION, 'Accept-Language', accepted] })
    return /<html lang="(\w+)">/.exec(page.text)?.[1]
  }
  expect(await language('de-CH,de;q=0.9,en;q=0.8')).toBe('de')
  expect(await language('pt-BR,pt;q=0.9,fr-FR;q=0.5,en;q=0.4')).toBe('fr')
  expect(await language('es')).toBe('es')
  expect(await language('en;q=0.3, it;q=0.4')).toBe('it')
  expect(await language('zh-Hans-CN')).toBe('zh')
  expect(await language('ja')).toBe('ja')
  for (const unknown of ['pt', '', 'de;q=0', 'constructor', '__proto__', 'de;q=x', '*']) {
    expect(await language(unknown)).toBe('en')
  }
})

it('H190 after the login a browser is led to a path with exactly one slash at its begin', async () => {
  const sidecar = await startWithLogin({ config: { status_codes: 'http' } })
  const elsewhere = ['//evil.example', '/\\evil.example', 'https://evil.example', 'x', '', '/\t/evil.example']
  for (const to of [
    ...elsewhere,
    '/oauth/login',
    '/oauth/login?to=/a',
    '/oauth/logout',
    '/ä',
    '/a\r\nSet-Cookie: a=1',
  ]) {
    const done = await submitLogin(sidecar, { to })
    expect(done.status).toBe(303)
    expect(done.header('location')).toBe('/')
  }
  for (const to of ['/', '/a//b', '/oauth/login2', '/a?to=//b']) {
    expect((await submitLogin(sidecar, { to })).header('location')).toBe(to)
  }
  const fields = [...NAVIGATION]
  expect(targetOf(await sidecar.request({ path: '//evil.example/', fields }))).toBe('/')
  expect(targetOf(await sidecar.request({ path: '/oauth/login', fields }))).toBe('/')
})

it('H190 the login is the password grant: its window, its counters and its rules', async () => {
  const sidecar = await startWithLogin({ clock: stillClock(), documentedLimits: true })
  for (let i = 0; i < 14; i++) await submitLogin(sidecar, { password: 'wrong' })
  for (let i = 0; i < 15; i++) await sidecar.postToken({ grant_type: 'password', password: 'wrong' })
  expect((await submitLogin(sidecar)).status).toBe(200)
  const limited = await submitLogin(sidecar, { to: '/a' })
  expectPage(limited, 429)
  expect(limited.header('retry-after')).toMatch(/^\d+$/)
  expect(limited.header('x-ratelimit-limit')).toBe('30')
  expect(limited.text).toContain('Too many attempts.')
  expect(targetOf(limited)).toBe('/a')
  const figure = await sidecar.figures()
  expect(figure('postern_password_failures_total')).toBe(29)
  expect(figure('postern_tokens_issued_total', { grant: 'password' })).toBe(1)
  expect(figure('postern_requests_total', { endpoint: 'oauth' })).toBe(31)
})

it('H190 wrong passwords slow the login page, too', async () => {
  const config = { limits: { wrong_passwords: 'slow' } }
  const sidecar = await startWithLogin({
    clock: stillClock(),
    config: { ...config, browser: { login: 'on' } },
    bounds: { listen: { bodyTimeout: 100 } },
  })
  for (let i = 0; i < 2; i++) await submitLogin(sidecar, { password: 'wrong' })
  for (let i = 0; i < 2; i++) await sidecar.postToken({ grant_type: 'password', password: 'wrong' })
  const slowed = await submitLogin(sidecar)
  expectPage(slowed, 429)
  expect(slowed.header('retry-after')).toBe('1')
  expect(slowed.text).toContain('Too many attempts.')
  await sidecar.clock.advance(1_000)
  expect((await submitLogin(sidecar)).status).toBe(200)
})

it('H190 the form is read as that of the token endpoint', async () => {
  const sidecar = await startWithLogin()
  const from = ['Sec-Fetch-Site', 'same-origin']
  const post = (body: string, type = FORM_TYPE) =>
    sidecar.request({ method: 'POST', path: '/oauth/login', body, fields: [...from, 'Content-Type', type] })
  for (const body of [
    '',
    'password=',
    'password=a&password=b',
    'password=%ff',
    `password=${'a'.repeat(9000)}`,
  ]) {
    const refused = await post(body)
    expect(refused.status).toBe(400)
    expect(refused.json().error).toBe('invalid_request')
  }
  expect((await post('{"password":"a"}', 'application/json')).status).toBe(400)
  expect((await post(`password=${encodeURIComponent(PASSWORD)}`)).status).toBe(200)
  const put = await sidecar.request({ method: 'PUT', path: '/oauth/login', fields: from })
  expect(put.status).toBe(400)
  expect(put.header('allow')).toBe('GET, HEAD, POST')
})

it('H190 over cleartext from another machine there is no login, and the page says so', async () => {
  const config = { listen: { trusted_proxies: ['127.0.0.1'] } }
  const sidecar = await startWithLogin({ config })
  const through = ['X-Forwarded-For', '192.0.2.7', 'X-Forwarded-Proto']
  const page = await sidecar.request({ fields: [...NAVIGATION, ...through, 'http'] })
  expectPage(page)
  expect(page.text).toContain('Use an address with https.')
  expect(page.text).not.toContain('<form')
  const same = ['Sec-Fetch-Mode', 'navigate', 'Sec-Fetch-Site', 'same-origin']
  const refused = await submitLogin(sidecar, { fields: [...same, ...through, 'http'] })
  expectPage(refused, 400)
  expect(refused.values('set-cookie')).toEqual([])
  expect(await sidecar.metric('postern_tokens_issued_total')).toBe(0)
  expect((await submitLogin(sidecar, { fields: [...same, ...through, 'https'] })).status).toBe(200)
})

it('H190 behind two proxies the login is encrypted, and of this origin, as the outer one says', async () => {
  const config = { listen: { trusted_proxies: ['127.0.0.1', '10.0.0.2'] } }
  const sidecar = await startWithLogin({ config })
  const through = [
    ...['X-Forwarded-For', '192.0.2.7, 10.0.0.2', 'X-Forwarded-Proto', 'https, http'],
    ...['X-Forwarded-Host', 'device.example, 127.0.0.1:8080'],
  ]
  const page = await sidecar.request({ fields: [...NAVIGATION, ...through] })
  expect(page.text).toContain('<form')
  const from = (origin: string) => submitLogin(sidecar, { fields: ['Origin', origin, ...through] })
  expect((await from('https://device.example')).status).toBe(200)
  expect((await from('http://127.0.0.1:8080')).status).toBe(400)
})

it('H188 the session ends with its grant: a new password, a second login', async () => {
  const sidecar = await startWithLogin()
  const first = await logIn(sidecar)
  const load = (cookie: string) => sidecar.request({ fields: [...FROM_PAGE, 'Cookie', cookie] })
  expect((await load(first)).status).toBe(200)
  const [, set = ''] =
    (await submitLogin(sidecar, { fields: [...FROM_PAGE, 'Cookie', first] }))
      .values('set-cookie')
      .join()
      .match(/^(.*?);/) ?? []
  expect(set).not.toBe(first)
  expect((await load(first)).status).toBe(401)
  expect((await load(set)).status).toBe(200)
  writeFileSync(sidecar.passwordFile, 'another\n')
  await passUntil(sidecar.clock, expect.poll(async () => (await load(set)).status).toBe(401))
  expectPage(await sidecar.request({ fields: [...NAVIGATION, 'Cookie', set] }))
})

for (const rotate_refresh of [false, true]) {
  it(`H188 a session is renewed while it is used, as long as its refresh token lives (rotate_refresh: ${rotate_refresh})`, async () => {
    const sidecar = await startWithLogin({ config: { tokens: { rotate_refresh } } })
    const cookie = await logIn(sidecar)
    const load = async () => (await sidecar.request({ fields: [...FROM_PAGE, 'Cookie', cookie] })).status
    for (let hour = 0; hour < 3; hour++) {
      expect(await load()).toBe(200)
      await sidecar.clock.leap(3_600_000)
    }
    await sidecar.clock.leap(3_600_000)
    expect(await load()).toBe(200)
    expect(await sidecar.metric('postern_tokens_issued_total', { grant: 'refresh_token' })).toBe(3)
    await sidecar.clock.leap(7 * 86_400_000)
    expect(await load()).toBe(401)
  })
}

it('H188 requests with a session count in a window of the session, all others as ever', async () => {
  const config = { browser: { login: 'on' }, limits: { ietf_headers: true } }
  const sidecar = await startWithLogin({ clock: stillClock(), config, documentedLimits: true })
  const [one, other] = [await logIn(sidecar), await logIn(sidecar)]
  const load = (cookie: string) => sidecar.request({ fields: [...FROM_PAGE, 'Cookie', cookie] })
  for (let left = 599; left >= 0; left--) {
    const response = await load(one)
    expect(response.header('x-ratelimit-limit')).toBe('600')
    expect(response.header('x-ratelimit-remaining')).toBe(String(left))
    expect(response.header('ratelimit-policy')).toBe('"browser";q=600;w=60')
  }
  expect((await load(one)).status).toBe(429)
  expect((await load(other)).status).toBe(200)
  const token = await sidecar.token()
  expect((await sidecar.request({ token })).header('x-ratelimit-remaining')).toBe('59')
  const invented = await load(`__Host-postern=${'A'.repeat(43)}`)
  expect(invented.status).toBe(401)
  expect(invented.header('x-ratelimit-remaining')).toBe('58')
  const figure = await sidecar.figures()
  expect(figure('postern_rate_limited_total', { endpoint: 'browser' })).toBe(1)
  expect(figure('postern_rate_windows', { endpoint: 'browser' })).toBe(2)
  expect(figure('postern_requests_total', { endpoint: 'browser' })).toBe(602)
  expect(sidecar.overview.condition().limits.browser?.usedUp[0]?.key).toMatch(/^grant [0-9a-f]{16}$/)
  // Of each second only the first requests are remembered.
  await sidecar.clock.advance(2_000)
  await sidecar.request({ path: '/shown', fields: [...FROM_PAGE, 'Cookie', other] })
  expect(Object.values(await explained(sidecar, '/shown')).join('\n')).toMatch(
    /That of grant [0-9a-f]{16}, for the endpoint type browser\. Request 2 of 600\..*\nValid, of grant [0-9a-f]{16}\./,
  )
})
