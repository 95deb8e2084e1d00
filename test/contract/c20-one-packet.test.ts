import { expect, it } from 'vitest'
import { startDevice } from '../support/device.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

const HOST = 'Host: device\r\n'
const UPGRADES = {
  websocket: `GET /ws HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
  CONNECT: `CONNECT device:80 HTTP/1.1\r\n${HOST}\r\n`,
}
const FORM = 'grant_type=password&password=wrong'

describeTransports(
  'C20 Pipelined in one packet',
  (transport) => {
    it.each(Object.entries(UPGRADES))(
      'C20 both a token request and the upgrade behind it are answered, and nothing reaches the device (%s)',
      async (_name, upgrade) => {
        const device = await startDevice()
        const sidecar = await startSidecar({ transport, device })
        const raw = await rawConnection(sidecar.url)
        raw.write(
          `POST /oauth/token HTTP/1.1\r\n${HOST}Content-Type: application/x-www-form-urlencoded\r\n` +
            `Content-Length: ${FORM.length}\r\n\r\n${FORM}${upgrade}`,
        )
        const responses = await raw.closed
        expect(responses).toContain('invalid_grant')
        expect(responses.match(/HTTP\/1\.1 /g)).toHaveLength(2)
        expect((await sidecar.request()).status).toBe(401)
        expect(device.requests).toHaveLength(0)
      },
    )

    it('C23 the interim responses to a pipelined request come after the response before it', async () => {
      const proceed = Promise.withResolvers<void>()
      const device = await startDevice(async (request, response) => {
        if (request.url === '/first') {
          response.writeHead(200, { 'Content-Length': 9 })
          response.write('only ')
          await proceed.promise
          response.end('this')
        } else {
          response.writeEarlyHints({ link: '</a>' })
          response.end('second')
        }
      })
      const sidecar = await startSidecar({ transport, device })
      const bearer = `Authorization: Bearer ${await sidecar.token()}\r\n`
      const raw = await rawConnection(sidecar.url)
      raw.write(`GET /first HTTP/1.1\r\n${HOST}${bearer}\r\n`)
      await raw.waitFor('only ')
      const expecting = 'Expect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n'
      raw.write(`POST /second HTTP/1.1\r\n${HOST}${bearer}${expecting}\r\nh`)
      proceed.resolve()
      await raw.waitFor('100 Continue')
      raw.write('i')
      const all = await raw.closed
      const [first, second] = all.split('only this')
      expect(first?.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200'])
      expect(second?.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 100', 'HTTP/1.1 103', 'HTTP/1.1 200'])
    })

    it.each([
      ['with a good head', '', '401 Unauthorized'],
      ['with two hosts', 'Host: other\r\n', '400 Bad Request'],
    ])(
      'C20 the requests in front of a refused upload %s and broken chunks get their responses',
      async (_name, fields, refusal) => {
        const sidecar = await startSidecar({ transport })
        const good = `GET / HTTP/1.1\r\n${HOST}Authorization: Bearer ${await sidecar.token()}\r\n\r\n`
        const bad = `POST / HTTP/1.1\r\n${HOST}${fields}Transfer-Encoding: chunked\r\n\r\nzz`
        for (const pipelined of [good + bad, good + good + bad]) {
          const raw = await rawConnection(sidecar.url)
          raw.write(pipelined)
          const responses = (await raw.closed).match(/HTTP\/1\.1 \d+ \w+(?: \w+)?/g) ?? []
          expect(responses.slice(0, -1)).toEqual(responses.slice(0, -1).map(() => 'HTTP/1.1 200 OK'))
          expect(responses.at(-1)).toBe(`HTTP/1.1 ${refusal}`)
        }
      },
    )

    it('C20 the process survives an upgrade with a body that never comes and a reset', async () => {
      const sidecar = await startSidecar({ transport })
      for (const method of ['GET', 'CONNECT']) {
        const raw = await rawConnection(sidecar.url)
        raw.write(
          UPGRADES.websocket.replace('GET', method).replace('\r\n\r\n', '\r\nContent-Length: 9\r\n\r\n'),
        )
        await raw.waitFor('400 Bad Request')
        raw.reset()
      }
      const early = await rawConnection(sidecar.url)
      early.write(UPGRADES.websocket.replace('\r\n\r\n', '\r\nContent-Length: 9\r\n\r\n'))
      early.reset()
      await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
      expect((await sidecar.request()).status).toBe(401)
    })

    it.each(['100-continue', '100-continue, foo'])(
      'H10 a request behind a refused one with Expect: %s never runs',
      async (expected) => {
        const device = await startDevice()
        const sidecar = await startSidecar({ transport, device })
        const raw = await rawConnection(sidecar.url)
        const good = `GET /behind HTTP/1.1\r\n${HOST}Authorization: Bearer ${await sidecar.token()}\r\n\r\n`
        raw.write(`POST / HTTP/1.1\r\n${HOST}Expect: ${expected}\r\nContent-Length: 2\r\n\r\nab${good}`)
        expect((await raw.closed).match(/HTTP\/1\.1 /g)).toHaveLength(1)
        expect(device.requests).toHaveLength(0)
      },
    )
  },
  ['http1', 'tls'],
)
