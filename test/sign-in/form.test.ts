import { describe, expect, it } from 'vitest'
import { formAuth, startFormDevice } from './devices.ts'
import { signedIn } from './signed-in.ts'

const auth = formAuth()
const checked = { ...auth, check_path: '/home' }
const home = { method: 'GET', target: '/home' }

describe('Signing in by a form', () => {
  it('sends the form once and its cookie with every request', async () => {
    const device = await startFormDevice()
    const form = { action: 'log in', x: '', username: '$user', password: '$password' }
    const { signIn, request, events } = await signedIn({
      auth: formAuth({ login: { path: '/login', form } }),
      ...device,
    })
    await Promise.all(Array.from({ length: 50 }, () => signIn.ready()))
    expect((await request(home)).status).toBe(200)
    expect((await request({ method: 'POST', target: '/other' })).status).toBe(200)
    expect(events).toEqual(['signed in'])
    expect(device.forms).toEqual([
      `action=log+in&x=&username=admin&password=${encodeURIComponent(device.password).replaceAll('%20', '+')}`,
    ])
    expect(device.device.requests[0]?.header('Content-Type')).toBe('application/x-www-form-urlencoded')
  })

  it('renews the session by one login for all waiting requests', async () => {
    const device = await startFormDevice()
    const { signIn, request, clock } = await signedIn({ auth, ...device })
    await signIn.ready()
    signIn.accepted(home, { status: 200, fields: [] }, signIn.credentialsFor(home))
    device.sessions.clear()
    await clock.advance(10_000)
    const responses = await Promise.all(Array.from({ length: 20 }, () => request(home)))
    expect(responses.every((response) => signIn.isChallenge(home, response))).toBe(true)
    const { promise, resolve } = Promise.withResolvers<void>()
    device.gate = () => promise
    const renewals = Promise.all(responses.map((response) => signIn.renew(response, response.shown, true)))
    resolve()
    expect(await renewals).toEqual(Array(20).fill({ kind: 'signed-in' }))
    expect(device.attempts).toBe(2)
    expect((await request(home)).status).toBe(200)
  })

  it.each(['redirect', '401'] as const)(
    'recognises a %s as a challenge, and no other response',
    async (asks) => {
      const device = await startFormDevice()
      device.asks = asks
      const { signIn, request } = await signedIn({ auth, ...device })
      expect(signIn.isChallenge(home, await request(home))).toBe(true)
      const redirect = (Location: string) => ({ status: 302, fields: ['Location', Location] })
      expect(signIn.isChallenge(home, redirect('http://device/login#x'))).toBe(true)
      expect(signIn.isChallenge({ ...home, target: '/a/b' }, redirect('../login?next=/a/b'))).toBe(true)
      // As servlets name their session to a client without cookies.
      expect(signIn.isChallenge(home, redirect('/login;jsessionid=1A2B?next=/home'))).toBe(true)
      expect(signIn.isChallenge(home, redirect('/login/help'))).toBe(false)
      expect(signIn.isChallenge(home, { status: 403, fields: [] })).toBe(false)
      // A user who signs in by hand with a wrong password.
      expect(signIn.isChallenge({ method: 'POST', target: '/login?x' }, redirect('/login?error'))).toBe(false)
    },
  )

  it('H237 sends the fields by the names of the configuration, and knows the login page by its own path', async () => {
    const device = await startFormDevice()
    const login = { path: '/login', page: '/sign-in', form: { who: '$user', secret: '$password' } }
    const { signIn } = await signedIn({ auth: { ...formAuth({ login }), user: 'jo' }, ...device })
    await signIn.ready()
    expect(device.forms[0]).toMatch(/^who=jo&secret=/)
    const redirect = (Location: string) => ({ status: 302, fields: ['Location', Location] })
    expect(signIn.isChallenge(home, redirect('/sign-in'))).toBe(true)
    expect(signIn.isChallenge(home, redirect('/login'))).toBe(false)
  })

  it('takes no cookie for a session that comes with a status of `expired`', async () => {
    const device = await startFormDevice()
    const { signIn } = await signedIn({ auth: formAuth({ expired: [403, 409] }), ...device })
    expect(signIn.isChallenge(home, { status: 409, fields: [] })).toBe(true)
    expect(signIn.isChallenge(home, { status: 401, fields: [] })).toBe(false)
    // A user who signs in by hand with a wrong password.
    expect(signIn.isChallenge({ method: 'POST', target: '/login' }, { status: 403, fields: [] })).toBe(false)
    device.device.handle((_request, response) =>
      response.writeHead(409, { 'Set-Cookie': 'SID=anonymous; Path=/' }).end(),
    )
    expect((await signIn.check(device.password)).kind).toBe('failed')
  })

  it('treats a redirect to the login page as a refusal', async () => {
    const device = await startFormDevice()
    const { signIn, events } = await signedIn({ auth, ...device, password: 'wrong' })
    await signIn.ready()
    expect(events).toEqual(['refused 30000'])
    expect(signIn.credentialsFor(home)).toBeUndefined()
  })

  it('with a check path detects a wrong password, even if the device sets a cookie', async () => {
    const device = await startFormDevice()
    device.lenient = true
    expect((await (await signedIn({ auth, ...device })).signIn.check('wrong')).kind).toBe('right')
    const { signIn } = await signedIn({ auth: checked, ...device })
    expect((await signIn.check('wrong')).kind).toBe('wrong')
    expect((await signIn.check(device.password)).kind).toBe('right')
  })

  it('never accepts a page without a login as a check path', async () => {
    const device = await startFormDevice()
    const { signIn } = await signedIn({
      auth: { ...auth, check_path: '/open' },
      ...device,
    })
    expect((await signIn.check(device.password)).kind).toBe('failed')
    expect(device.attempts).toBe(0)
  })

  it('without a check path detects a wrong password by the first request, and does not retry at once', async () => {
    const device = await startFormDevice()
    device.lenient = true
    const { signIn, request, events } = await signedIn({ auth, ...device, password: 'wrong' })
    for (let i = 0; i < 5; i += 1) {
      await signIn.ready()
      const response = await request(home)
      expect((await signIn.renew(response, response.shown, true)).kind).toBe('refused')
    }
    expect(device.attempts).toBe(1)
    expect(events).toEqual(['signed in', 'refused 30000'])
  })

  it.each([500, 503, 429, 423, 404, 409])(
    'treats %i as a failure, not as a wrong password',
    async (status) => {
      const device = await startFormDevice()
      device.loginStatus = status
      const { signIn, events } = await signedIn({ auth, ...device })
      expect((await signIn.check('x')).kind).toBe('failed')
      expect(events).toEqual([`unusable the login at /login answered ${status}`])
    },
  )

  it.each([400, 401, 403, 422])('treats %i as a wrong password', async (status) => {
    const device = await startFormDevice()
    device.loginStatus = status
    const { signIn } = await signedIn({ auth, ...device })
    expect((await signIn.check('x')).kind).toBe('wrong')
  })

  it('signs in again when the cookie has expired, before the next request', async () => {
    const device = await startFormDevice()
    device.attributes = '; Max-Age=60; Path=/'
    const { signIn, clock, request } = await signedIn({ auth, ...device })
    await signIn.ready()
    await clock.advance(61_000)
    await signIn.ready()
    expect(device.attempts).toBe(2)
    expect((await request(home)).status).toBe(200)
  })

  it('signs in again when a client changes the session or logs out', async () => {
    const device = await startFormDevice()
    const { signIn, request } = await signedIn({ auth, ...device })
    await signIn.ready()
    for (const target of ['/rotate', '/logout']) {
      const response = await request({ target })
      expect(response.status).toBe(200)
      signIn.accepted({ method: 'GET', target }, response, response.shown)
      await signIn.ready()
      expect((await request(home)).status).toBe(200)
    }
    expect(device.attempts).toBe(3)
  })

  it('does not take over the session of a client that signs in through the sidecar', async () => {
    const device = await startFormDevice()
    const { signIn, request } = await signedIn({ auth, ...device })
    await signIn.ready()
    const shown = signIn.credentialsFor(home)
    const response = { status: 302, fields: ['Location', '/home', 'Set-Cookie', 'SID=guest; Path=/'] }
    signIn.accepted({ method: 'POST', target: '/login' }, response, shown)
    expect((await request(home)).status).toBe(200)
  })

  it('conceals the session cookie from clients', async () => {
    const device = await startFormDevice()
    const { signIn } = await signedIn({ auth, ...device })
    await signIn.ready()
    const fields = ['A', '1', 'set-cookie', 'SID=x; Path=/', 'Set-Cookie', 'theme=dark', 'B', '2']
    expect(signIn.conceal(fields, undefined)).toEqual(['A', '1', 'Set-Cookie', 'theme=dark', 'B', '2'])
  })

  it('keeps all cookies of the login, or only the one that has the token', async () => {
    const device = await startFormDevice()
    device.decoys = ['csrf=1; Path=/', 'old=; Max-Age=0']
    const all = await signedIn({ auth, ...device })
    await all.signIn.ready()
    expect(all.signIn.credentialsFor(home)?.fields[1]).toMatch(/^csrf=1; SID=\w+$/)
    const named = await signedIn({ auth: formAuth({ token: { cookie: 'SID' } }), ...device })
    await named.signIn.ready()
    expect(named.signIn.credentialsFor(home)?.fields[1]).toMatch(/^SID=\w+$/)
    const missing = await signedIn({ auth: formAuth({ token: { cookie: 'X' } }), ...device })
    await missing.signIn.ready()
    expect(missing.events).toEqual(['refused 30000'])
  })

  it('sends a cookie only on its path', async () => {
    const device = await startFormDevice()
    device.attributes = '; Path=/api'
    const { signIn } = await signedIn({ auth, ...device })
    await signIn.ready()
    expect(signIn.credentialsFor({ method: 'GET', target: '/api/x' })?.fields).toHaveLength(2)
    expect(signIn.credentialsFor({ method: 'GET', target: '/apix' })?.fields).toEqual([])
  })
})
