import { describe, expect, it } from 'vitest'
import { send } from '../support/client.ts'
import { stillClock } from '../support/clock.ts'
import { limitsOf } from '../support/expectations.ts'
import { type ApiRequest, startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeProtocols, type Transport } from '../support/transports.ts'

const apiLimit = (per: string, requests = 10): YamlPart => ({ limits: { api: { requests, per } } })

async function remaining(sidecar: TestSidecar, request?: ApiRequest): Promise<number> {
  return limitsOf(await sidecar.request(request)).remaining
}

/** Starts a sidecar with trusted proxies; by default the test client's own address is one. */
function behindProxy(trusted: readonly string[] = ['127.0.0.1'], transport: Transport = 'http1') {
  return startSidecar({
    clock: stillClock(),
    transport,
    config: { listen: { trusted_proxies: trusted }, ...apiLimit('client') },
  })
}

/** `X-RateLimit-Remaining` for the client that `X-Forwarded-For` names. Each value is a field line of its own. */
function remainingFor(sidecar: TestSidecar, ...forwardedFor: string[]): Promise<number> {
  return remaining(sidecar, { fields: forwardedFor.flatMap((value) => ['X-Forwarded-For', value]) })
}

const ADDRESS_FIELDS = [
  'X-Forwarded-For',
  'X-Real-IP',
  'X-Client-IP',
  'True-Client-IP',
  'CF-Connecting-IP',
  'X-Cluster-Client-IP',
]

describeProtocols('C17 The key of a window', (transport) => {
  it('C17 per client: each address has its own window, whatever its token', async () => {
    const sidecar = await startSidecar({ clock: stillClock(), transport, config: apiLimit('client') })
    const token = await sidecar.token()
    expect(await remaining(sidecar, { from: '127.0.0.2' })).toBe(9)
    expect(await remaining(sidecar, { from: '127.0.0.2', token })).toBe(8)
    expect(await remaining(sidecar, { from: '127.0.0.3', token })).toBe(9)
    expect(await remaining(sidecar, { from: '127.0.0.2', token: await sidecar.token() })).toBe(7)
  })

  it('C17 per client: listen.address auto has one window for an IPv4 client, and one for an IPv6 network', async () => {
    const sidecar = await startSidecar({
      clock: stillClock(),
      transport,
      config: { listen: { address: 'auto:0' }, ...apiLimit('client') },
    })
    const { protocol, port } = new URL(sidecar.url)
    const ask = async (host: string, from?: string) =>
      limitsOf(await send({ transport, url: `${protocol}//${host}:${port}`, ...(from && { from }) }))
        .remaining
    expect([await ask('127.0.0.1'), await ask('[::ffff:127.0.0.1]'), await ask('[::1]')]).toEqual([9, 8, 9])
    expect([await ask('127.0.0.1', '127.0.0.2'), await ask('127.0.0.1')]).toEqual([9, 7])
  })

  it('C17 per client: each address has its own window at the token endpoint', async () => {
    const sidecar = await startSidecar({
      clock: stillClock(),
      transport,
      config: { limits: { oauth: { requests: 10 } } },
    })
    const ask = async (from: string) => limitsOf(await sidecar.postToken({}, { from })).remaining
    expect([await ask('127.0.0.2'), await ask('127.0.0.3'), await ask('127.0.0.2')]).toEqual([9, 9, 8])
  })

  it('C17 per grant: the tokens of one grant share a window, from any address and after a refresh', async () => {
    const sidecar = await startSidecar({ clock: stillClock(), transport, config: apiLimit('grant') })
    const [one, other] = [await sidecar.grant(), await sidecar.grant()]
    expect(await remaining(sidecar, { token: one.access_token })).toBe(9)
    expect(await remaining(sidecar, { token: one.access_token, from: '127.0.0.2' })).toBe(8)
    expect(await remaining(sidecar, { token: other.access_token, from: '127.0.0.2' })).toBe(9)
    const refreshed = await sidecar.refresh(one.refresh_token)
    expect(refreshed.access_token).not.toBe(one.access_token)
    expect(await remaining(sidecar, { token: refreshed.access_token })).toBe(7)
  })

  it('C17 per grant: requests without a valid token count per client', async () => {
    const clock = stillClock()
    const sidecar = await startSidecar({
      transport,
      config: { ...apiLimit('grant'), tokens: { access_lifetime: '5s' } },
      clock,
    })
    const { access_token, refresh_token } = await sidecar.grant()
    expect(await remaining(sidecar)).toBe(9)
    expect(await remaining(sidecar, { token: 'unknown' })).toBe(8)
    expect(await remaining(sidecar, { token: refresh_token })).toBe(7)
    expect(await remaining(sidecar, { token: access_token })).toBe(9)
    expect(await remaining(sidecar, { from: '127.0.0.2' })).toBe(9)
    await clock.advance(5000)
    expect(await remaining(sidecar, { token: access_token }), 'expired').toBe(6)
  })

  it('C17 per device: all clients and grants share one window', async () => {
    const sidecar = await startSidecar({ clock: stillClock(), transport, config: apiLimit('device') })
    const token = await sidecar.token()
    expect(await remaining(sidecar)).toBe(9)
    expect(await remaining(sidecar, { token })).toBe(8)
    expect(await remaining(sidecar, { token: await sidecar.token(), from: '127.0.0.2' })).toBe(7)
    expect(await remaining(sidecar, { from: '127.0.0.3' })).toBe(6)
  })

  it('C17 H69 an untrusted peer stays one client, whatever address, token, path or connection its requests have', async () => {
    const sidecar = await startSidecar({
      transport,
      clock: stillClock(),
      config: { listen: { trusted_proxies: ['127.0.0.9'] }, limits: { api: { requests: 20 } } },
    })
    const tokens = await Promise.all(Array.from({ length: 5 }, () => sidecar.token()))
    const connections = await Promise.all(Array.from({ length: 10 }, () => sidecar.connect()))
    const responses = await Promise.all(
      Array.from({ length: 120 }, (_, i) => {
        const address = i === 0 ? '127.0.0.9' : `198.51.100.${i}`
        const spoofed = ADDRESS_FIELDS.flatMap((name) => [name, address])
        const rest = [
          'Forwarded',
          `for=${address}`,
          'Via',
          `1.1 ${address}`,
          'User-Agent',
          address,
          'Cookie',
          address,
        ]
        return connections[i % 10]?.send({
          path: `/${i}?client=${address}`,
          fields: ['Authorization', `Bearer ${tokens[i % 5]}`, ...spoofed, ...rest],
        })
      }),
    )
    expect(responses.filter((response) => response?.status !== 429)).toHaveLength(20)
    expect(sidecar.device.requests).toHaveLength(20)
  })

  it('C17 only X-Forwarded-For of a trusted peer names the client', async () => {
    const sidecar = await behindProxy(['127.0.0.1'], transport)
    expect(await remainingFor(sidecar, '192.0.2.1')).toBe(9)
    expect(await remainingFor(sidecar, '192.0.2.1')).toBe(8)
    expect(await remainingFor(sidecar, '192.0.2.2')).toBe(9)
    expect(await remaining(sidecar), 'the proxy itself').toBe(9)
    expect(await remaining(sidecar, { fields: ['X-Real-IP', '192.0.2.3'] })).toBe(8)
    expect(await remaining(sidecar, { fields: ['Forwarded', 'for=192.0.2.3'] })).toBe(7)
  })
})

describe('C17 X-Forwarded-For', () => {
  it('C17 is read from the right: entries that the client itself wrote are ignored', async () => {
    const sidecar = await behindProxy()
    expect(await remainingFor(sidecar, '192.0.2.1')).toBe(9)
    expect(await remainingFor(sidecar, '198.51.100.7, 192.0.2.1')).toBe(8)
    expect(await remainingFor(sidecar, '198.51.100.8', '192.0.2.1')).toBe(7)
    expect(await remainingFor(sidecar, 'nonsense,, 192.0.2.1 ')).toBe(6)
    expect(await remainingFor(sidecar, '127.0.0.1, 192.0.2.1')).toBe(5)
    expect(await remainingFor(sidecar, '192.0.2.1,')).toBe(4)
    expect(await remainingFor(sidecar, '::FFFF:c000:201')).toBe(3)
    expect(await remainingFor(sidecar, '192.0.2.1:4711')).toBe(2)
  })

  it('C17 is read past every trusted proxy on the right', async () => {
    const sidecar = await behindProxy(['127.0.0.1', '10.0.0.0/8', 'fd00::/8'])
    expect(await remainingFor(sidecar, '192.0.2.1')).toBe(9)
    expect(await remainingFor(sidecar, '192.0.2.1, 10.1.2.3, fd00::7, 127.0.0.1')).toBe(8)
    expect(await remainingFor(sidecar, '198.51.100.7, 192.0.2.1, 10.1.2.3')).toBe(7)
    expect(await remainingFor(sidecar, '10.9.9.9'), 'all trusted: the leftmost is the client').toBe(9)
    expect(await remainingFor(sidecar, '10.9.9.9, 10.1.1.1')).toBe(8)
  })

  // `gate/client-address.test.ts` has all entries.
  it('C17 an entry that is no address is replaced by the address of the proxy that wrote it', async () => {
    const sidecar = await behindProxy()
    let left = 9
    expect(await remaining(sidecar)).toBe(left)
    for (const value of ['unknown', '0x7f.1', '192.0.2.1 192.0.2.2', 'a'.repeat(5000)]) {
      expect(await remainingFor(sidecar, value), value).toBe(left - 1)
      expect(await remainingFor(sidecar, `192.0.2.1, ${value}`), value).toBe(left - 2)
      left -= 2
    }
  })

  it('C17 a dual-stack listener knows an IPv4 peer by its IPv4 address, also in trusted_proxies', async () => {
    const sidecar = await startSidecar({
      clock: stillClock(),
      config: { listen: { address: '[::]:0', trusted_proxies: ['127.0.0.9'] }, ...apiLimit('client') },
    })
    const url = sidecar.url.replace('[::]', '127.0.0.1')
    const ask = async (from: string, ...fields: string[]) =>
      limitsOf(await send({ transport: 'http1', url, from, fields })).remaining
    expect(await ask('127.0.0.2')).toBe(9)
    expect(await ask('127.0.0.3')).toBe(9)
    expect(await ask('127.0.0.9', 'X-Forwarded-For', '127.0.0.2')).toBe(8)
    expect(
      limitsOf(await send({ transport: 'http1', url: url.replace('127.0.0.1', '[::1]') })),
    ).toMatchObject({
      remaining: 9,
    })
  })
})

describe('C17 Address spraying', () => {
  it('C17 H69 past max_keys new clients share one window, and no live window is evicted', async () => {
    const clock = stillClock()
    const sidecar = await startSidecar({
      clock,
      config: {
        listen: { trusted_proxies: ['127.0.0.1'] },
        limits: { api: { requests: 3 }, max_keys: 2 },
      },
    })
    const ask = async (client: string) => {
      const response = await sidecar.request({ fields: ['X-Forwarded-For', client] })
      return response.status === 429 ? 'refused' : limitsOf(response).remaining
    }
    expect([await ask('192.0.2.1'), await ask('192.0.2.1'), await ask('192.0.2.1')]).toEqual([2, 1, 0])
    expect(await ask('192.0.2.2')).toBe(2)
    const sprayed = []
    for (let i = 0; i < 50; i += 1) sprayed.push(await ask(`198.51.100.${i}`))
    expect(sprayed).toEqual([2, 1, 0, ...Array(47).fill('refused')])
    expect(await ask('192.0.2.1'), 'its window is still there').toBe('refused')
    expect([await ask('192.0.2.2'), await ask('192.0.2.2'), await ask('192.0.2.2')]).toEqual([
      1,
      0,
      'refused',
    ])
    expect(await sidecar.metric('postern_rate_windows', { endpoint: 'api' })).toBeLessThanOrEqual(3)
    await clock.advance(60_000)
    expect([await ask('198.51.100.200'), await ask('192.0.2.1')]).toEqual([2, 2])
  })

  it('C17 H69 forty addresses of one /64 are one client, however they are written', async () => {
    const config = { listen: { trusted_proxies: ['127.0.0.1'] }, limits: { api: { requests: 5 } } }
    const sidecar = await startSidecar({ clock: stillClock(), config })
    const connection = await sidecar.connect()
    const statuses: number[] = []
    for (let i = 1; i <= 40; i += 1) {
      const tail = i.toString(16)
      const spellings = [
        `2001:db8:0:1::${tail}`,
        `2001:0DB8:0000:0001:0000:0000:0000:${tail.padStart(4, '0')}`,
        `[2001:db8:0:1::${tail}]`,
        `[2001:db8:0:1:${tail}::]:${4000 + i}`,
        `2001:db8:0:1:${tail}:${tail}:192.0.2.${i}`,
      ]
      const fields = ['X-Forwarded-For', spellings[i % 5] ?? '']
      statuses.push((await connection.send({ fields })).status)
    }
    expect(statuses).toEqual([...Array(5).fill(401), ...Array(35).fill(429)])
  })
})

describe('C17 The wall clock', () => {
  it.each([3_600_000, -3_600_000])(
    'C17 H70 a jump by %i ms neither lengthens nor shortens a window',
    async (jump) => {
      const clock = stillClock()
      const sidecar = await startSidecar({ clock, config: { limits: { api: { requests: 1 } } } })
      expect((await sidecar.request()).status).toBe(401)
      clock.jumpWall(jump)
      const refused = await sidecar.request()
      expect([refused.status, refused.header('Retry-After')]).toEqual([429, '60'])
      // The reset follows the wall clock, because the client compares it with its own.
      expect(limitsOf(refused).reset).toBe(Math.ceil((clock.wall() + 60_000) / 1000))
      await clock.advance(59_999)
      expect((await sidecar.request()).status).toBe(429)
      clock.jumpWall(-jump)
      expect((await sidecar.request()).status).toBe(429)
      await clock.advance(1)
      expect((await sidecar.request()).status).toBe(401)
    },
  )
})
