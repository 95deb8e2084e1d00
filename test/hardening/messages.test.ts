import { expect, it } from 'vitest'
import { answersIn, typed } from '../support/raw-answers.ts'
import { describeTransports } from '../support/transports.ts'
import { get, heldFront, post, SMUGGLED, startFront } from './front.ts'

type Case = readonly [name: string, bytes: string]

/** A head in which one line has been put behind the others. */
const line = (text: string): string => get(text)

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
  ['H8 a bare LF in a value', line('A: b\nc: d')],
  ['H8 a bare CR in a value', line('A: b\rc: d')],
  ['H8 a bare CR before a length', line('A: \rxContent-Length: 5')],
  ['H8 a bare CR before a colon', line('A\r: b')],
  ['H8 a NUL in a value', line('A: b\0c')],
  ['H8 a NUL in a name', line('A\0: b')],
  ['H8 a control byte in a value', line('A: b\x01c')],
  ['H8 an escape in a value', line('A: \x1b[31m')],
  ['H8 a DEL in a value', line('A: b\x7fc')],
  ['H8 a folded value', line('A: b\r\n c')],
  ['H8 a value folded with a tab', line('A: b\r\n\tc')],
  ['H8 a folded length', post('Content-Length: 5\r\n 5')],
  ['H8 a folded line of nothing', line('A: b\r\n ')],
  ['H8 a fold behind the request line', get().replace('\r\nHost', '\r\n A: b\r\nHost')],
  ['H8 a blank before the first field', get().replace('\r\nHost', '\r\n Host')],
  ['H8 a blank before a later field', line(' A: b')],
  ['H8 a line without a colon', line('nothing')],
  ['H8 an empty name', line(': b')],
  ['H8 an empty name and value', line(':')],
  ['H8 a blank for a name', line(' : b')],
  ['H8 a blank before the colon', line('A : b')],
  ['H8 a tab before the colon', line('A\t: b')],
  ['H8 a vertical tab before the colon', line('A\x0b: b')],
  ['H8 a blank in a name', line('A B: c')],
  ['H8 brackets in a name', line('A(B): c')],
  ['H8 a slash in a name', line('A/B: c')],
  ['H8 a comma in a name', line('A,B: c')],
  ['H8 an at sign in a name', line('A@B: c')],
  ['H8 an 8-bit byte in a name', line('A\xe4: b')],
  ['H8 a soft hyphen in a name', line('Content\xadLength: 5')],
  ['H8 a name in quotation marks', line('"A": b')],
]

/** What is well formed and refused; what follows is a request of its own, and gets its own answer. */
const WRONG = typed('GET /x HTTP/1.1', 'Host: device', 'Authorization: Bearer wrong')

describeTransports(
  'Messages',
  (transport) => {
    const front = heldFront(transport)

    it.each(heads)('%s is refused with 400, closed, not a byte at the device', (_name, bytes) =>
      front.refuses(bytes),
    )

    it('H10 what is pipelined behind a refused request never runs, however much it is', async () => {
      const before = front.sidecar.device.byteCount
      const bytes = post('Transfer-Encoding: gzip, chunked') + SMUGGLED.repeat(500)
      expect((await front.answersTo(bytes)).map(({ status }) => status)).toEqual([400])
      expect(front.sidecar.device.byteCount).toBe(before)
    })

    it('H10 nor what comes later on the same connection', async () => {
      const before = front.sidecar.device.byteCount
      const raw = await front.send(get('Host: other'))
      await raw.waitFor('invalid_request')
      raw.write(SMUGGLED.replace('TOKEN', front.token))
      expect(answersIn(await raw.closed)).toHaveLength(1)
      expect(front.sidecar.device.byteCount).toBe(before)
    })

    it('H10 a good request in front of a refused one is answered', async () => {
      const answers = await front.answersTo(get() + get('Host: other') + SMUGGLED)
      expect(answers.map(({ status }) => status)).toEqual([200, 400])
    })

    it('H10 behind a well-formed request that is refused, the next one is a request of its own', async () => {
      const answers = await front.answersTo(WRONG + get() + get('Connection: close'))
      expect(answers.map(({ status }) => status)).toEqual([401, 200, 200])
    })

    it.each([
      ['TRACE', '/x'],
      ['TRACE', '/oauth/token'],
      ['CONNECT', 'device:80'],
      ['CONNECT', '/x'],
    ])('H14 %s %s is refused, and what follows it is not read', async (method, target) => {
      const before = front.sidecar.device.byteCount
      const asked = get('Connection: close').replace('GET /x', `${method} ${target}`)
      const [answer, ...more] = await front.answersTo(asked + SMUGGLED)
      expect([answer?.status, more.length]).toEqual([400, 0])
      expect(answer?.header('Allow')).toContain('POST')
      expect(front.sidecar.device.byteCount).toBe(before)
    })

    it('H14 in http mode it is 405', async () => {
      const precise = await startFront(transport, { status_codes: 'http' })
      for (const method of ['TRACE', 'CONNECT']) {
        const raw = await precise.send(get('Connection: close').replace('GET', method))
        expect(await raw.closed).toMatch(/^HTTP\/1\.1 405 /)
      }
    })
  },
  ['http1', 'tls'],
)
