import { expect, it } from 'vitest'
import { describeTransports } from '../support/transports.ts'
import { type Front, get, post, SMUGGLED, sharedFront } from './front.ts'

type Case = readonly [name: string, fields: readonly string[]]

const H2C = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__']

/** Offers that a server may ignore (RFC 9110 §7.8), so that their requests are ordinary ones. `http1/fates/` has more. */
const offers: readonly Case[] = [
  ['h2c, as curl and Java offer it', H2C],
  ['TLS, as Apache HttpClient offers it', ['Upgrade: TLS/1.2', 'Connection: Upgrade']],
  ['websocket with a version, which it does not have', ['Connection: Upgrade', 'Upgrade: websocket/13']],
]

const hello = '5\r\nhello\r\n0\r\n\r\n'

/** The requests that reached the device after the first `since`. */
function requestsSince({ sidecar }: Front, since: number) {
  return sidecar.device.requests.slice(since)
}

describeTransports(
  'Offers to upgrade',
  (transport) => {
    const front = sharedFront(transport)

    it.each(offers)(
      'C23 an offer of %s is ignored: six requests on its connection are served with exact bodies',
      async (_name, fields) => {
        const inner = SMUGGLED.replace('TOKEN', front.token)
        const sent =
          get(...fields) +
          get('Content-Length: 0', ...fields) +
          `${post(...fields, 'Content-Length: 5')}hello` +
          post(...fields, 'Transfer-Encoding: chunked') +
          hello +
          post(`Content-Length: ${inner.length}`, ...fields) +
          inner +
          get('Connection: close')
        for (const pieces of [1, sent.length]) {
          const before = front.sidecar.device.requests.length
          const raw = await front.send(sent, pieces)
          expect((await raw.closed).match(/HTTP\/1\.1 \d+/g)).toEqual(Array(6).fill('HTTP/1.1 200'))
          const seen = requestsSince(front, before)
          expect(seen.map(({ body }) => body?.toString())).toEqual(['', '', 'hello', 'hello', inner, ''])
          for (const { fields } of seen) expect(fields.join('\n')).not.toMatch(/upgrade|http2-settings|h2c/i)
        }
      },
    )

    const good = get('Connection: close')

    it('H1 H6 a request with an offer and two framings is refused as without it', () =>
      front.expectRefused(post(...H2C, 'Content-Length: 5', 'Transfer-Encoding: chunked') + hello))

    it('H15 the body ends at the same byte although the Connection of an offer names its framing', async () => {
      const before = front.sidecar.device.requests.length
      const raw = await front.send(
        `${post('Upgrade: h2c', 'Connection: Upgrade, Content-Length', 'Content-Length: 5')}hello` +
          post('Upgrade: h2c', 'Connection: Upgrade, Transfer-Encoding', 'Transfer-Encoding: chunked') +
          hello +
          good,
      )
      expect((await raw.closed).match(/HTTP\/1\.1 \d+/g)).toEqual(Array(3).fill('HTTP/1.1 200'))
      expect(requestsSince(front, before).map(({ body }) => body?.toString())).toEqual(['hello', 'hello', ''])
    })

    it('H66 a client that sends HTTP/2 behind its offer without a 101 is refused', async () => {
      const raw = await front.send(`${get(...H2C)}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`)
      expect((await raw.closed).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400'])
    })

    it('H66 an offer of websocket over HTTP/1.0 is ignored (RFC 9110 §7.8)', async () => {
      const before = front.sidecar.device.requests.length
      const old = (message: string): string => message.replace('HTTP/1.1', 'HTTP/1.0')
      const fields = ['Connection: Upgrade, keep-alive', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']
      const raw = await front.send(
        old(get(...fields)) + old(`${post(...fields, 'Content-Length: 5')}hello`) + good,
      )
      expect((await raw.closed).match(/HTTP\/1\.\d \d+/g)).toEqual(Array(3).fill('HTTP/1.1 200'))
      const seen = requestsSince(front, before)
      expect(seen.map(({ body }) => body?.toString())).toEqual(['', 'hello', ''])
      for (const each of seen) expect(each.values('Upgrade')).toEqual([])
    })

    it('C23 an admitted request with an offer and Expect: 100-continue gets 100, and a refused one does not', async () => {
      const expecting = post(...H2C, 'Expect: 100-continue', 'Content-Length: 5', 'Connection: close')
      const raw = await front.send(expecting)
      await raw.waitFor('HTTP/1.1 100 Continue\r\n\r\n')
      raw.write('hello')
      expect((await raw.closed).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 100', 'HTTP/1.1 200'])
      const refused = await front.send(expecting.replace('TOKEN', 'unknown'))
      expect((await refused.closed).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401'])
    })

    it('C12 the connection goes on behind a request with an offer that is refused for its token', async () => {
      const before = front.sidecar.device.requests.length
      const raw = await front.send(
        `${post(...H2C, 'Content-Length: 5').replace('TOKEN', 'unknown')}hello${good}`,
      )
      expect((await raw.closed).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401', 'HTTP/1.1 200'])
      expect(requestsSince(front, before)).toHaveLength(1)
    })
  },
  ['http1', 'tls'],
)
