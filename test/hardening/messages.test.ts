import { expect, it } from 'vitest'
import { headOf, responsesIn } from '../support/raw-responses.ts'
import { describeTransports } from '../support/transports.ts'
import { get, post, SMUGGLED, sharedFront, startFront } from './front.ts'

type Case = readonly [name: string, bytes: string]

/** A head with one more line behind the others. */
const withLine = (text: string): string => get(text)

const heads: readonly Case[] = [
  ['H8 a line that ends with LF', get().replace('device\r\n', 'device\n')],
  ['H8 a request line that ends with LF', get().replace('HTTP/1.1\r\n', 'HTTP/1.1\n')],
  ['H8 a request line that ends with CR', get().replace('HTTP/1.1\r\n', 'HTTP/1.1\r')],
  ['H8 a head that ends with LF LF', `${get().slice(0, -4)}\n\n`],
  ['H8 a head that ends with CR LF LF', `${get().slice(0, -4)}\r\n\n`],
  ['H8 a head that ends with LF CR LF', `${get().slice(0, -4)}\n\r\n`],
  ['H8 a head that ends with CR LF CR x', `${get().slice(0, -4)}\r\n\rx\r\n\r\n`],
  ['H8 a head that ends with CR CR LF', `${get().slice(0, -4)}\r\n\r\r\n\r\n`],
  ['H8 all lines end with LF', get().replaceAll('\r\n', '\n')],
  ['H8 all lines end with CR', get().replaceAll('\r\n', '\r')],
  ['H8 a bare LF in a value', withLine('A: b\nc: d')],
  ['H8 a bare CR in a value', withLine('A: b\rc: d')],
  ['H8 a bare CR before Content-Length in a value', withLine('A: \rxContent-Length: 5')],
  ['H8 a bare CR before a colon', withLine('A\r: b')],
  ['H8 a NUL in a value', withLine('A: b\0c')],
  ['H8 a NUL in a name', withLine('A\0: b')],
  ['H8 a control byte in a value', withLine('A: b\x01c')],
  ['H8 an escape in a value', withLine('A: \x1b[31m')],
  ['H8 a DEL in a value', withLine('A: b\x7fc')],
  ['H8 a folded value', withLine('A: b\r\n c')],
  ['H8 a value folded with a tab', withLine('A: b\r\n\tc')],
  ['H8 a folded length', post('Content-Length: 5\r\n 5')],
  ['H8 an empty folded line', withLine('A: b\r\n ')],
  ['H8 a fold behind the request line', get().replace('\r\nHost', '\r\n A: b\r\nHost')],
  ['H8 a space before the first field', get().replace('\r\nHost', '\r\n Host')],
  ['H8 a space before a later field', withLine(' A: b')],
  ['H8 a line without a colon', withLine('nothing')],
  ['H8 an empty name', withLine(': b')],
  ['H8 an empty name and value', withLine(':')],
  ['H8 a space as a name', withLine(' : b')],
  ['H8 a space before the colon', withLine('A : b')],
  ['H8 a tab before the colon', withLine('A\t: b')],
  ['H8 a vertical tab before the colon', withLine('A\x0b: b')],
  ['H8 a space in a name', withLine('A B: c')],
  ['H8 brackets in a name', withLine('A(B): c')],
  ['H8 a slash in a name', withLine('A/B: c')],
  ['H8 a comma in a name', withLine('A,B: c')],
  ['H8 an at sign in a name', withLine('A@B: c')],
  ['H8 an 8-bit byte in a name', withLine('A\xe4: b')],
  ['H8 a soft hyphen in a name', withLine('Content\xadLength: 5')],
  ['H8 a name in quotation marks', withLine('"A": b')],
]

/** A well-formed request that is refused: the request behind it gets its own response. */
const WRONG = headOf('GET /x HTTP/1.1', 'Host: device', 'Authorization: Bearer wrong')

describeTransports(
  'Messages',
  (transport) => {
    const front = sharedFront(transport)

    it.each(heads)('%s: 400 and close, and no byte reaches the device', (_name, bytes) =>
      front.expectRefused(bytes),
    )

    it('H10 five hundred requests pipelined behind a refused one never run', async () => {
      const before = front.sidecar.device.byteCount
      const bytes = post('Transfer-Encoding: gzip, chunked') + SMUGGLED.repeat(500)
      expect((await front.responsesTo(bytes)).map(({ status }) => status)).toEqual([400])
      expect(front.sidecar.device.byteCount).toBe(before)
    })

    it('H10 a request that comes later on the connection of a refused one never runs', async () => {
      const before = front.sidecar.device.byteCount
      const raw = await front.send(get('Host: other'))
      await raw.waitFor('invalid_request')
      raw.write(SMUGGLED.replace('TOKEN', front.token))
      expect(responsesIn(await raw.closed)).toHaveLength(1)
      expect(front.sidecar.device.byteCount).toBe(before)
    })

    it('H10 a good request in front of a refused one gets its response', async () => {
      const responses = await front.responsesTo(get() + get('Host: other') + SMUGGLED)
      expect(responses.map(({ status }) => status)).toEqual([200, 400])
    })

    it('H10 the requests behind a well-formed one without access get their own responses', async () => {
      const responses = await front.responsesTo(WRONG + get() + get('Connection: close'))
      expect(responses.map(({ status }) => status)).toEqual([401, 200, 200])
    })

    it.each([
      ['TRACE', '/x'],
      ['TRACE', '/oauth/token'],
      ['CONNECT', 'device:80'],
      ['CONNECT', '/x'],
    ])('H14 %s %s is 400, and the request behind it never runs', async (method, target) => {
      const before = front.sidecar.device.byteCount
      const asked = get('Connection: close').replace('GET /x', `${method} ${target}`)
      const [response, ...more] = await front.responsesTo(asked + SMUGGLED)
      expect([response?.status, more.length]).toEqual([400, 0])
      expect(response?.header('Allow')).toContain('POST')
      expect(front.sidecar.device.byteCount).toBe(before)
    })

    it('H14 TRACE and CONNECT are 405 in http mode', async () => {
      const precise = await startFront(transport, { status_codes: 'http' })
      for (const method of ['TRACE', 'CONNECT']) {
        const raw = await precise.send(get('Connection: close').replace('GET', method))
        expect(await raw.closed).toMatch(/^HTTP\/1\.1 405 /)
      }
    })
  },
  ['http1'],
)
