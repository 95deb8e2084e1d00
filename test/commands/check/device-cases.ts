import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { expect } from 'vitest'
import { pinOf } from '../../../src/device/target.ts'
import { startSmallBuffer } from '../../device/small-buffer.ts'
import { makeCertificate } from '../../support/certificate.ts'
import { closeLater } from '../../support/cleanup.ts'
import { startDevice } from '../../support/device.ts'
import { ANY, opensslCertificate, startOpenssl } from '../../support/openssl-server.ts'
import { unusedPort } from '../../support/raw.ts'
import { nextRequest, startRawDevice } from '../../support/raw-device.ts'
import { NO_FORWARDING } from '../../support/sidecar.ts'
import { type Case, casesOf } from './case.ts'

const to = (url: string, ...set: readonly string[]): readonly string[] => [`upstream.url=${url}`, ...set]

/** A device that answers by the head of a request alone. */
const startHeads = (answer: (head: string) => string) =>
  startRawDevice(async (peer) => peer.end(answer(await nextRequest(peer))))

const response = (status: number, ...fields: readonly string[]): string =>
  [`HTTP/1.1 ${status} x`, 'Content-Length: 0', ...fields, '', ''].join('\r\n')

/** A device that compresses its page if a request fits, and names `identity` otherwise. */
const startCompressing = (fits: (head: string) => boolean) =>
  startHeads((head) => {
    const packs = /^accept-encoding:.*gzip/im.test(head) && fits(head)
    const coding = packs ? 'gzip' : 'identity'
    const body = 'long enough '.repeat(100)
    return `HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: ${coding}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  })

/** A TLS server that answers cleartext with 400. */
async function startBoth(): Promise<{ readonly url: string }> {
  const secure = await startDevice(undefined, { tls: await makeCertificate() })
  const server = createServer((socket) => {
    socket.on('error', () => {})
    closeLater(() => void socket.destroy())
    socket.once('data', (first) => {
      if (first[0] !== 0x16) return socket.end(response(400))
      const served = connect(Number(new URL(secure.url).port), '127.0.0.1').on('error', () => {})
      served.write(first)
      socket.pipe(served).pipe(socket)
    })
  })
  closeLater(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } // listening on TCP
}

const withoutVia = (head: string): boolean => !/^via:/im.test(head)

const MALFORMED = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nSet-Cookie : sid=4711s3cret\r\n\r\nhi'

const HEADERS: readonly Case[] = [
  ...casesOf('headers', {
    readable: {
      'H172 the fields of every request, and the bytes of a head': () => ({
        set: ['upstream.headers.X-Key=hunter2'],
      }),
      'H172 what the device does not get, also at a route without headers of its own': () => ({
        set: [
          'upstream.headers={X-Key: hunter2, Via: null, "Sec-*": null}',
          'upstream.routes./cam/.url=http://127.0.0.1:1',
        ],
        name: 'upstream headers of /cam/',
      }),
    },
    'look failed': {
      'H108 no file of a header, of a route': () => ({
        set: ['upstream.routes./cam/={url: "http://127.0.0.1:1", headers: {X-Key: {file: /nowhere}}}'],
        name: 'upstream headers of /cam/',
      }),
    },
  }),
]

const SILENT: readonly Case[] = [
  ...casesOf('device', {
    'no response': {
      async 'H107 no device'() {
        const url = `http://127.0.0.1:${await unusedPort()}`
        return {
          set: to(url),
        }
      },
    },
    'no socket': {
      'H107 no socket of the device, which is no matter of the network': () => ({
        set: to('http+unix:/nowhere/device.sock'),
      }),
    },
    'look failed': {
      'H108 no file of an authority': () => ({
        set: to('https://127.0.0.1:1', 'upstream.tls.ca=/nowhere'),
      }),
    },
    'TLS fails': {
      async 'H109 a self-signed certificate: the remedy is the line with its pin'() {
        const device = await startDevice(undefined, { tls: await makeCertificate() })
        return {
          set: to(device.url),
        }
      },
      async 'H168 a device with a small TLS buffer, and blames no firewall'() {
        const pair = opensslCertificate()
        const server = await startOpenssl(pair)
        const device = await startSmallBuffer(server?.port ?? 0, (length) => length <= 300, 'is silent')
        return {
          set: to(device.url, `upstream.tls.ca=${pair.certFile}`, 'upstream.connect_timeout=2s'),
        }
      },
      async 'H109 the wrong scheme: the remedy is the right URL'() {
        const device = await startDevice(undefined, { tls: await makeCertificate() })
        return {
          set: to(device.url.replace('https:', 'http:')),
        }
      },
    },
    'head unanswered': {
      async 'H174 a device that closes for HTTP/1.1: the remedy is version: "1.0"'() {
        const device = await startHeads((head) =>
          head.includes(' HTTP/1.0\r\n') ? 'HTTP/1.0 200 OK\r\n\r\nok' : '',
        )
        return { set: to(device.url), writes: { version: '1.0' } }
      },
    },
  }),
  ...['upstream', 'upstream.routes./old/'].map(
    (key): Case => ({
      part: 'device',
      row: 'TLS fails',
      title: `H168 TLS of another decade: the remedy is the line to write (${key})`,
      async given() {
        const pair = opensslCertificate('-newkey', 'rsa:1024', '-sha1')
        const server = await startOpenssl(pair, '-tls1', '-cipher', ANY)
        const pin = pinOf(new X509Certificate(readFileSync(pair.certFile)).raw)
        const url = `https://127.0.0.1:${server?.port}`
        return {
          set: key === 'upstream' ? to(url) : [`upstream.routes./old/.url=${url}`],
          name: key === 'upstream' ? 'device' : 'device of /old/',
          after: ({ remedy }) => expect(remedy).toContain(`tls: {weak: true, pin: ${pin}}`),
        }
      },
    }),
  ),
]

const REFUSED_HOSTS: readonly Case[] = [400, 403, 421].flatMap((status) =>
  [
    ['another Host than its own', 'preserve', 'target'],
    ['its own Host', 'target', 'preserve'],
  ].map(
    ([what = '', present = '', wanted = '']): Case => ({
      part: 'device',
      row: 'head refused',
      title: `H175 a device that refuses ${what} with ${status}: the remedy is host: ${wanted}`,
      async given() {
        const device = await startDevice((request, answer) => {
          const own = request.headers.host === new URL(device.url).host
          // The first request of `check` names the device itself.
          const first = device.requests.length === 1
          answer.writeHead(first || own === (wanted === 'target') ? 200 : status).end()
        })
        return {
          set: to(device.url, `upstream.host=${present}`),
          writes: { host: wanted },
          after: () => expect(device.requests.length).toBeLessThan(30),
        }
      },
    }),
  ),
)

const ANSWERED: readonly Case[] = [
  ...casesOf('device', {
    'head refused': {
      async 'H174 a device that answers 505 to HTTP/1.1: the remedy is version: "1.0"'() {
        const device = await startHeads((head) =>
          head.includes(' HTTP/1.0\r\n') ? 'HTTP/1.0 200 OK\r\n\r\nok' : 'HTTP/1.0 505 No\r\n\r\n',
        )
        return {
          set: to(device.url),
          writes: { version: '1.0' },
        }
      },
    },
    'cleartext to TLS': {
      async 'H109 a TLS server that answers cleartext with 400: the remedy is the right URL'() {
        const { url } = await startBoth()
        return { set: to(url) }
      },
    },
    'redirect to https': {
      async 'a redirect to https'() {
        const device = await startHeads(() => response(301, 'Location: https://device/'))
        return {
          set: to(device.url),
        }
      },
    },
    'error of the device': {
      async 'an error of the device'() {
        const device = await startHeads(() => response(503))
        return {
          set: to(device.url),
        }
      },
    },
    malformed: {
      async 'H273 a malformed page'() {
        const device = await startHeads(() => MALFORMED)
        return { set: to(device.url) }
      },
    },
    fine: {
      async 'what clients get otherwise'() {
        const device = await startHeads(() => response(200, 'Server: x', 'X-Powered-By: y', 'x_kept: z'))
        return {
          set: to(
            device.url,
            'upstream.response_headers={"S*": null, X-Powered-*: null, X-Kept: a, X-More: b}',
          ),
        }
      },
      async 'no login where upstream.headers answers it'() {
        const device = await startHeads(() => response(401, 'WWW-Authenticate: Basic realm="camera"'))
        return {
          set: to(device.url, 'upstream.headers.authorization=Basic eDp5'),
        }
      },
      async 'H172 nothing to write for a page that the device refuses to all'() {
        const device = await startHeads(() => response(403))
        return { set: to(device.url) }
      },
      async 'each service of the device'() {
        const camera = await startDevice()
        return {
          set: [`upstream.routes./cam/.url=${camera.url}`],
          name: 'device of /cam/',
        }
      },
    },
    'no compression': {
      async 'H172 a device that compresses nothing for a request with Via'() {
        const device = await startCompressing(withoutVia)
        return {
          set: to(device.url),
          writes: { headers: { Via: null } },
        }
      },
      async 'H172 the same beside what upstream.headers has, which stays'() {
        const device = await startCompressing(withoutVia)
        return {
          set: to(device.url, 'upstream.headers={x-a: null, "x-*": null, X-Key: hunter2}'),
          writes: { headers: { 'x-a': null, 'x-*': null, Via: null } },
        }
      },
    },
  }),
  ...(
    [
      [
        'reads 512 bytes',
        (head) => head.length <= 512,
        { headers: { ...NO_FORWARDING, Cookie: null, 'Sec-*': null } },
      ],
      ['refuses Via', withoutVia, { headers: NO_FORWARDING }],
    ] satisfies [string, (head: string) => boolean, object][]
  ).map(
    ([what, fits, writes]): Case => ({
      part: 'device',
      row: 'head refused',
      title: `H172 the settings for a device that ${what}`,
      async given() {
        const device = await startHeads((head) => response(fits(head) ? 200 : 400))
        return { set: to(device.url), writes }
      },
    }),
  ),
  ...(['Basic', 'Digest'] as const).map(
    (scheme): Case => ({
      part: 'device',
      row: 'login of its own',
      title: `a ${scheme} login of the device`,
      async given() {
        const challenge = scheme === 'Basic' ? 'realm="camera"' : 'realm="camera", nonce="n", qop="auth"'
        const device = await startHeads(() => response(401, `WWW-Authenticate: ${scheme} ${challenge}`))
        return {
          set: to(device.url),
        }
      },
    }),
  ),
  ...(
    [
      ['compresses for all', () => true, []],
      ['compresses for none', () => false, []],
      ['gets no Via', withoutVia, ['upstream.headers.VIA=null']],
      ['gets no field that begins as Via does', withoutVia, ['upstream.headers={"v*": null}']],
    ] satisfies [string, (head: string) => boolean, string[]][]
  ).map(
    ([what, fits, set]): Case => ({
      part: 'device',
      row: 'fine',
      title: `H172 nothing about a device that ${what}`,
      async given() {
        const device = await startCompressing(fits)
        return { set: to(device.url, ...set) }
      },
    }),
  ),
]

/** A case about one page of a device whose start page is as it should be. */
function page(row: string, title: string, answer: string): Case {
  return {
    part: 'page',
    row,
    title,
    async given() {
      const requests: string[] = []
      const device = await startHeads((head) => {
        requests.push(head.split(' ')[1] ?? '')
        return answer
      })
      return {
        set: to(device.url),
        asked: { pages: ['/api/page?x=1'] },
        name: 'page /api/page?x=1',
        after: () => expect(requests).toEqual(['/api/page?x=1']),
      }
    },
  }
}

const PAGES: readonly Case[] = [
  ...casesOf('page', {
    'no compression': {
      async 'H172 a page that is compressed only without Via'() {
        const device = await startCompressing(withoutVia)
        return {
          set: to(device.url),
          asked: { pages: ['/big'] },
        }
      },
    },
  }),
  page('answers', 'H273 a good page', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi'),
  page('malformed', 'H273 a page in malformed HTTP', MALFORMED),
  page('look failed', 'H273 a page that is cut', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi'),
  page('error', 'H273 a page that is none', response(404)),
]

export const DEVICE_CASES: readonly Case[] = [...HEADERS, ...SILENT, ...REFUSED_HOSTS, ...ANSWERED, ...PAGES]
