import { writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { unusedPort } from '../support/raw.ts'
import { needs } from '../support/tools.ts'
import { startBasicDevice, startLighttpd } from './devices.ts'
import { signedIn } from './signed-in.ts'

const auth = { basic: { user: 'admin' } }

describe('Signing in by Basic', () => {
  it('tries the password once, at the check path, and then sends it with every request', async () => {
    const device = await startBasicDevice()
    const { signIn, request, told } = await signedIn({ auth, ...device })
    expect(await signIn.ready()).toBeUndefined()
    expect((await request()).status).toBe(200)
    expect((await request({ method: 'POST', target: '/x' })).status).toBe(200)
    expect(told).toEqual(['signed in'])
    expect(device.device.requests.map(({ target }) => target)).toEqual(['/', '/', '/', '/x'])
    expect(device.device.requests[0]?.header('X-Extra')).toBe('yes')
    expect(device.device.requests[0]?.values('Host')).toEqual(['device.test'])
  })

  it('is one login, however many requests wait for it', async () => {
    const device = await startBasicDevice()
    const { signIn } = await signedIn({ auth, ...device })
    await Promise.all(Array.from({ length: 50 }, () => signIn.ready()))
    expect(device.attempts).toBe(1)
  })

  it('sends a wrong password once in 30 s, then once in a minute, and anonymous requests meanwhile', async () => {
    const device = await startBasicDevice()
    const { signIn, request, clock, told } = await signedIn({ auth, ...device, password: 'wrong' })
    for (let i = 0; i < 10; i += 1) {
      await signIn.ready()
      const answer = await request()
      expect([answer.status, answer.shown]).toEqual([401, undefined])
      expect((await signIn.renew(answer, answer.shown, true)).kind).toBe('refused')
    }
    expect(device.refusals).toBe(1)
    clock.advance(29_000)
    await signIn.ready()
    expect(device.refusals).toBe(1)
    clock.advance(1_001)
    await signIn.ready()
    expect(device.refusals).toBe(2)
    clock.advance(59_000)
    await signIn.ready()
    expect(device.refusals).toBe(2)
    expect(told).toEqual(['refused 30000', 'refused 60000'])
  })

  it('takes the password that the file holds by then, at once', async () => {
    const device = await startBasicDevice()
    const { signIn, request, clock, told, passwordFile } = await signedIn({ auth, ...device })
    await signIn.ready()
    device.password = 'another'
    writeFileSync(passwordFile, 'another\n')
    clock.advance(10_000)
    const answer = await request()
    expect(answer.status).toBe(401)
    expect((await signIn.renew(answer, answer.shown, true)).kind).toBe('signed-in')
    expect((await request()).status).toBe(200)
    expect(told).toEqual(['signed in', 'signed in'])
    expect(device.refusals).toBe(1)
  })

  it('checks a refusal by one login; one that does not help is the last for a while', async () => {
    const device = await startBasicDevice()
    const { signIn, request, told, clock } = await signedIn({ auth, ...device })
    await signIn.ready()
    const renewal = async (mayLogin: boolean) => {
      const answer = await request({ target: '/forbidden' })
      return (await signIn.renew(answer, answer.shown, mayLogin)).kind
    }
    expect(await renewal(true)).toBe('signed-in')
    expect(await renewal(false)).toBe('refused')
    expect(await renewal(true)).toBe('refused')
    expect((await request()).status).toBe(200)
    expect(told).toEqual(['signed in', 'signed in'])
    clock.advance(5_000)
    expect(await renewal(true)).toBe('signed-in')
    signIn.loginHelped()
    expect(await renewal(true)).toBe('signed-in')
  })

  it('goes on without a login when another request has renewed it meanwhile', async () => {
    const device = await startBasicDevice()
    const { signIn, request, clock } = await signedIn({ auth, ...device })
    await signIn.ready()
    const before = await request({ target: '/forbidden' })
    clock.advance(6_000)
    expect((await signIn.renew(before, before.shown, true)).kind).toBe('signed-in')
    const attempts = device.attempts
    expect((await signIn.renew(before, before.shown, true)).kind).toBe('signed-in')
    expect(device.attempts).toBe(attempts)
  })

  it('never takes a page that is open to everybody for a login', async () => {
    const device = await startBasicDevice()
    const { signIn, told } = await signedIn({
      auth: { basic: { user: 'admin', check_path: '/open' } },
      ...device,
      password: 'wrong',
    })
    await signIn.ready()
    expect(signIn.credentialsFor({ method: 'GET', target: '/' })).toBeUndefined()
    expect(await signIn.check(device.password)).toEqual({
      kind: 'failed',
      failure: 'destination_unavailable',
    })
    expect(device.attempts).toBe(0)
    expect(told).toEqual([
      'unusable /open answered 200 and did not ask for Basic credentials; set check_path to a path that does',
    ])
  })

  it('says which way the device cannot be reached', async () => {
    const url = `http://127.0.0.1:${await unusedPort()}`
    const { signIn } = await signedIn({ auth, url, password: 'x' })
    expect(await signIn.ready()).toBe('connection_refused')
    expect(await signIn.check('x')).toEqual({ kind: 'failed', failure: 'connection_refused' })
  })

  it('survives a connection that the device has closed meanwhile', async () => {
    const device = await startBasicDevice()
    const { signIn } = await signedIn({ auth, ...device })
    expect((await signIn.check('wrong')).kind).toBe('wrong')
    device.device.closeConnections()
    expect((await signIn.check(device.password)).kind).toBe('right')
  })

  it('tells when the password file is gone, once, and goes on unsigned', async () => {
    const device = await startBasicDevice()
    const { signIn, told, passwordFile } = await signedIn({ auth, ...device })
    writeFileSync(passwordFile, '')
    for (let i = 0; i < 3; i += 1) expect(await signIn.ready()).toBeUndefined()
    expect(told).toEqual([
      `unusable upstream.auth.basic.password.file: ${passwordFile} must hold one line of text in UTF-8`,
    ])
  })

  it('does not start with a password file that is no good', async () => {
    const device = await startBasicDevice()
    await expect(signedIn({ auth, ...device, password: '' })).rejects.toThrow(/must hold one line of text/)
    await expect(signedIn({ auth, ...device, password: 'a\nb' })).rejects.toThrow(
      /must hold one line of text/,
    )
  })

  it('works with lighttpd', async () => {
    needs('lighttpd')
    const { url } = await startLighttpd('basic')
    const { signIn, request } = await signedIn({ auth, url, password: 'secret' })
    await signIn.ready()
    expect((await request()).status).toBe(200)
    expect((await signIn.check('secret')).kind).toBe('right')
    expect((await signIn.check('Secret')).kind).toBe('wrong')
  })
})
