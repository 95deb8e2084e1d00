import { writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { passUntil } from '../support/clock.ts'
import { PAGE_PASSWORD } from '../support/passwords.ts'
import { loginForm, revocation, startAdmin } from './viewing.ts'

it('H152 with a password nothing of the page is served without a login, not even on loopback', async () => {
  const viewed = await startAdmin({ password: true })
  const page = await viewed.ask('/')
  expect([page.status, page.headers['www-authenticate'], page.headers['cache-control']]).toEqual([
    401,
    'Cookie realm="Postern"',
    'no-store',
  ])
  expect(page.text).toContain('action="page/login"')
  expect(page.text).toContain('<title>Sign in to Postern</title>')
  // Password managers keep the password under this name.
  expect(page.text).toContain('<input type="text" autocomplete="username" value="postern" readonly hidden>')
  for (const path of ['/page/events', '/page/requests', '/page/requests?id=1']) {
    expect((await viewed.ask(path)).status, path).toBe(401)
  }
  expect((await viewed.ask('/page/revoke', revocation(viewed.url))).status).toBe(401)
  expect(viewed.revoked).toEqual([])
  expect((await viewed.ask('/page/main.js')).status).toBe(200)
})

it('H152 a login begins a session, and signing out ends it with its stream', async () => {
  const viewed = await startAdmin({ password: true })
  const { status, headers } = await viewed.ask('/page/login', loginForm(viewed.url))
  expect([status, headers.location]).toEqual([303, '../'])
  const [set] = headers['set-cookie'] ?? []
  expect(set).toMatch(/^postern-[\da-f]{12}=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=604800$/)
  const Cookie = String(set).split(';', 1)[0] ?? ''
  expect((await viewed.ask('/', { headers: { Cookie: `a=b; ${Cookie}; c` } })).text).toContain('The page')
  const stream = await viewed.stream({ headers: { Cookie } })
  expect((await stream.next('start')).data).toMatchObject({ signedIn: true, mayRevoke: true })
  const revoking = revocation(viewed.url, { grant: '0123456789abcdef' })
  const revoked = await viewed.ask('/page/revoke', { ...revoking, headers: { ...revoking.headers, Cookie } })
  expect([revoked.status, JSON.parse(revoked.text)]).toEqual([200, { revoked: 1 }])
  expect(viewed.revoked).toEqual([{ which: { grant: '0123456789abcdef' }, reason: 'operator' }])

  const out = await viewed.ask('/page/logout', { method: 'POST', headers: { Cookie, Origin: viewed.url } })
  expect([out.status, out.headers.location]).toEqual([303, '../'])
  expect(out.headers['set-cookie']?.[0]).toContain('Max-Age=0')
  await stream.ended
  expect((await viewed.ask('/', { headers: { Cookie } })).status).toBe(401)

  expect(viewed.logged('live page').map(({ msg, client }) => [msg, client])).toEqual([
    ['live page: signed in', '127.0.0.1'],
    ['live page: tokens revoked', '127.0.0.1'],
  ])
})

it('H152 a session ends after 12 h without use and after 7 days, and its stream with it', async () => {
  const hour = 3_600_000
  const viewed = await startAdmin({ password: true })
  const Cookie = await viewed.signIn()
  const status = async () => (await viewed.ask('/', { headers: { Cookie } })).status
  await viewed.clock.advance(11 * hour)
  expect(await status()).toBe(200)
  await viewed.clock.advance(11 * hour)
  expect(await status()).toBe(200)
  const stream = await viewed.stream({ headers: { Cookie } })
  for (let i = 0; i < 14; i += 1) {
    await viewed.clock.advance(10 * hour)
    await viewed.overview.tick()
  }
  await stream.next('point')
  await viewed.clock.advance(10 * hour)
  await viewed.overview.tick()
  await stream.ended
  expect(await status()).toBe(401)

  const other = { headers: { Cookie: await viewed.signIn() } }
  await viewed.clock.advance(12 * hour)
  expect((await viewed.ask('/', other)).status).toBe(401)
})

it('H152 a changed password ends all sessions and their streams', async () => {
  const viewed = await startAdmin({ password: true })
  const Cookie = await viewed.signIn()
  const stream = await viewed.stream({ headers: { Cookie } })
  await stream.next('start')
  writeFileSync(viewed.passwordFile, 'another\n')
  await passUntil(viewed.clock, stream.ended)
  expect((await viewed.ask('/', { headers: { Cookie } })).status).toBe(401)
  expect((await viewed.ask('/page/login', loginForm(viewed.url))).status).toBe(401)
  expect((await viewed.ask('/page/login', loginForm(viewed.url, 'another'))).status).toBe(303)
})

it('H356 a long password of any characters opens the page, and one that differs in its last character does not', async () => {
  const viewed = await startAdmin({ password: true })
  const long = `${'a'.repeat(100)} ü€😀 "'\\&=%+${'0'.repeat(88)}`
  const attempt = async (password: string) => {
    // A look at the file, and room for a wrong password.
    await viewed.clock.advance(60_000)
    return (await viewed.ask('/page/login', loginForm(viewed.url, password))).status
  }
  writeFileSync(viewed.passwordFile, `${long}\n`)
  await expect.poll(() => attempt(long)).toBe(303)
  expect(await attempt(`${long.slice(0, -1)}1`)).toBe(401)
})

it('H152 keeps 64 sessions, and takes no id from a client', async () => {
  const viewed = await startAdmin({ password: true })
  const first = await viewed.signIn()
  const second = await viewed.signIn()
  for (let i = 0; i < 62; i += 1) {
    await viewed.clock.advance(1)
    await viewed.signIn()
  }
  const status = async (Cookie: string) => (await viewed.ask('/', { headers: { Cookie } })).status
  expect(await status(first)).toBe(200)
  await viewed.signIn()
  expect([await status(first), await status(second)]).toEqual([200, 401])

  const [name = ''] = first.split('=')
  const planted = `${name}=${'A'.repeat(43)}`
  const form = loginForm(viewed.url)
  const { headers } = await viewed.ask('/page/login', {
    ...form,
    headers: { ...form.headers, Cookie: planted },
  })
  expect(headers['set-cookie']?.[0]).not.toContain('AAAA')
  expect(await status(planted)).toBe(401)
  expect(await status(`${planted}; ${first}`)).toBe(200)
  // A login ends the session that the browser had.
  await viewed.ask('/page/login', { ...form, headers: { ...form.headers, Cookie: first } })
  expect(await status(first)).toBe(401)
})

it('H152 a wrong password is told on the page, and ten a minute are the most from one address', async () => {
  const viewed = await startAdmin({ password: true })
  const attempt = (password: string) => viewed.ask('/page/login', loginForm(viewed.url, password))
  const wrong = await attempt('wrong & <b>')
  expect([wrong.status, wrong.headers['set-cookie']]).toEqual([401, undefined])
  expect(wrong.text).toContain('<p id="message" role="alert">Wrong password.</p>')
  // Relative to /page/login, where the browser is now.
  expect(wrong.text).toContain('href="icon.svg"')
  expect(wrong.text).toContain('action="login"')
  expect((await viewed.ask('/page/login')).headers.location).toBe('../')

  await viewed.signIn()
  const statuses = await Promise.all(Array.from({ length: 12 }, async () => (await attempt('wrong')).status))
  expect(statuses.filter((status) => status === 401)).toHaveLength(9)
  const late = await attempt(PAGE_PASSWORD)
  expect(late.status).toBe(429)
  expect(Number(late.headers['retry-after'])).toBeGreaterThan(50)
  expect(late.text).toMatch(/Too many failed logins.*Try again in \d+ s/)
  await viewed.clock.advance(60_000)
  expect((await attempt(PAGE_PASSWORD)).status).toBe(303)

  const failures = viewed.logged('failed login')
  expect(failures.map(({ failures: count, client }) => [count, client])).toEqual([
    [1, '127.0.0.1'],
    [10, '127.0.0.1'],
  ])
})

it('H153 without a password the page is for this machine only, and says what to set', async () => {
  const local = await startAdmin()
  expect((await local.ask('/')).status).toBe(200)
  expect((await local.ask('/page/login', loginForm(local.url))).status).toBe(404)
  const open = await startAdmin({ address: '0.0.0.0:0' })
  const page = await open.ask('/')
  expect([page.status, page.headers['content-type']]).toEqual([403, 'text/plain; charset=utf-8'])
  expect(page.text).toContain('admin.password_file')
  for (const path of ['/page/events', '/page/requests']) {
    const { status, text } = await open.ask(path)
    expect([status, JSON.parse(text).error], path).toEqual([403, 'page_off'])
  }
  expect((await open.ask('/page/revoke', revocation(open.url))).status).toBe(403)
  expect(open.revoked).toEqual([])
  const guarded = await startAdmin({ address: '0.0.0.0:0', password: true })
  const Cookie = await guarded.signIn()
  expect((await guarded.ask('/', { headers: { Cookie } })).status).toBe(200)
})
