import { expect, it } from 'vitest'
import { startDevice } from '../support/device.ts'
import { transports } from '../support/transports.ts'
import { acceptWebSockets } from '../support/websocket.ts'
import { FROM_PAGE, logIn, NAVIGATION, startWithLogin, submitLogin } from './browsing.ts'

/** Fields by which a browser says that a page of another origin caused the request, or may have. */
const FOREIGN: readonly (readonly string[])[] = [
  ['Sec-Fetch-Site', 'cross-site'],
  // Another port of the same host, and another host of the same domain.
  ['Sec-Fetch-Site', 'same-site'],
  ['Sec-Fetch-Site', 'same-origin', 'Sec-Fetch-Site', 'cross-site'],
  ['Sec-Fetch-Site', ''],
  ['Sec-Fetch-Site', 'cross-site', 'Origin', 'http://HOST'],
  ['Origin', 'null'],
  ['Origin', 'http://evil.example'],
  ['Origin', 'http://HOST.evil.example'],
  ['Origin', 'http://HOST', 'Origin', 'http://HOST'],
  // Speculation rules of another port: Chromium sends the cookie, and `none`.
  ['Sec-Fetch-Site', 'none', 'Sec-Purpose', 'prefetch'],
  ['Sec-Fetch-Site', 'none', 'Sec-Purpose', 'prefetch;prerender'],
  ['Sec-Fetch-Site', 'none', 'sec-purpose', 'prefetch;prerender;prefetch;anonymous-client-ip'],
  ['Sec-Fetch-Site', 'none', 'Sec-Purpose', ''],
  ['Sec-Fetch-Site', 'none', 'Purpose', 'prefetch'],
  ['Sec-Fetch-Site', 'none', 'X-Purpose', 'preview'],
  ['Sec-Fetch-Site', 'none', 'X-Moz', 'prefetch'],
  // A background fetch of any other site: Chromium downloads it with the cookie, and `none`.
  ['Sec-Fetch-Site', 'none', 'Origin', 'https://evil.example'],
  ['Sec-Fetch-Site', 'none', 'Origin', 'https://HOST.evil.example'],
  ['Sec-Fetch-Site', 'none', 'Origin', 'null'],
  ['Sec-Fetch-Site', 'none', 'Origin', ''],
  ['Sec-Fetch-Site', 'none', 'Origin', 'https://HOST', 'Origin', 'https://HOST'],
  ['Purpose', 'prefetch'],
  ['X-Moz', 'prefetch'],
]

const at = (fields: readonly string[], url: string): string[] =>
  fields.map((text) => text.replace('HOST', new URL(url).host))

for (const transport of transports) {
  it(`H189 a request that carries the session and may come from another origin is refused, over ${transport}`, async () => {
    const sidecar = await startWithLogin({ transport })
    const cookie = await logIn(sidecar)
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS']) {
      for (const fields of FOREIGN) {
        const refused = await sidecar.request({
          method,
          fields: [...at(fields, sidecar.url), 'Cookie', cookie],
        })
        expect([method, fields, refused.status]).toEqual([method, fields, 400])
        if (method !== 'HEAD') expect(refused.json().error).toBe('invalid_request')
      }
    }
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      expect((await sidecar.request({ method, fields: ['Cookie', cookie] })).status).toBe(400)
    }
    expect(sidecar.device.requests).toEqual([])
    expect(await sidecar.metric('postern_refusals_total', { reason: 'cross_origin' })).toBe(
      6 * FOREIGN.length + 4,
    )

    const here = [
      ['GET', 'Sec-Fetch-Site', 'same-origin'],
      ['GET', 'Sec-Fetch-Site', 'same-origin', 'Sec-Purpose', 'prefetch;prerender'],
      ['POST', 'Sec-Fetch-Site', 'same-origin'],
      ['GET', 'Sec-Fetch-Site', 'none'],
      ['POST', 'Sec-Fetch-Site', 'none'],
      // The user loads the page again that a form has led to.
      ['POST', 'Sec-Fetch-Site', 'none', 'Origin', 'https://HOST'],
      ['GET'],
      ['HEAD'],
      ['GET', 'Origin', 'https://HOST'],
      ['POST', 'Origin', 'https://HOST'],
    ]
    for (const [method = '', ...fields] of here) {
      const passed = await sidecar.request({ method, fields: [...at(fields, sidecar.url), 'Cookie', cookie] })
      expect([method, fields, passed.status]).toEqual([method, fields, 200])
    }
  })
}

it('H189 over TLS a page of the same host and port that came over cleartext is a foreign one', async () => {
  const config = { listen: { trusted_proxies: ['127.0.0.1'] } }
  const sidecar = await startWithLogin({ config })
  const cookie = await logIn(sidecar)
  const from = ['X-Forwarded-Proto', 'https', 'X-Forwarded-Host', 'device.example', 'Cookie', cookie]
  const status = async (scheme: string): Promise<number> => {
    const fields = [...from, 'Origin', `${scheme}://device.example`]
    return (await sidecar.request({ method: 'POST', fields })).status
  }
  expect(await status('http')).toBe(400)
  expect(await status('https')).toBe(200)
})

it('H189 with the precise statuses it is 403; a public path gets it without the session', async () => {
  const config = { browser: { login: 'on' }, status_codes: 'http', public_paths: ['/open'] }
  const sidecar = await startWithLogin({ config })
  const cookie = await logIn(sidecar)
  const fields = ['Sec-Fetch-Site', 'same-site', 'Cookie', cookie]
  expect((await sidecar.request({ fields })).status).toBe(403)
  const open = await sidecar.request({ path: '/open', fields })
  expect(open.status).toBe(200)
  expect(sidecar.device.requests[0]?.values('cookie')).toEqual([])
})

it('H189 a request of another origin takes nothing of the window of the session', async () => {
  const sidecar = await startWithLogin()
  const cookie = await logIn(sidecar)
  for (let i = 0; i < 10; i++)
    await sidecar.request({ fields: ['Sec-Fetch-Site', 'cross-site', 'Cookie', cookie] })
  const passed = await sidecar.request({ fields: [...FROM_PAGE, 'Cookie', cookie] })
  expect(passed.header('x-ratelimit-remaining')).toBe('599')
})

it('H189 a browser that followed a link of another port gets the page, and the device nothing', async () => {
  const sidecar = await startWithLogin()
  const cookie = await logIn(sidecar)
  const fields = ['Sec-Fetch-Mode', 'navigate', 'Sec-Fetch-Site', 'same-site', 'Cookie', cookie]
  const page = await sidecar.request({ path: '/reboot?now=1', fields })
  expect(page.status).toBe(400)
  expect(page.text).toContain('The request came from another site')
  expect(page.text).toContain('<a href="/">Open the device</a>')
  expect(page.text).not.toContain('<form')
  expect(page.header('clear-site-data')).toBeUndefined()
  expect(sidecar.device.requests).toEqual([])
})

it('H189 a link of another origin leads to the first page after the login, not to its path', async () => {
  const sidecar = await startWithLogin()
  for (const [site, way] of [
    // The browser withholds the cookie, so there may be a session.
    ['cross-site', '<a href="/">'],
    ['same-site', 'action="/oauth/login?to=%2F"'],
    ['none', 'action="/oauth/login?to=%2Freboot"'],
    ['same-origin', 'action="/oauth/login?to=%2Freboot"'],
  ] as const) {
    const fields = ['Sec-Fetch-Mode', 'navigate', 'Sec-Fetch-Site', site]
    for (const path of ['/reboot', '/oauth/login?to=/reboot']) {
      const { text } = await sidecar.request({ path, fields })
      expect([site, path, text]).toEqual([site, path, expect.stringContaining(way)])
      expect(text.includes('<form')).toBe(site !== 'cross-site')
    }
  }
})

it('H189 a WebSocket needs an Origin of its own address', async () => {
  const device = await startDevice()
  const { upgrades } = acceptWebSockets(device)
  const sidecar = await startWithLogin({ device })
  const cookie = await logIn(sidecar)
  const handshake = (...fields: string[]) =>
    sidecar.request({
      path: '/socket',
      fields: [
        'Connection',
        'Upgrade',
        'Upgrade',
        'websocket',
        'Sec-WebSocket-Version',
        '13',
        'Sec-WebSocket-Key',
        'AAAAAAAAAAAAAAAAAAAAAA==',
        'Cookie',
        cookie,
        ...fields,
      ],
    })
  expect((await handshake()).status).toBe(400)
  expect((await handshake('Origin', 'http://evil.example')).status).toBe(400)
  expect((await handshake('Sec-Fetch-Site', 'same-site')).status).toBe(400)
  expect(upgrades).toEqual([])
})

it('H189 a page of another origin can log nobody in or out (login CSRF)', async () => {
  const sidecar = await startWithLogin()
  const cookie = await logIn(sidecar)
  for (const fields of [...FOREIGN, [], ['Sec-Fetch-Site', 'none']]) {
    const sent = at(fields, sidecar.url)
    const login = await submitLogin(sidecar, { fields: sent })
    expect([fields, login.status]).toEqual([fields, 400])
    expect(login.values('set-cookie')).toEqual([])
    const logout = { method: 'POST', path: '/oauth/logout', fields: [...sent, 'Cookie', cookie] }
    expect([fields, (await sidecar.request(logout)).status]).toEqual([fields, 400])
  }
  expect((await sidecar.request({ fields: [...FROM_PAGE, 'Cookie', cookie] })).status).toBe(200)
  expect(await sidecar.metric('postern_tokens_issued_total', { grant: 'password' })).toBe(1)
  const page = await submitLogin(sidecar, {
    fields: ['Sec-Fetch-Mode', 'navigate', 'Sec-Fetch-Site', 'cross-site'],
  })
  expect(page.text).toContain('The request came from another site')
})

it('H188 a session that an attacker chose or tossed in is none (fixation, cookie tossing)', async () => {
  const sidecar = await startWithLogin()
  const fixed = `__Host-postern=${'x'.repeat(43)}`
  const [set = ''] = (await submitLogin(sidecar, { fields: [...FROM_PAGE, 'Cookie', fixed] })).values(
    'set-cookie',
  )
  const cookie = set.split(';', 1)[0] ?? ''
  expect(cookie).not.toBe(fixed)
  const attacker = await logIn(sidecar)
  const status = async (...cookies: string[]): Promise<number> => {
    const fields = cookies.flatMap((each) => ['Cookie', each])
    return (await sidecar.request({ fields: [...FROM_PAGE, ...fields] })).status
  }
  expect(await status(fixed)).toBe(401)
  expect(await status(`${attacker}; ${cookie}`)).toBe(401)
  expect(await status(`${cookie}; ${attacker}`)).toBe(401)
  expect(await status(cookie, attacker)).toBe(401)
  expect(await status(cookie.replace('__Host-', '__host-'))).toBe(401)
  expect(await status(cookie.replace('__Host-', ''))).toBe(401)
  expect(await status(`a=${cookie}`)).toBe(401)
  expect(await status(`${cookie}x`)).toBe(401)
  expect(await status(`"${cookie}"`)).toBe(401)
  expect(await status(`a=1; ${cookie} ; b=2`)).toBe(200)
  // A page of another host of the domain can set these two without TLS, and would lock everyone out.
  expect(await status(`x__Host-postern=1; ${cookie}; a=__Host-postern=2`)).toBe(200)
})

it('H188 a session is no token, and a bearer token beats it', async () => {
  const sidecar = await startWithLogin()
  const cookie = await logIn(sidecar)
  const id = cookie.slice('__Host-postern='.length)
  expect((await sidecar.request({ token: id })).status).toBe(401)
  expect((await sidecar.postToken({ grant_type: 'refresh_token', refresh_token: id })).status).toBe(400)
  const token = await sidecar.token()
  const both = await sidecar.request({ token, fields: ['Sec-Fetch-Site', 'cross-site', 'Cookie', cookie] })
  expect(both.status).toBe(200)
  expect(both.header('x-ratelimit-limit')).toBe('1000000')
  expect((await sidecar.request({ token: 'unknown', fields: [...FROM_PAGE, 'Cookie', cookie] })).status).toBe(
    401,
  )
  expect(sidecar.device.requests[0]?.values('cookie')).toEqual([])
})

it('H188 another scheme in Authorization, which a device with a login of its own makes browsers send, changes nothing', async () => {
  const sidecar = await startWithLogin()
  const basic = ['Authorization', 'Basic YTpi']
  const cookie = await logIn(sidecar)
  const loaded = await sidecar.request({ fields: [...FROM_PAGE, ...basic, 'Cookie', cookie] })
  expect(loaded.text).toBe('from the device')
  expect(sidecar.device.requests[0]?.values('authorization')).toEqual([])
  const page = await sidecar.request({ fields: [...NAVIGATION, ...basic] })
  expect(page.text).toContain('<form method="post"')
  for (const value of ['Bearer', 'Bearer ', 'bearer a b']) {
    const fields = [...NAVIGATION, 'Authorization', value]
    expect([value, (await sidecar.request({ fields })).header('content-type')]).toEqual([
      value,
      'application/json;charset=UTF-8',
    ])
  }
})

for (const transport of transports) {
  it(`H188 the device cannot set a cookie of that name, over ${transport}`, async () => {
    const own = [
      '__Host-postern=x; Path=/; Secure',
      ' __host-POSTERN = x',
      '=__Host-postern=x',
      '__Host-postern',
    ]
    const others = ['sid=1; Path=/', '__Host-postern2=1', 'a=__Host-postern=x']
    const device = await startDevice((_, response) => {
      response.setHeader('Set-Cookie', [...own, ...others])
      response.end('set')
    })
    const sidecar = await startWithLogin({ transport, device })
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).values('set-cookie')).toEqual(others)
  })
}

it('H187 the page of a device that frames itself may show the login in its frame; no other page may', async () => {
  const sidecar = await startWithLogin()
  const page = await sidecar.request({ fields: [...NAVIGATION, 'Sec-Fetch-Dest', 'iframe'] })
  expect(page.header('content-security-policy')).toContain("frame-ancestors 'self'")
  expect(page.header('x-frame-options')).toBe('SAMEORIGIN')
})
