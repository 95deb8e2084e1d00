import { describe, expect, it } from 'vitest'
import { createDevicePassword, type DevicePassword } from '../../src/password/device-source.ts'
import { openPasswords } from '../../src/password/sources.ts'
import { formAuth, startBasicDevice, startFormDevice, startLighttpd } from '../sign-in/devices.ts'
import { type SignedOptions, signedIn } from '../sign-in/signed-in.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { unusedPort } from '../support/raw.ts'
import { needs } from '../support/tools.ts'

const basic = { kind: 'basic', user: 'admin' }
const form = { ...formAuth(), check_path: '/home' }
const salt = new Uint8Array(16).fill(7)

const resultOf = (verified: Awaited<ReturnType<DevicePassword['verify']>>) =>
  'result' in verified ? verified.result : verified

/** Adds the names of the events to `events`. */
const listening = (events: string[]) => ({
  changed: () => void events.push('changed'),
  learned: async () => void events.push('learned'),
})

async function opened(url: string, auth: SignedOptions['auth'] = basic) {
  const signed = await signedIn({ auth, url, password: null })
  const events: string[] = []
  const source = createDevicePassword(stillClock(), signed.signIn, listening(events))
  closeLater(() => source[Symbol.dispose]())
  return { ...signed, source, events }
}

describe('A password that only the device knows', () => {
  it.each([
    ['Basic', basic, startBasicDevice],
    ['a form', form, startFormDevice],
  ] as const)('is verified by signing in to the device by %s', async (_how, auth, start) => {
    const device = await start()
    const { source, events, signIn } = await opened(device.url, auth)
    expect(await source.verify('wrong', '192.0.2.1')).toMatchObject({ result: 'wrong' })
    expect(await source.verify('', '192.0.2.1')).toMatchObject({ result: 'wrong' })
    expect(signIn.credentialsFor({ method: 'GET', target: '/home' })).toBeUndefined()
    expect(await source.verify(device.password, '192.0.2.1')).toMatchObject({ result: 'right' })
    expect(signIn.credentialsFor({ method: 'GET', target: '/home' })?.fields).toHaveLength(2)
    expect(await source.verify(device.password, '192.0.2.1')).toMatchObject({ result: 'right' })
    expect(events).toEqual(['learned'])
  })

  it('is unavailable, not wrong, while the device cannot be reached', async () => {
    const { source } = await opened(`http://127.0.0.1:${await unusedPort()}`)
    expect(await source.verify('x', '192.0.2.1')).toEqual({ unavailable: 'connection_refused' })
    expect(source.state()).toMatchObject({
      readable: false,
      reason: 'the device could not check the password (connection_refused)',
    })
  })

  it('C8 has changed when the device refuses the password that it has accepted', async () => {
    const device = await startBasicDevice()
    const { source, events } = await opened(device.url)
    await source.verify(device.password, '192.0.2.1')
    const old = device.password
    device.password = 'another'
    expect(await source.verify('a wrong one', '192.0.2.1')).toMatchObject({ result: 'wrong' })
    expect(events).toEqual(['learned'])
    expect(await source.verify(old, '192.0.2.1')).toMatchObject({ result: 'wrong' })
    expect(events).toEqual(['learned', 'changed'])
    expect(await source.fingerprint(salt)).toBeUndefined()
    expect(await source.verify('another', '192.0.2.1')).toMatchObject({ result: 'right' })
    expect(events).toEqual(['learned', 'changed', 'learned'])
  })

  it('C8 has changed when the device accepts another password and refuses the old one', async () => {
    const device = await startBasicDevice()
    const { source, events } = await opened(device.url)
    await source.verify(device.password, '192.0.2.1')
    device.password = 'another'
    expect(await source.verify('another', '192.0.2.1')).toMatchObject({ result: 'right' })
    expect(events).toEqual(['learned', 'changed'])
    expect(await source.verify('another', '192.0.2.1')).toMatchObject({ result: 'right' })
    expect(events).toEqual(['learned', 'changed'])
  })

  it('C8 has changed when the device refuses it for a forwarded request', async () => {
    const device = await startBasicDevice()
    const { source, events, signIn, request, clock } = await opened(device.url)
    await source.verify(device.password, '192.0.2.1')
    device.password = 'another'
    await clock.advance(10_000)
    const response = await request()
    expect((await signIn.renew(response, response.shown, true)).kind).toBe('refused')
    expect(events).toEqual(['learned', 'changed'])
    expect(signIn.credentialsFor({ method: 'GET', target: '/' })).toBeUndefined()
    const attempts = device.attempts
    await clock.advance(3_600_000)
    await signIn.ready()
    expect(device.attempts).toBe(attempts)
  })

  it('is not replaced by the earlier one when a login with that one ends later', async () => {
    const device = await startFormDevice()
    const { source, events, signIn, request, clock } = await opened(device.url, form)
    await source.verify(device.password, '192.0.2.1')
    device.sessions.clear()
    await clock.advance(10_000)
    const response = await request({ target: '/home' })
    const { promise, resolve } = Promise.withResolvers<void>()
    const reached = Promise.withResolvers<void>()
    device.gate = () => {
      reached.resolve()
      return promise
    }
    const renewed = signIn.renew(response, response.shown, true)
    await reached.promise
    device.gate = async () => {}
    device.password = 'another'
    expect(await source.verify('another', '192.0.2.1')).toMatchObject({ result: 'right' })
    resolve()
    expect((await renewed).kind).toBe('signed-in')
    expect((await request({ target: '/home' })).status).toBe(200)
    expect(events).toEqual(['learned', 'changed'])
  })

  it('has not changed if the device accepts several spellings', async () => {
    const signIn = {
      check: async (password: string) =>
        password.toLowerCase() === 'secret'
          ? { kind: 'right' as const, adopt() {}, discard() {} }
          : { kind: 'wrong' as const },
      onRefused() {},
    }
    const events: string[] = []
    const lenient = createDevicePassword(stillClock(), signIn, listening(events))
    for (const password of ['secret', 'SECRET', 'Secret', 'secret']) {
      expect(await lenient.verify(password, '192.0.2.1')).toMatchObject({ result: 'right' })
    }
    expect(events).toEqual(['learned'])
  })

  it('H32 is verified once for identical grants that wait, and one at a time for others', async () => {
    const device = await startBasicDevice()
    let most = 0
    let now = 0
    device.device.server.on('request', (_request, response) => {
      now += 1
      most = Math.max(most, now)
      response.once('close', () => {
        now -= 1
      })
    })
    const { source } = await opened(device.url)
    const same = await Promise.all(
      Array.from({ length: 20 }, () => source.verify(device.password, '192.0.2.1')),
    )
    expect(new Set(same.map(resultOf))).toEqual(new Set(['right']))
    // The first does not wait. The others do not join it, so that its time tells no one of it.
    expect(device.attempts).toBe(2)
    const others = await Promise.all(
      Array.from({ length: 20 }, (_, i) => source.verify(`wrong ${i}`, '192.0.2.1')),
    )
    expect(new Set(others.map(resultOf))).toEqual(new Set(['wrong']))
    expect(most).toBe(1)
  })

  it('H32 is verified for the clients in turn, so that one that floods logins shuts out no other', async () => {
    const device = await startBasicDevice()
    const { source } = await opened(device.url)
    const flood = Array.from({ length: 200 }, (_, i) => source.verify(`wrong ${i}`, '192.0.2.66'))
    expect(await source.verify(device.password, '192.0.2.1')).toMatchObject({ result: 'right' })
    // The one that ran, and those that were drawn before it, each with a chance of a half.
    expect(device.attempts).toBeLessThan(20)
    await Promise.all(flood)
  })

  it('C26 is verified first for a client that has logged in before', async () => {
    const device = await startBasicDevice()
    const { signIn } = await signedIn({ auth: basic, url: device.url, password: null })
    const precedence = { isKnown: (client: string) => client === '192.0.2.1', weightOf: () => 1 }
    const source = createDevicePassword(stillClock(), signIn, listening([]), precedence)
    const guesses = Array.from({ length: 100 }, (_, i) => source.verify(`wrong ${i}`, `198.51.100.${i}`))
    expect(await source.verify(device.password, '192.0.2.1')).toMatchObject({ result: 'right' })
    expect(device.attempts).toBe(2)
    await Promise.all(guesses)
  })

  it('is verified for a bounded number of concurrent grants', async () => {
    const device = await startBasicDevice()
    const { source } = await opened(device.url)
    const verdicts = await Promise.all(
      Array.from({ length: 200 }, (_, i) => source.verify(`wrong ${i}`, '192.0.2.1')),
    )
    expect(verdicts.map(resultOf).filter((each) => each === 'overloaded').length).toBeGreaterThan(100)
    expect(verdicts.map(resultOf)).not.toContain('right')
  })

  it('is verified by lighttpd', async () => {
    needs('lighttpd')
    const { url, setPassword } = await startLighttpd('digest', 'SHA-256')
    const { source, events } = await opened(url, { kind: 'digest', user: 'admin' })
    expect(await source.verify('wrong', '192.0.2.1')).toMatchObject({ result: 'wrong' })
    expect(await source.verify('secret', '192.0.2.1')).toMatchObject({ result: 'right' })
    setPassword('changed')
    expect(await source.verify('secret', '192.0.2.1')).toMatchObject({ result: 'wrong' })
    expect(await source.verify('changed', '192.0.2.1')).toMatchObject({ result: 'right' })
    expect(events).toEqual(['learned', 'changed', 'learned'])
  })
})

it('C8 is adopted only when the tokens of an earlier run are settled', async () => {
  const device = await startBasicDevice()
  const { signIn } = await signedIn({ auth: basic, url: device.url, password: null })
  const settled = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<string>()
  const source = createDevicePassword(stillClock(), signIn, {
    changed() {},
    async learned(fingerprint) {
      asked.resolve(await fingerprint(salt))
      await settled.promise
    },
  })
  const verified = source.verify(device.password, '192.0.2.1')
  const fingerprint = await asked.promise
  expect(await source.fingerprint(salt)).toBeUndefined()
  expect(signIn.credentialsFor({ method: 'GET', target: '/home' })).toBeUndefined()
  settled.resolve()
  expect(await verified).toMatchObject({ result: 'right' })
  expect(await source.fingerprint(salt)).toBe(fingerprint)
})

it('the fingerprint equals that of a file with the same password', async () => {
  const device = await startBasicDevice()
  const { source, clock } = await opened(device.url)
  await source.verify(device.password, '192.0.2.1')
  const { passwordFile } = await signedIn({ auth: basic, url: 'http://192.0.2.1', password: device.password })
  const file = await openPasswords([{ name: '', file: passwordFile, key: 'password.file' }], { clock })
  closeLater(() => file[Symbol.dispose]())
  expect(await file.fingerprint(salt)).toBe(await source.fingerprint(salt))
})
