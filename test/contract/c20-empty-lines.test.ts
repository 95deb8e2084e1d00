import { expect, it } from 'vitest'
import { nextTurn } from '../../src/system/clock.ts'
import { passUntil } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { headOf, responsesIn } from '../support/http1-reader.ts'
import { type RawPeer, rawConnection } from '../support/raw.ts'
import { PASSWORD_GRANT, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

const LOGIN = `${headOf(
  'POST /oauth/token HTTP/1.1',
  'Host: x',
  'Content-Type: application/x-www-form-urlencoded',
  `Content-Length: ${PASSWORD_GRANT.length}`,
)}${PASSWORD_GRANT}`

const EMPTY = '\r\n'
/** The most empty lines that the sidecar skips in a row. */
const MOST = 8

const statuses = (received: string): number[] => responsesIn(received).map(({ status }) => status)

/** The default of `listen.header_timeout` (ms). */
const HEADER_TIMEOUT = 10_000

const HOUR = 3_600_000

/** Waits until the sidecar has one connection. */
async function connected(sidecar: TestSidecar): Promise<void> {
  await expect.poll(() => sidecar.metric('postern_connections')).toBe(1)
}

/** Writes each byte in a packet of its own. */
async function writeBytewise(raw: RawPeer, bytes: string): Promise<void> {
  for (const byte of bytes) {
    raw.write(byte)
    await nextTurn()
  }
}

describeTransports(
  'C20 Empty lines',
  (transport) => {
    it.each([
      [`${MOST} empty lines`, EMPTY.repeat(MOST)],
      ['half an empty line', '\r'],
    ])(
      'C20 %s and FIN behind a request: the client gets the response and nothing else',
      async (_name, behind) => {
        const sidecar = await startSidecar({ transport })
        const raw = await rawConnection(sidecar.url)
        raw.write(LOGIN)
        raw.end(behind)
        expect(statuses(await raw.closed)).toEqual([200])
        expect(raw.error).toBeUndefined()
      },
    )

    it('C20 an empty line while the request is served, and another behind the response, are skipped', async () => {
      const proceed = Promise.withResolvers<void>()
      const device = await startDevice(async (_request, response) => {
        await proceed.promise
        response.end('from the device')
      })
      const sidecar = await startSidecar({ transport, device })
      const raw = await rawConnection(sidecar.url)
      raw.write(headOf('GET / HTTP/1.1', 'Host: x', `Authorization: Bearer ${await sidecar.token()}`) + EMPTY)
      await device.waitForRequests(1)
      proceed.resolve()
      await raw.waitFor('from the device')
      raw.write(EMPTY)
      raw.end()
      expect(statuses(await raw.closed)).toEqual([200])
    })

    it.each([MOST])(
      'C20 %i empty lines before each of three requests are skipped, in one packet and byte by byte',
      async (count) => {
        const sidecar = await startSidecar({ transport })
        const bearer = `Authorization: Bearer ${await sidecar.token()}`
        const empty = EMPTY.repeat(count)
        const requests = [
          headOf('GET /a HTTP/1.1', 'Host: x', bearer),
          `${headOf('POST /b HTTP/1.1', 'Host: x', bearer, 'Content-Length: 2')}\r\n`,
          `${headOf('POST /c HTTP/1.1', 'Host: x', bearer, 'Transfer-Encoding: chunked')}1\r\nx\r\n0\r\n\r\n`,
        ]
        const sent = empty + requests.join(empty) + empty
        for (const write of [
          async (raw: RawPeer) => raw.write(sent),
          (raw: RawPeer) => writeBytewise(raw, sent),
        ]) {
          const before = sidecar.device.requests.length
          const raw = await rawConnection(sidecar.url)
          await write(raw)
          raw.end()
          expect(statuses(await raw.closed)).toEqual([200, 200, 200])
          const seen = sidecar.device.requests.slice(before)
          expect(seen.map(({ target, body }) => [target, body?.toString()])).toEqual([
            ['/a', ''],
            ['/b', '\r\n'],
            ['/c', 'x'],
          ])
        }
      },
    )

    // Other bytes that are no empty line, and more of them: `test/gate/garbage.test.ts`.
    it(`C20 ${MOST + 1} empty lines: 400 and close, and no request behind them is read`, async () => {
      const sidecar = await startSidecar({ transport })
      const good = headOf('GET / HTTP/1.1', 'Host: x', `Authorization: Bearer ${await sidecar.token()}`)
      const empty = EMPTY.repeat(MOST + 1)
      const first = await rawConnection(sidecar.url)
      first.write(empty + good)
      expect(statuses(await first.closed)).toEqual([400])
      const behind = await rawConnection(sidecar.url)
      behind.write(good + empty + good)
      expect(statuses(await behind.closed)).toEqual([200, 400])
      expect(sidecar.device.requests).toHaveLength(1)
    })
  },
  ['http1', 'tls'],
)

describeTransports(
  'C20 Empty lines and deadlines',
  (transport) => {
    it('C20 a connection that sends only empty lines is closed at the header deadline without a response', async () => {
      const sidecar = await startSidecar({ transport })
      const raw = await rawConnection(sidecar.url)
      await connected(sidecar)
      raw.write(EMPTY.repeat(MOST))
      await sidecar.clock.advance(HEADER_TIMEOUT - 1)
      await connected(sidecar)
      await sidecar.clock.advance(1)
      expect(await raw.closed).toBe('')
    })

    it.each([
      ['empty lines', EMPTY.repeat(MOST), ''],
      ['half an empty line', '\r', '\n'],
    ])('C20 %s behind an answered request do not start the header deadline', async (_name, behind, rest) => {
      const sidecar = await startSidecar({ transport })
      const raw = await rawConnection(sidecar.url)
      raw.write(LOGIN)
      await raw.waitFor('access_token')
      await writeBytewise(raw, behind)
      await connected(sidecar)
      await sidecar.clock.advance(HEADER_TIMEOUT + 1)
      raw.end(rest + LOGIN)
      expect(statuses(await raw.closed)).toEqual([200, 200])
    })

    it('C20 a connection with only empty lines behind an answered request is closed at idle_timeout without a response', async () => {
      const sidecar = await startSidecar({ transport, config: { listen: { idle_timeout: '100ms' } } })
      const raw = await rawConnection(sidecar.url)
      raw.write(LOGIN + EMPTY)
      await raw.waitFor('access_token')
      await passUntil(sidecar.clock, raw.closed)
      expect(statuses(await raw.closed)).toEqual([200])
    })

    it('C20 a stop does not wait for a connection with only empty lines behind its last request', async () => {
      const sidecar = await startSidecar({ transport })
      const raw = await rawConnection(sidecar.url)
      raw.write(LOGIN + EMPTY)
      await raw.waitFor('access_token')
      const before = sidecar.clock.monotonic()
      await passUntil(sidecar.clock, sidecar.stop(HOUR))
      expect(sidecar.clock.monotonic() - before).toBeLessThan(HOUR)
      expect(statuses(await raw.closed)).toEqual([200])
    })
  },
  ['http1'],
)
