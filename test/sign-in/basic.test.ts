import { writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { passUntil } from '../support/clock.ts'
import { unusedPort } from '../support/raw.ts'
import { needs } from '../support/tools.ts'
import { startBasicDevice, startLighttpd } from './devices.ts'
import { signedIn } from './signed-in.ts'

const auth = { kind: 'basic', user: 'admin' }

describe('Signing in by Basic', () => {
  it('tries the password once at the check path, and then sends it with every request', async () => {
    const device = await startBasicDevice()
    const { signIn, request, events } = await signedIn({ auth, ...device })
    expect(await signIn.ready()).toBeUndefined()
    expect((await request()).status).toBe(200)
    expect((await request({ method: 'POST', target: '/x' })).status).toBe(200)
    expect(events).toEqual(['signed in'])
    expect(device.device.requests.map(({ target }) => target)).toEqual(['/', '/', '/', '/x'])
    expect(device.device.requests[0]?.header('X-Extra')).toBe('yes')
    expect(device.device.requests[0]?.values('Host')).toEqual(['device.test'])
  })

  it('is one login for any number of waiting requests', async () => {
    const device = await startBasicDevice()
    const { signIn } = await signedIn({ auth, ...device })
    await Promise.all(Array.from({ length: 50 }, () => signIn.ready()))
    expect(device.attempts).toBe(1)
  })

  it('pauses for 30 s, then for a minute, after a wrong password, and requests go without it meanwhile', async () => {
    const device = await startBasicDevice()
    const { signIn, request, clock, events } = await signedIn({ auth, ...device, password: 'wrong' })
    for (let i = 0; i < 10; i += 1) {
      await signIn.ready()
      const response = await request()
      expect([response.status, response.shown]).toEqual([401, undefined])
      expect((await signIn.renew(response, response.shown, true)).kind).toBe('refused')
    }
    expect(device.refusals).toBe(1)
    await clock.advance(29_000)
    await signIn.ready()
    expect(device.refusals).toBe(1)
    await clock.advance(1_001)
    await signIn.ready()
    expect(device.refusals).toBe(2)
    await clock.advance(59_000)
    await signIn.ready()
    expect(device.refusals).toBe(2)
    expect(events).toEqual(['refused 30000', 'refused 60000'])
  })

  it('uses a new password in the file at the next refusal', async () => {
    const device = await startBasicDevice()
    const { signIn, request, clock, events, passwordFile } = await signedIn({ auth, ...device })
    await signIn.ready()
    device.password = 'another'
    writeFileSync(passwordFile, 'another\n')
    await clock.advance(10_000)
    const response = await request()
    expect(response.status).toBe(401)
    expect((await signIn.renew(response, response.shown, true)).kind).toBe('signed-in')
    expect((await request()).status).toBe(200)
    expect(events).toEqual(['signed in', 'signed in'])
    expect(device.refusals).toBe(1)
  })

  it('verifies a refusal by one login, and pauses after a login that did not help', async () => {
    const device = await startBasicDevice()
    const { signIn, request, events, clock } = await signedIn({ auth, ...device })
    await signIn.ready()
    const renewal = async (mayLogin: boolean) => {
      const response = await request({ target: '/forbidden' })
      return (await signIn.renew(response, response.shown, mayLogin)).kind
    }
    expect(await renewal(true)).toBe('signed-in')
    expect(await renewal(false)).toBe('refused')
    expect(await renewal(true)).toBe('refused')
    expect((await request()).status).toBe(200)
    expect(events).toEqual(['signed in', 'signed in'])
    await clock.advance(5_000)
    expect(await renewal(true)).toBe('signed-in')
    signIn.loginHelped()
    expect(await renewal(true)).toBe('signed-in')
  })

  it('logs in again at once after a login that the device broke off: that says nothing about the account', async () => {
    const device = await startBasicDevice()
    const { signIn, request, clock } = await signedIn({ auth, ...device })
    await signIn.ready()
    const breakOff = (incoming: IncomingMessage): void => {
      incoming.socket.destroy()
    }
    const refused = await request({ target: '/forbidden' })
    device.device.server.prependListener('request', breakOff)
    expect((await passUntil(clock, signIn.renew(refused, refused.shown, true))).kind).toBe('refused')
    device.device.server.off('request', breakOff)
    expect(await signIn.ready()).toBeUndefined()
    const next = await request({ target: '/forbidden' })
    expect((await signIn.renew(next, next.shown, true)).kind).toBe('signed-in')
  })

  it('needs no login if another request has renewed it meanwhile', async () => {
    const device = await startBasicDevice()
    const { signIn, request, clock } = await signedIn({ auth, ...device })
    await signIn.ready()
    const before = await request({ target: '/forbidden' })
    await clock.advance(6_000)
    expect((await signIn.renew(before, before.shown, true)).kind).toBe('signed-in')
    const attempts = device.attempts
    expect((await signIn.renew(before, before.shown, true)).kind).toBe('signed-in')
    expect(device.attempts).toBe(attempts)
  })

  it('never accepts a page without a login as a check path', async () => {
    const device = await startBasicDevice()
    const { signIn, events } = await signedIn({
      auth: { kind: 'basic', user: 'admin', check_path: '/open' },
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
    expect(events).toEqual([
      'unusable /open answered 200 and did not ask for Basic credentials; set check_path to a path that does',
    ])
  })

  it('reports why the device cannot be reached', async () => {
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

  it('reports once that the password file cannot be used, and continues without it', async () => {
    const device = await startBasicDevice()
    const { signIn, events, passwordFile } = await signedIn({ auth, ...device })
    writeFileSync(passwordFile, '')
    for (let i = 0; i < 3; i += 1) expect(await signIn.ready()).toBeUndefined()
    expect(events).toEqual([
      `unusable upstream.auth.password.file: ${passwordFile} must hold one line of text in UTF-8`,
    ])
  })

  it('does not start with an invalid password file', async () => {
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
