import { expect, it } from 'vitest'
import { startDevice } from '../support/device.ts'
import { type RawPeer, rawConnection } from '../support/raw.ts'
import { answersIn, typed } from '../support/raw-answers.ts'
import { encodeForm, PASSWORD, startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

const FORM = encodeForm({ grant_type: 'password', password: PASSWORD })
const LOGIN = `${typed(
  'POST /oauth/token HTTP/1.1',
  'Host: x',
  'Content-Type: application/x-www-form-urlencoded',
  `Content-Length: ${FORM.length}`,
)}${FORM}`

const EMPTY = '\r\n'
/** As many as are skipped. */
const MOST = 8

const statuses = (received: string): number[] => answersIn(received).map(({ status }) => status)

/** A packet for each byte. */
async function writeBytewise(raw: RawPeer, bytes: string): Promise<void> {
  for (const byte of bytes) {
    raw.write(byte)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describeTransports(
  'C20 empty lines',
  (transport) => {
    it.each([
      ['one', EMPTY],
      ['as many as are skipped', EMPTY.repeat(MOST)],
      ['half of one', '\r'],
    ])(
      'C20 %s behind a request, and the client closes its side: the answer, and nothing else',
      async (_name, behind) => {
        const sidecar = await startSidecar({ transport })
        const raw = await rawConnection(sidecar.url)
        raw.write(LOGIN)
        raw.end(behind)
        expect(statuses(await raw.closed)).toEqual([200])
        expect(raw.error).toBeUndefined()
      },
    )

    it('C20 an empty line that comes while its request is served spoils nothing, nor does one behind the answer', async () => {
      const held = Promise.withResolvers<void>()
      const device = await startDevice(async (_request, response) => {
        await held.promise
        response.end('from the device')
      })
      const sidecar = await startSidecar({ transport, device })
      const raw = await rawConnection(sidecar.url)
      raw.write(typed('GET / HTTP/1.1', 'Host: x', `Authorization: Bearer ${await sidecar.token()}`) + EMPTY)
      await device.waitForRequests(1)
      held.resolve()
      await raw.waitFor('from the device')
      raw.write(EMPTY)
      raw.end()
      expect(statuses(await raw.closed)).toEqual([200])
    })

    it.each([1, 2, MOST])(
      'C20 %i in front of each of several requests are skipped, however they are cut',
      async (count) => {
        const sidecar = await startSidecar({ transport })
        const bearer = `Authorization: Bearer ${await sidecar.token()}`
        const empty = EMPTY.repeat(count)
        const requests = [
          typed('GET /a HTTP/1.1', 'Host: x', bearer),
          `${typed('POST /b HTTP/1.1', 'Host: x', bearer, 'Content-Length: 2')}\r\n`,
          `${typed('POST /c HTTP/1.1', 'Host: x', bearer, 'Transfer-Encoding: chunked')}1\r\nx\r\n0\r\n\r\n`,
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

    it.each([
      ['one more than are skipped', EMPTY.repeat(MOST + 1)],
      ['an endless row of them', EMPTY.repeat(100_000)],
      ['one that is a bare LF', '\n'],
      ['one with two CR', '\r\r\n'],
      ['one with a blank', ' \r\n'],
      ['one before the preface of HTTP/2', '\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ])('C20 %s: 400 and closed, and nothing behind is taken for a request', async (_name, bytes) => {
      const sidecar = await startSidecar({ transport })
      const good = typed('GET / HTTP/1.1', 'Host: x', `Authorization: Bearer ${await sidecar.token()}`)
      const first = await rawConnection(sidecar.url)
      first.write(bytes + good)
      expect(statuses(await first.closed)).toEqual([400])
      const behind = await rawConnection(sidecar.url)
      behind.write(good + bytes + good)
      expect(statuses(await behind.closed)).toEqual([200, 400])
      expect(sidecar.device.requests).toHaveLength(1)
    })

    it('C20 a connection on which nothing but empty lines came is closed by the header deadline, without a word', async () => {
      const sidecar = await startSidecar({ transport, config: { listen: { header_timeout: '200ms' } } })
      const raw = await rawConnection(sidecar.url)
      raw.write(EMPTY.repeat(MOST))
      expect(await raw.closed).toBe('')
    })

    it.each([
      ['empty lines', EMPTY.repeat(MOST), ''],
      ['half an empty line', '\r', '\n'],
    ])('C20 %s behind an answered request start no header deadline', async (_name, behind, rest) => {
      const sidecar = await startSidecar({ transport, config: { listen: { header_timeout: '200ms' } } })
      const raw = await rawConnection(sidecar.url)
      raw.write(LOGIN)
      await raw.waitFor('access_token')
      await writeBytewise(raw, behind)
      // Opened later, and closed by its own header deadline.
      await (await rawConnection(sidecar.url)).closed
      raw.end(rest + LOGIN)
      expect(statuses(await raw.closed)).toEqual([200, 200])
    })

    it('C20 a connection on which only empty lines came behind an answered request is closed as an idle one, without a word', async () => {
      const sidecar = await startSidecar({ transport, config: { listen: { idle_timeout: '100ms' } } })
      const raw = await rawConnection(sidecar.url)
      raw.write(LOGIN + EMPTY)
      expect(statuses(await raw.closed)).toEqual([200])
    })

    it('C20 a stop does not wait for a connection on which only empty lines came behind its last request', async () => {
      const sidecar = await startSidecar({ transport })
      const raw = await rawConnection(sidecar.url)
      raw.write(LOGIN + EMPTY)
      await raw.waitFor('access_token')
      await sidecar.stop(60_000)
      expect(statuses(await raw.closed)).toEqual([200])
    })
  },
  ['http1', 'tls'],
)
