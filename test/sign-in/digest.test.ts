import { describe, expect, it } from 'vitest'
import { needs, run } from '../support/tools.ts'
import { type DigestDevice, startDigestDevice, startLighttpd } from './devices.ts'
import { type Signed, signedIn } from './signed-in.ts'

const auth = { digest: { user: 'admin' } }

/** Sends as the lane does: signed, and again after a challenge. */
async function exchange(signed: Signed, line = { method: 'GET', target: '/a?b=1' }): Promise<number> {
  await signed.signIn.ready()
  let answer = await signed.request(line)
  let mayLogin = true
  for (let turn = 1; signed.signIn.isChallenge(line, answer); turn += 1) {
    const renewal = await signed.signIn.renew(answer, answer.shown, mayLogin)
    if (renewal.kind === 'refused' || turn === 5) return answer.status
    if (renewal.kind === 'signed-in') mayLogin = false
    answer = await signed.request({ ...line, mark: renewal.kind === 'new-nonce' ? renewal.nonce : undefined })
  }
  signed.signIn.accepted(line, answer, answer.shown)
  return answer.status
}

const counts = ({ taken }: DigestDevice): (string | undefined)[] => taken.map((each) => each.get('nc'))

describe('The device under test', () => {
  it.each(['MD5', 'SHA-256', 'SHA-512-256'])('is one that curl signs in to with %s', async (algorithm) => {
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
    // curl 7 does not know the truncated SHA-512.
    if (algorithm !== 'SHA-512-256') expect(curl.stdout).toBe('from the device')
  })
})

describe('Signing in by Digest', () => {
  it.each([
    ['MD5', { algorithms: ['MD5'] }],
    ['MD5 by default', { algorithms: [''] }],
    ['MD5 without a qop, as RFC 2069 has it', { algorithms: [''], qop: undefined }],
    ['MD5-sess', { algorithms: ['MD5-sess'] }],
    ['SHA-256', { algorithms: ['SHA-256'] }],
    ['SHA-256-sess', { algorithms: ['SHA-256-sess'] }],
    ['SHA-512-256', { algorithms: ['SHA-512-256'] }],
    ['a user beyond ASCII', { user: 'jäsøn' }],
    ['a user beyond ASCII and charset', { user: 'jäsøn', charset: 'UTF-8' }],
    ['userhash', { user: 'jäsøn', userhash: true, charset: 'UTF-8', algorithms: ['SHA-256'] }],
  ])('works with %s, one nonce for all requests', async (_what, mood) => {
    const device = Object.assign(await startDigestDevice(), mood)
    const signed = await signedIn({ auth: { digest: { user: device.user } }, ...device })
    expect(await exchange(signed)).toBe(200)
    expect(await exchange(signed, { method: 'POST', target: '/"quoted"' })).toBe(200)
    expect(device.refusals).toBe(0)
    expect(signed.told).toEqual(['signed in'])
    if (device.qop !== undefined) expect(counts(device)).toEqual(['00000001', '00000002', '00000003'])
    expect(device.device.requests).toHaveLength(4)
  })

  it('answers the strongest of several challenges', async () => {
    const device = await startDigestDevice()
    device.algorithms = ['MD5', 'SHA-256', 'MD5-sess']
    expect(await exchange(await signedIn({ auth, ...device }))).toBe(200)
    expect(device.taken.every((each) => each.get('algorithm') === 'SHA-256')).toBe(true)
  })

  it.each([
    ['that is called stale', true],
    ['that was good before', false],
  ])('replaces a nonce %s without a login', async (_what, saysStale) => {
    const device = await startDigestDevice()
    device.saysStale = saysStale
    const signed = await signedIn({ auth, ...device })
    expect(await exchange(signed)).toBe(200)
    device.nonce = 'another'
    const before = device.device.requests.length
    expect(await exchange(signed)).toBe(200)
    expect(device.device.requests.length - before).toBe(2)
    expect(device.taken.at(-1)?.get('nc')).toBe('00000001')
    expect(signed.told).toEqual(['signed in'])
  })

  it('works with firmware that takes every nonce once and never says stale', async () => {
    const device = await startDigestDevice()
    Object.assign(device, { oneTime: true, saysStale: false })
    const signed = await signedIn({ auth, ...device })
    for (let i = 0; i < 3; i += 1) expect(await exchange(signed)).toBe(200)
    expect(signed.told).toEqual(['signed in'])
  })

  it.each(['MD5', 'SHA-256-sess'])(
    'goes over to the nonce that the device announces, with %s',
    async (name) => {
      const device = await startDigestDevice()
      Object.assign(device, { algorithms: [name], nextnonce: true })
      const signed = await signedIn({ auth, ...device })
      if (name === 'MD5') {
        for (let i = 0; i < 3; i += 1) expect(await exchange(signed)).toBe(200)
        expect(device.device.requests).toHaveLength(5)
        expect(new Set(counts(device))).toEqual(new Set(['00000001']))
      }
      const answer = ['Authentication-Info', 'nextnonce="x"', 'X-Other', '1']
      await signed.signIn.ready()
      expect(signed.signIn.conceal(answer, undefined)).toEqual(['X-Other', '1'])
    },
  )

  it('is renewed once, by the first of many requests that find the nonce worn out', async () => {
    const device = await startDigestDevice()
    const signed = await signedIn({ auth, ...device })
    await exchange(signed)
    device.nonce = 'another'
    const answers = await Promise.all(Array.from({ length: 20 }, () => signed.request()))
    expect(answers.every(({ status }) => status === 401)).toBe(true)
    const before = device.device.requests.length
    const renewed = await Promise.all(
      answers.map((answer) => signed.signIn.renew(answer, answer.shown, true)),
    )
    expect(renewed).toEqual(Array(20).fill({ kind: 'new-nonce', nonce: 'another' }))
    expect(device.device.requests.length).toBe(before)
    const [late] = answers
    if (late === undefined) expect.fail('no answers')
    const line = { method: 'GET', target: '/' }
    signed.signIn.credentialsFor(line, 'another')
    await signed.signIn.renew(late, late.shown, true)
    // Not begun anew: a count must never come twice.
    expect(signed.signIn.credentialsFor(line, 'another')?.fields[1]).toContain('nc=00000002')
  })

  it('repeats a request that was overtaken with a higher count of the same nonce', async () => {
    const device = await startDigestDevice()
    const signed = await signedIn({ auth, ...device })
    const line = { method: 'GET', target: '/' }
    await signed.signIn.ready()
    const late = signed.signIn.credentialsFor(line)
    await exchange(signed)
    const challenge = `Digest realm="r", nonce="${device.nonce}", qop="auth", stale=true`
    const answer = { status: 401, fields: ['WWW-Authenticate', challenge] }
    expect(await signed.signIn.renew(answer, late, true)).toEqual({ kind: 'new-nonce', nonce: device.nonce })
    expect(signed.signIn.credentialsFor(line, device.nonce)?.fields[1]).toContain('nc=00000004')
  })

  it('replaces a stale nonce that it never got to use', async () => {
    const device = await startDigestDevice()
    const signed = await signedIn({ auth, ...device })
    await exchange(signed)
    for (const nonce of ['second', 'third']) {
      device.nonce = nonce
      const answer = await signed.request()
      device.nonce = 'worn at once'
      expect((await signed.signIn.renew(answer, answer.shown, true)).kind).toBe('new-nonce')
    }
    expect(signed.told).toEqual(['signed in'])
    expect(device.device.requests.length).toBe(5)
  })

  it('begins with a nonce that wears out at once', async () => {
    const device = await startDigestDevice()
    device.device.server.once('request', (_request, response) => {
      response.once('finish', () => {
        device.nonce = 'another'
      })
    })
    const signed = await signedIn({ auth, ...device })
    expect(await exchange(signed)).toBe(200)
    expect(signed.told).toEqual(['signed in'])
  })

  it.each([
    ['one nonce', false],
    ['a new nonce with every answer', true],
  ])('finds out that the password has changed, and stops, with %s', async (_what, mints) => {
    const device = await startDigestDevice()
    const signed = await signedIn({ auth, ...device })
    let refused = 0
    signed.signIn.onRefused(() => {
      refused += 1
    })
    expect(await exchange(signed)).toBe(200)
    signed.clock.advance(10_000)
    device.password = 'another'
    device.nonce = 'another'
    if (mints) {
      device.device.server.on('request', () => {
        device.nonce += '.'
      })
    }
    for (let i = 0; i < 5; i += 1) expect(await exchange(signed)).toBe(401)
    expect(signed.told).toEqual(['signed in', 'refused 30000'])
    expect(refused).toBe(1)
    // The worn out nonce, the new one, and the login that settles it.
    expect(device.refusals).toBe(3)
  })

  it('takes a device that calls every nonce stale for one that cannot be signed in to, not for a wrong password', async () => {
    const device = await startDigestDevice()
    const signed = await signedIn({ auth, ...device })
    expect(await exchange(signed)).toBe(200)
    device.alwaysStale = true
    expect(await signed.signIn.check(device.password)).toEqual({
      kind: 'failed',
      failure: 'destination_unavailable',
    })
    expect(await exchange(signed)).toBe(401)
    expect(signed.told).toEqual(['signed in', 'unusable / calls every nonce stale'])
    device.alwaysStale = false
    expect(await exchange(signed)).toBe(200)
  })

  it('does nothing about a 401 that offers no Digest', async () => {
    const device = await startDigestDevice()
    const { signIn } = await signedIn({ auth, ...device })
    const basic = { status: 401, fields: ['WWW-Authenticate', 'Basic realm="x"'] }
    expect(signIn.isChallenge({ method: 'GET', target: '/' }, basic)).toBe(false)
  })

  it('keeps the password out of everything that it says', async () => {
    const device = await startDigestDevice()
    device.password = 'canary'
    const signed = await signedIn({ auth, ...device })
    await exchange(signed)
    await signed.signIn.check('canary2')
    expect(JSON.stringify([signed.told, signed.signIn])).not.toContain('canary')
    expect(device.device.bytes.toString('latin1')).not.toContain('canary')
  })
})

describe('Signing in to lighttpd by Digest', () => {
  it.each(['MD5', 'SHA-256', 'SHA-512-256', 'MD5|SHA-256'] as const)('works with %s', async (algorithm) => {
    needs('lighttpd')
    const { url, setPassword } = await startLighttpd('digest', algorithm)
    const signed = await signedIn({ auth, url, password: 'secret' })
    expect(await exchange(signed, { method: 'GET', target: '/index.html?a=b,c&d=%22' })).toBe(200)
    expect(await exchange(signed, { method: 'GET', target: '/' })).toBe(200)
    expect(signed.told).toEqual(['signed in'])
    expect((await signed.signIn.check('wrong')).kind).toBe('wrong')
    expect((await signed.signIn.check('secret')).kind).toBe('right')
    setPassword('changed')
    expect((await signed.signIn.check('changed')).kind).toBe('right')
    expect((await signed.signIn.check('secret')).kind).toBe('wrong')
  })
})
