import { describe, expect, it } from 'vitest'
import { needs, run } from '../support/tools.ts'
import { type DigestDevice, startDigestDevice, startLighttpd } from './devices.ts'
import { type Signed, signedIn } from './signed-in.ts'

const auth = { kind: 'digest', user: 'admin' }

/** Sends a request with credentials, and repeats it after a challenge, as `sendSignedIn` does. */
async function exchange(signed: Signed, line = { method: 'GET', target: '/a?b=1' }): Promise<number> {
  await signed.signIn.ready()
  let response = await signed.request(line)
  let mayLogin = true
  for (let turn = 1; signed.signIn.isChallenge(line, response); turn += 1) {
    const renewal = await signed.signIn.renew(response, response.shown, mayLogin)
    if (renewal.kind === 'refused' || turn === 5) return response.status
    if (renewal.kind === 'signed-in') mayLogin = false
    response = await signed.request({
      ...line,
      mark: renewal.kind === 'new-nonce' ? renewal.nonce : undefined,
    })
  }
  signed.signIn.accepted(line, response, response.shown)
  return response.status
}

const counts = ({ accepted }: DigestDevice): (string | undefined)[] => accepted.map((each) => each.get('nc'))

describe('The Digest device of these tests', () => {
  it.each(['MD5', 'SHA-256'])('accepts the credentials of curl with %s', async (algorithm) => {
    needs('curl')
    const device = await startDigestDevice()
    device.algorithms = [algorithm]
    device.password = 'pass word'
    const curl = await run('curl', [
      '-s',
      '-o',
      '-',
      '--digest',
      '-u',
      'admin:pass word',
      `${device.url}/x?y`,
    ])
    expect(curl.stdout).toBe('from the device')
  })
})

describe('Signing in by Digest', () => {
  it.each([
    ['MD5', { algorithms: ['MD5'] }],
    ['MD5 by default', { algorithms: [''] }],
    ['MD5 without a qop (RFC 2069)', { algorithms: [''], qop: undefined }],
    ['MD5-sess', { algorithms: ['MD5-sess'] }],
    ['SHA-256', { algorithms: ['SHA-256'] }],
    ['SHA-256-sess', { algorithms: ['SHA-256-sess'] }],
    ['SHA-512-256', { algorithms: ['SHA-512-256'] }],
    ['a non-ASCII user', { user: 'jäsøn' }],
    ['a non-ASCII user and charset', { user: 'jäsøn', charset: 'UTF-8' }],
    ['userhash', { user: 'jäsøn', userhash: true, charset: 'UTF-8', algorithms: ['SHA-256'] }],
  ])('works with %s and one nonce for all requests', async (_what, behaviour) => {
    const device = Object.assign(await startDigestDevice(), behaviour)
    const signed = await signedIn({ auth: { kind: 'digest', user: device.user }, ...device })
    expect(await exchange(signed)).toBe(200)
    expect(await exchange(signed, { method: 'POST', target: '/"quoted"' })).toBe(200)
    expect(device.refusals).toBe(0)
    expect(signed.events).toEqual(['signed in'])
    if (device.qop !== undefined) expect(counts(device)).toEqual(['00000001', '00000002', '00000003'])
    expect(device.device.requests).toHaveLength(4)
  })

  it('uses the strongest of several challenges', async () => {
    const device = await startDigestDevice()
    device.algorithms = ['MD5', 'SHA-256', 'MD5-sess']
    expect(await exchange(await signedIn({ auth, ...device }))).toBe(200)
    expect(device.accepted.every((each) => each.get('algorithm') === 'SHA-256')).toBe(true)
  })

  it.each([
    ['called stale', true],
    ['that was valid before', false],
  ])('replaces a nonce %s without a login', async (_what, saysStale) => {
    const device = await startDigestDevice()
    device.saysStale = saysStale
    const signed = await signedIn({ auth, ...device })
    expect(await exchange(signed)).toBe(200)
    device.nonce = 'another'
    const before = device.device.requests.length
    expect(await exchange(signed)).toBe(200)
    expect(device.device.requests.length - before).toBe(2)
    expect(device.accepted.at(-1)?.get('nc')).toBe('00000001')
    expect(signed.events).toEqual(['signed in'])
  })

  it('works with firmware that accepts every nonce once and never says stale', async () => {
    const device = await startDigestDevice()
    Object.assign(device, { oneTime: true, saysStale: false })
    const signed = await signedIn({ auth, ...device })
    for (let i = 0; i < 3; i += 1) expect(await exchange(signed)).toBe(200)
    expect(signed.events).toEqual(['signed in'])
  })

  it.each(['MD5', 'SHA-256-sess'])(
    'uses the nonce that the device announces and conceals it, with %s',
    async (name) => {
      const device = await startDigestDevice()
      Object.assign(device, { algorithms: [name], nextnonce: true })
      const signed = await signedIn({ auth, ...device })
      if (name === 'MD5') {
        for (let i = 0; i < 3; i += 1) expect(await exchange(signed)).toBe(200)
        expect(device.device.requests).toHaveLength(5)
        expect(new Set(counts(device))).toEqual(new Set(['00000001']))
      }
      const response = ['Authentication-Info', 'nextnonce="x"', 'X-Other', '1']
      await signed.signIn.ready()
      expect(signed.signIn.conceal(response, undefined)).toEqual(['X-Other', '1'])
    },
  )

  it('replaces a stale nonce once for many concurrent requests', async () => {
    const device = await startDigestDevice()
    const signed = await signedIn({ auth, ...device })
    await exchange(signed)
    device.nonce = 'another'
    const responses = await Promise.all(Array.from({ length: 20 }, () => signed.request()))
    expect(responses.every(({ status }) => status === 401)).toBe(true)
    const before = device.device.requests.length
    const renewed = await Promise.all(
      responses.map((response) => signed.signIn.renew(response, response.shown, true)),
    )
    expect(renewed).toEqual(Array(20).fill({ kind: 'new-nonce', nonce: 'another' }))
    expect(device.device.requests.length).toBe(before)
    const [late] = responses
    if (late === undefined) expect.fail('no responses')
    const line = { method: 'GET', target: '/' }
    signed.signIn.credentialsFor(line, 'another')
    await signed.signIn.renew(late, late.shown, true)
    // The count continues: a device refuses a repeated count as a replay.
    expect(signed.signIn.credentialsFor(line, 'another')?.fields[1]).toContain('nc=00000002')
  })

  it('repeats a request that another one overtook with a higher count of the same nonce', async () => {
    const device = await startDigestDevice()
    const signed = await signedIn({ auth, ...device })
    const line = { method: 'GET', target: '/' }
    await signed.signIn.ready()
    const late = signed.signIn.credentialsFor(line)
    await exchange(signed)
    const challenge = `Digest realm="r", nonce="${device.nonce}", qop="auth", stale=true`
    const response = { status: 401, fields: ['WWW-Authenticate', challenge] }
    expect(await signed.signIn.renew(response, late, true)).toEqual({
      kind: 'new-nonce',
      nonce: device.nonce,
    })
    expect(signed.signIn.credentialsFor(line, device.nonce)?.fields[1]).toContain('nc=00000004')
  })

  it('replaces a nonce that becomes stale before its first use', async () => {
    const device = await startDigestDevice()
    const signed = await signedIn({ auth, ...device })
    await exchange(signed)
    for (const nonce of ['second', 'third']) {
      device.nonce = nonce
      const response = await signed.request()
      device.nonce = 'worn at once'
      expect((await signed.signIn.renew(response, response.shown, true)).kind).toBe('new-nonce')
    }
    expect(signed.events).toEqual(['signed in'])
    expect(device.device.requests.length).toBe(5)
  })

  it('starts with a nonce that becomes stale at once', async () => {
    const device = await startDigestDevice()
    device.device.server.once('request', (_request, response) => {
      response.once('finish', () => {
        device.nonce = 'another'
      })
    })
    const signed = await signedIn({ auth, ...device })
    expect(await exchange(signed)).toBe(200)
    expect(signed.events).toEqual(['signed in'])
  })

  it.each([
    ['one nonce', false],
    ['a new nonce in every response', true],
  ])('detects that the password has changed, and stops, with %s', async (_what, mints) => {
    const device = await startDigestDevice()
    const signed = await signedIn({ auth, ...device })
    let refused = 0
    signed.signIn.onRefused(() => {
      refused += 1
    })
    expect(await exchange(signed)).toBe(200)
    await signed.clock.advance(10_000)
    device.password = 'another'
    device.nonce = 'another'
    if (mints) {
      device.device.server.on('request', () => {
        device.nonce += '.'
      })
    }
    for (let i = 0; i < 5; i += 1) expect(await exchange(signed)).toBe(401)
    expect(signed.events).toEqual(['signed in', 'refused 30000'])
    expect(refused).toBe(1)
    // The request with the stale nonce, that with the new one, and the login that decides.
    expect(device.refusals).toBe(3)
  })

  it('reports a device that calls every nonce stale as unusable, not as a wrong password', async () => {
    const device = await startDigestDevice()
    const signed = await signedIn({ auth, ...device })
    expect(await exchange(signed)).toBe(200)
    device.alwaysStale = true
    expect(await signed.signIn.check(device.password)).toEqual({
      kind: 'failed',
      failure: 'destination_unavailable',
    })
    expect(await exchange(signed)).toBe(401)
    expect(signed.events).toEqual(['signed in', 'unusable / calls every nonce stale'])
    device.alwaysStale = false
    expect(await exchange(signed)).toBe(200)
  })

  it('ignores a 401 without a Digest challenge', async () => {
    const device = await startDigestDevice()
    const { signIn } = await signedIn({ auth, ...device })
    const basic = { status: 401, fields: ['WWW-Authenticate', 'Basic realm="x"'] }
    expect(signIn.isChallenge({ method: 'GET', target: '/' }, basic)).toBe(false)
  })

  it('keeps the password out of its events and requests', async () => {
    const device = await startDigestDevice()
    device.password = 'canary'
    const signed = await signedIn({ auth, ...device })
    await exchange(signed)
    await signed.signIn.check('canary2')
    expect(JSON.stringify([signed.events, signed.signIn])).not.toContain('canary')
    expect(device.device.bytes.toString('latin1')).not.toContain('canary')
  })
})

describe.concurrent('Signing in to lighttpd by Digest', () => {
  it.each(['MD5', 'SHA-256', 'SHA-512-256', 'MD5|SHA-256'] as const)('works with %s', async (algorithm) => {
    needs('lighttpd')
    const { url, setPassword } = await startLighttpd('digest', algorithm)
    const signed = await signedIn({ auth, url, password: 'secret' })
    expect(await exchange(signed, { method: 'GET', target: '/index.html?a=b,c&d=%22' })).toBe(200)
    expect(await exchange(signed, { method: 'GET', target: '/' })).toBe(200)
    expect(signed.events).toEqual(['signed in'])
    expect((await signed.signIn.check('wrong')).kind).toBe('wrong')
    expect((await signed.signIn.check('secret')).kind).toBe('right')
    setPassword('changed')
    expect((await signed.signIn.check('changed')).kind).toBe('right')
    expect((await signed.signIn.check('secret')).kind).toBe('wrong')
  })
})
