import { describe, expect, it } from 'vitest'
import { CHROMIUM as SAMPLE } from '../../src/forward/sample-heads.ts'
import { prepareSite } from '../process/serve.ts'
import { connect } from '../support/client.ts'
import { type Device, type DeviceRequest, startDevice } from '../support/device.ts'
import { nextRequest, type RawDevice, startRawDevice } from '../support/raw-device.ts'
import {
  LITTLE_FORWARDING,
  NO_FORWARDING,
  startSidecar,
  type TestSidecar,
  type YamlPart,
} from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'

const TRUSTING = { listen: { trusted_proxies: ['127.0.0.1'] } }

/** What Chromium sends with a page, in 512 bytes without cookie and hints. */
const CHROMIUM = [
  ...[
    'Sec-CH-UA',
    '"Chromium";v="140", "Not=A?Brand";v="24", "Google Chrome";v="140"',
    'Sec-CH-UA-Mobile',
    '?0',
  ],
  ...['Sec-CH-UA-Platform', '"Windows"', 'Upgrade-Insecure-Requests', '1', 'User-Agent'],
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
  'Accept',
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8',
  ...[
    'Sec-Fetch-Site',
    'none',
    'Sec-Fetch-Mode',
    'navigate',
    'Sec-Fetch-User',
    '?1',
    'Sec-Fetch-Dest',
    'document',
  ],
  ...[
    'Accept-Encoding',
    'gzip, deflate, br, zstd',
    'Accept-Language',
    'en-US,en;q=0.9',
    'Cookie',
    'a=1; b=2',
  ],
]

it('H172 postern check sends every field of Chromium to the device', () => {
  const names = (fields: readonly string[]) =>
    fields.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase())
  expect(names(SAMPLE.fields)).toEqual(expect.arrayContaining(names(CHROMIUM)))
})

/** A device that reads 512 bytes of a head, and answers 400 to a longer one. */
function startSmallDevice(): Promise<RawDevice> {
  return startRawDevice(async (peer) => {
    const head = await nextRequest(peer)
    const status = head.length > 512 ? '400 Bad Request' : '200 OK'
    peer.end(`HTTP/1.1 ${status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok`)
  })
}

/** Sends a GET with these fields, and returns the request that reached the device. */
async function seenBy(
  device: Device,
  sidecar: TestSidecar,
  fields: readonly string[],
  token?: string,
): Promise<DeviceRequest> {
  const response = await sidecar.request({ token: token ?? (await sidecar.token()), fields })
  expect(response.status).toBe(200)
  return device.requests.at(-1) as DeviceRequest // the 200 proves that it is there
}

const namesOf = ({ fields }: DeviceRequest): string[] => fields.filter((_, i) => i % 2 === 0)

describeTransports(
  'the head for the device',
  (transport) => {
    const start = async (upstream: YamlPart, config: YamlPart = {}) => {
      const device = await startDevice()
      const sidecar = await startSidecar({ transport, device, config: { ...config, upstream } })
      return { device, sidecar }
    }

    it('H172 the request of a browser fits a device that reads 512 bytes, without forwarding fields, cookie and hints', async () => {
      const device = await startSmallDevice()
      const upstream = { headers: { ...NO_FORWARDING, cookie: null, 'sec-*': null } }
      for (const [settings, status] of [
        [{}, 400],
        [{ headers: NO_FORWARDING }, 400],
        [upstream, 200],
      ] as const) {
        const sidecar = await startSidecar({ transport, device, config: { upstream: settings } })
        const response = await sidecar.request({ token: await sidecar.token(), fields: CHROMIUM })
        expect([settings, response.status]).toEqual([settings, status])
      }
    })

    it.each<[string[], YamlPart]>([
      [['X-Forwarded-For', 'X-Request-Id'], LITTLE_FORWARDING],
      [[], NO_FORWARDING],
      [['X-Request-Id'], { 'X-Forwarded-*': null, Via: null }],
      [
        ['X-Forwarded-Proto', 'X-Forwarded-Host', 'X-Forwarded-Port', 'X-Request-Id'],
        { 'X-Forwarded-For': null, VIA: null },
      ],
      [['X-Forwarded-For'], { 'x-forwarded-p*': null, X_Forwarded_Host: null, VIA: null, 'X-Req*': null }],
    ])(
      'H172 the device gets %j alone of the forwarding fields, and the claims of no peer',
      async (names, headers) => {
        const claims = [
          ...[
            'X-Forwarded-For',
            '192.0.2.66',
            'X-Forwarded-Proto',
            'gopher',
            'X-Forwarded-Host',
            'evil.example',
          ],
          ...['X-Forwarded-Prefix', '/evil', 'Forwarded', 'for=192.0.2.66', 'X-Real-IP', '192.0.2.66'],
          ...['Via', '1.1 evil', 'X-Request-Id', 'evil'],
        ]
        for (const config of [{}, TRUSTING]) {
          const { device, sidecar } = await start({ headers }, config)
          const token = await sidecar.token()
          const ids = new Set<string | undefined>()
          // The second and third head are remembered ones.
          for (let i = 0; i < 3; i += 1) {
            const seen = await seenBy(device, sidecar, ['X-Own', '1', ...claims], token)
            expect(namesOf(seen)).toEqual(['Host', expect.stringMatching(/^X-Own$/), ...names, 'Connection'])
            // The own fields of Postern repeat what a trusted proxy says of the client.
            if (config !== TRUSTING) expect(seen.fields.join()).not.toMatch(/evil|gopher|192\.0\.2/)
            ids.add(seen.header('X-Request-Id'))
          }
          expect(ids.size).toBe(names.includes('X-Request-Id') && config !== TRUSTING ? 3 : 1)
        }
      },
    )

    it('H172 what a trusted proxy says of its client passes where the device gets all that Postern says of it', async () => {
      const { device, sidecar } = await start({ headers: { Via: null, 'X-Req*': null } }, TRUSTING)
      const claims = ['X-Forwarded-Prefix', '/p', 'Forwarded', 'for=192.0.2.66', 'X-Real-IP', '192.0.2.66']
      const seen = await seenBy(device, sidecar, claims)
      expect(seen.fields.slice(2, 2 + claims.length)).toEqual(
        claims.map((text, at) => (at % 2 === 0 ? expect.stringMatching(new RegExp(`^${text}$`, 'i')) : text)),
      )
    })

    it('H172 null takes fields of clients and of Postern, and none that frames the message', async () => {
      const { device, sidecar } = await start({
        headers: {
          ...{ Cookie: null, 'x-forwarded-*': null, VIA: null, 'content-*': null, 'h*': null },
          ...{ 'X-Forwarded-Room': '1', 'Content-Language': 'de' },
        },
      })
      const token = await sidecar.token()
      const body = { body: 'four', fields: ['Cookie', 'a=1', 'Content-Type', 'text/plain', 'X-Kept', 'yes'] }
      expect((await sidecar.request({ token, ...body })).status).toBe(200)
      const [seen] = device.requests
      expect(seen?.body?.toString()).toBe('four')
      expect(seen && namesOf(seen).sort()).toEqual(
        [
          'Connection',
          'Content-Language',
          'Content-Length',
          'Host',
          'X-Forwarded-Room',
          'X-Kept',
          'X-Request-Id',
        ].sort(),
      )
    })

    it('H173 the names of an HTTP/2 request reach the device in canonical case, those of HTTP/1.1 as they came', async () => {
      const { device, sidecar } = await start({})
      const sent = [
        'content-type',
        'x-api-key',
        'etag',
        'dnt',
        'www-authenticate',
        'soapaction',
        'sec-ch-ua-mobile',
      ]
      const more = ['content-md5', 'x-xss-protection', 'if-none-match', 'x_own-1a-b', 'cookie']
      const seen = await seenBy(
        device,
        sidecar,
        [...sent, ...more].flatMap((name) => [name, 'x']),
      )
      const canonical = [
        'Content-Type',
        'X-Api-Key',
        'ETag',
        'DNT',
        'WWW-Authenticate',
        'SOAPAction',
        'Sec-CH-UA-Mobile',
      ]
      const others = ['Content-MD5', 'X-XSS-Protection', 'If-None-Match', 'X_own-1a-B', 'Cookie']
      const expected = transport === 'h2' ? [...canonical, ...others] : [...sent, ...more]
      expect(namesOf(seen).slice(1, 1 + expected.length)).toEqual(expected)
    })
  },
  ['tls', 'h2'],
)

describe('the head for the device, over any transport', () => {
  it('H172 a reload changes the head of a request that repeats on its connection', async () => {
    const site = await prepareSite({ transport: 'tls' })
    const sidecar = await site.serve()
    const { access_token: token } = await sidecar.grant()
    const connection = await connect({ transport: 'tls', url: sidecar.url })
    const repeat = async (): Promise<boolean> => {
      await connection.send({ fields: ['Authorization', `Bearer ${token}`] })
      return site.device.requests.at(-1)?.header('Via') !== undefined
    }
    expect([await repeat(), await repeat()]).toEqual([true, true])
    site.configure({ upstream: { headers: NO_FORWARDING } })
    await expect.poll(repeat).toBe(false)
    site.configure({ upstream: { headers: { 'X-Forwarded-*': undefined, 'X-Request-Id': undefined } } })
    await expect
      .poll(async () => {
        const seen = await repeat()
        return [seen, site.device.requests.at(-1)?.header('X-Forwarded-Proto')]
      })
      .toEqual([false, 'https'])
  })

  it('H172 null leaves a WebSocket handshake whole', async () => {
    const device = await startDevice()
    const { upgrades } = acceptWebSockets(device)
    const config = { upstream: { headers: { ...NO_FORWARDING, 'sec-*': null, 'user-agent': null } } }
    const sidecar = await startSidecar({ transport: 'tls', device, config })
    const token = await sidecar.token()
    const headers = { 'Sec-Fetch-Mode': 'websocket', Cookie: 'a=1' }
    const { socket } = await openWebSocket(sidecar.url, { token, headers })
    socket.close()
    const names = upgrades[0]?.rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase())
    expect(names).toEqual(expect.arrayContaining(['sec-websocket-key', 'sec-websocket-version', 'upgrade']))
    expect(names).not.toContain('sec-fetch-mode')
    expect(upgrades[0]?.headers.cookie).toBe('a=1')
  })
})
