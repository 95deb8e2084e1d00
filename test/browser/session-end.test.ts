import { once } from 'node:events'
import { expect, it } from 'vitest'
import { stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { makeNames, passwordOf } from '../support/passwords.ts'
import type { TestSidecar } from '../support/sidecar.ts'
import { transports } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'
import { FROM_PAGE, logIn, NAVIGATION, startWithLogin, submitLogin } from './browsing.ts'

const CLEARED = '"cache"'
const HOUR = 3_600_000
const IDLE = { login: 'on', idle: '1h' }
const FROM_FORM: readonly string[] = ['Sec-Fetch-Mode', 'navigate', 'Sec-Fetch-Site', 'same-origin']

async function logOut(sidecar: Pick<TestSidecar, 'request'>, cookie: string) {
  return sidecar.request({ method: 'POST', path: '/oauth/logout', fields: [...FROM_FORM, 'Cookie', cookie] })
}

/** The cookie after a further login of the same browser. */
async function logInAgain(sidecar: TestSidecar, cookie: string, password?: string) {
  const fields = [...FROM_FORM, 'Cookie', cookie]
  const response = await submitLogin(sidecar, { fields, ...(password === undefined ? {} : { password }) })
  expect(response.status).toBe(200)
  return { response, cookie: response.values('set-cookie')[0]?.split(';', 1)[0] ?? '' }
}

for (const transport of transports) {
  it(`H218 the logout and the first page after the end of a session clear the cache of the browser, over ${transport}`, async () => {
    const sidecar = await startWithLogin({ transport })
    const ask = (cookie: string, path = '/a', fields = NAVIGATION) =>
      sidecar.request({ path, fields: [...fields, 'Cookie', cookie] })
    const cookie = await logIn(sidecar)
    expect((await ask(cookie)).header('clear-site-data')).toBeUndefined()
    const out = await logOut(sidecar, cookie)
    expect(out.header('clear-site-data')).toBe(CLEARED)
    expect(out.text).toContain('<p id="message" role="status">You are logged out.</p>')
    // The page that the browser leaves with a response stays in its memory, so another one follows.
    expect(out.text).toContain('<meta http-equiv="refresh" content="0; url=/oauth/logout">')
    const after = await sidecar.request({ path: '/oauth/logout', fields: NAVIGATION })
    expect([after.status, after.header('clear-site-data')]).toEqual([200, CLEARED])
    expect(after.text).toContain('You are logged out.')
    expect(after.text).toContain('<a href="/">Log in</a>')

    const ended = await ask(cookie)
    expect([ended.status, ended.header('clear-site-data')]).toEqual([401, CLEARED])
    expect(ended.text).toContain('The session has ended, or the password has changed.')
    const next = '/oauth/login?to=%2Fa&why=ended'
    expect(ended.text).toContain(`content="0; url=${next.replace('&', '&amp;')}"`)
    const again = await ask(cookie, next, FROM_FORM)
    expect([again.status, again.header('clear-site-data')]).toEqual([401, CLEARED])
    expect(again.text).toContain('The session has ended, or the password has changed.')
    expect(again.text).toContain('action="/oauth/login?to=%2Fa"')
    expect(again.text).not.toContain('http-equiv="refresh"')
    // A file of a page must not clear the cache at each poll.
    expect((await ask(cookie, '/a', FROM_PAGE)).header('clear-site-data')).toBeUndefined()
    const fresh = await sidecar.request({ path: '/a', fields: NAVIGATION })
    expect(fresh.header('clear-site-data')).toBeUndefined()
    expect(fresh.text).not.toContain('id="message"')
  })
}

it('H218 a page of another site neither clears the cache nor says that the user is logged out', async () => {
  const sidecar = await startWithLogin()
  for (const site of ['cross-site', 'same-site']) {
    const fields = ['Sec-Fetch-Mode', 'navigate', 'Sec-Fetch-Site', site]
    const page = await sidecar.request({ path: '/oauth/logout', fields })
    expect(page.header('clear-site-data')).toBeUndefined()
    expect(page.text).toContain('action="/oauth/logout"')
  }
  const cookie = await logIn(sidecar)
  const page = await sidecar.request({ path: '/oauth/logout', fields: [...NAVIGATION, 'Cookie', cookie] })
  expect(page.header('clear-site-data')).toBeUndefined()
  expect(page.text).toContain('<button type="submit">Log out</button>')
})

it('H219 input that was not sent is said so, and the login leads to the page behind it', async () => {
  const sidecar = await startWithLogin({ transport: 'tls' })
  const dead = await logIn(sidecar)
  await logOut(sidecar, dead)
  const send = async (fields: readonly string[], ...referers: readonly string[]) => {
    const shown = referers.flatMap((each) => ['Referer', each])
    return sidecar.request({ method: 'POST', path: '/save?id=1', body: 'a=1', fields: [...fields, ...shown] })
  }
  const unsent = 'Your input was not sent, because you are not logged in.'
  const toOf = (text: string): unknown => /action="\/oauth\/login\?to=([^"&]*)"/.exec(text)?.[1]
  for (const [referers, to] of [
    [[`${sidecar.url}/form?tab=2`], '%2Fform%3Ftab%3D2'],
    [[`${sidecar.url}/`], '%2F'],
    [[], '%2F'],
    [['https://evil.example/form'], '%2F'],
    [[`${sidecar.url}.evil.example/form`], '%2F'],
    [[`${sidecar.url.replace('https', 'http')}/form`], '%2F'],
    [[`${sidecar.url}//evil.example/`], '%2F'],
    [[`${sidecar.url}/oauth/logout`], '%2F'],
    [['/form'], '%2F'],
    [[`${sidecar.url}/a`, `${sidecar.url}/b`], '%2F'],
  ] as const) {
    const page = await send(FROM_FORM, ...referers)
    expect([referers, page.status, toOf(page.text)]).toEqual([referers, 401, to])
    expect(page.text).toContain(unsent)
    expect(page.text).not.toContain('http-equiv="refresh"')
  }
  const ended = await send([...FROM_FORM, 'Cookie', dead], `${sidecar.url}/form`)
  expect(ended.header('clear-site-data')).toBe(CLEARED)
  const [, next = ''] = /content="0; url=([^"]+)"/.exec(ended.text) ?? []
  expect(next).toBe('/oauth/login?to=%2Fform&amp;why=unsent')
  const path = next.replace('&amp;', '&')
  const again = await sidecar.request({ path, fields: [...FROM_FORM, 'Cookie', dead] })
  expect([again.text.includes(unsent), toOf(again.text)]).toEqual([true, '%2Fform'])
  const foreign = await send(
    ['Sec-Fetch-Mode', 'navigate', 'Sec-Fetch-Site', 'cross-site'],
    `${sidecar.url}/a`,
  )
  expect(foreign.text).toContain('<a href="/">Open the device</a>')
  expect(sidecar.device.requests).toEqual([])
})

it('H219 a further login of a browser keeps what its tabs have open, until the logout', async () => {
  const device = await startDevice()
  acceptWebSockets(device)
  const sidecar = await startWithLogin({ device })
  const first = await logIn(sidecar)
  const open = await openWebSocket(sidecar.url, { headers: { Cookie: first, Origin: sidecar.url } })
  const second = await logInAgain(sidecar, first)
  expect(second.response.header('clear-site-data')).toBeUndefined()
  open.socket.send('still here')
  expect(String((await once(open.socket, 'message'))[0])).toBe('still here')
  const load = (cookie: string) => sidecar.request({ fields: [...FROM_PAGE, 'Cookie', cookie] })
  expect([(await load(first)).status, (await load(second.cookie)).status]).toEqual([401, 200])
  // One browser has one grant.
  expect(await sidecar.metric('postern_tokens')).toBe(2)
  const closed = once(open.socket, 'close')
  await logOut(sidecar, second.cookie)
  await closed
  expect(await sidecar.metric('postern_tokens')).toBe(0)
})

it('H219 a login of another name ends what the first one has open, and clears the cache', async () => {
  const device = await startDevice()
  acceptWebSockets(device)
  const names = makeNames({ admin: undefined, monitor: undefined })
  const sidecar = await startWithLogin({ device, config: names.config })
  const login = await submitLogin(sidecar, { password: passwordOf('admin') })
  const first = login.values('set-cookie')[0]?.split(';', 1)[0] ?? ''
  const open = await openWebSocket(sidecar.url, { headers: { Cookie: first, Origin: sidecar.url } })
  const closed = once(open.socket, 'close')
  const second = await logInAgain(sidecar, first, passwordOf('monitor'))
  expect(second.response.header('clear-site-data')).toBe(CLEARED)
  await closed
})

for (const transport of transports) {
  it(`H310 a session ends after browser.idle without a request, and an open WebSocket is one, over ${transport}`, async () => {
    const sidecar = await startWithLogin({
      transport,
      clock: stillClock(),
      config: { browser: IDLE, upstream: { tunnel_idle_timeout: '1d' } },
    })
    acceptWebSockets(sidecar.device)
    const ask = (cookie: string) => sidecar.request({ path: '/a', fields: [...NAVIGATION, 'Cookie', cookie] })
    const [idle, used, streaming] = [await logIn(sidecar), await logIn(sidecar), await logIn(sidecar)]
    const { socket } = await openWebSocket(sidecar.url, {
      headers: { Cookie: streaming, Origin: sidecar.url },
    })
    await sidecar.clock.leap(HOUR - 1)
    expect((await ask(used)).status).toBe(200)
    await sidecar.clock.leap(1)
    const ended = await ask(idle)
    expect([ended.status, ended.header('clear-site-data')]).toEqual([401, CLEARED])
    expect(ended.text).toContain('The session has ended')
    expect((await ask(used)).status).toBe(200)
    expect((await ask(streaming)).status).toBe(200)
    const counted = () => sidecar.metric('postern_tokens_revoked_total', { reason: 'browser_idle' })
    expect(await counted()).toBe(1)
    const closed = once(socket, 'close')
    socket.close()
    await closed
    await expect.poll(() => sidecar.metric('postern_tunnels')).toBe(0)
    await sidecar.clock.leap(HOUR)
    // No request asks about them: the sidecar ends them itself.
    await sidecar.clock.advance(1_000)
    expect([await counted(), await sidecar.metric('postern_tokens')]).toEqual([3, 0])
  })
}
