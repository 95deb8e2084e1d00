import { describe, expect, it } from 'vitest'
import { responsesIn } from '../support/http1-reader.ts'
import { describeTransports } from '../support/transports.ts'
import { passServing } from '../support/waiting.ts'
import { get, post, SMUGGLED, sharedFront, startFront } from './front.ts'

/** A request inside a body: a parser that frames the body otherwise would run it. */
const INNER = 'GET /inner HTTP/1.1\r\nHost: device\r\n\r\n'

describeTransports(
  'Bodies',
  (transport) => {
    describe.each(transport === 'tls' ? ['tolerant'] : ['strict', 'tolerant'])(
      'with the %s parser',
      (parser) => {
        const front = sharedFront(transport, { upstream: { parser, buffer_uploads: 'off' } })

        it.each(['GET', 'HEAD', 'OPTIONS', 'DELETE', 'PUT', 'PROPFIND'])(
          'H11 a %s with a body reaches the device with exact framing, and so does the request behind it',
          async (method) => {
            const { device } = front.sidecar
            for (const framed of [
              get(`Content-Length: ${INNER.length}`) + INNER,
              `${get('Transfer-Encoding: chunked')}${INNER.length.toString(16)}\r\n${INNER}\r\n0\r\n\r\n`,
            ]) {
              const before = device.requests.length
              const raw = await front.send(framed.replace('GET', method) + get('Connection: close'))
              // A head goes 20 ms ahead of a body of unknown length.
              await passServing(front.sidecar, raw.closed, 20)
              const seen = device.requests.slice(before)
              expect(seen.map((request) => [request.method, request.target])).toEqual([
                [method, '/x'],
                ['GET', '/x'],
              ])
              expect(seen[0]?.body?.toString('latin1')).toBe(INNER)
            }
          },
        )
      },
    )

    const front = sharedFront(transport, { upstream: { buffer_uploads: 'off' } })

    it('H12 no trailer becomes a field, and none changes the next request', async () => {
      const { device } = front.sidecar
      const before = device.requests.length
      const trailers = [
        ...['X-Forwarded-For: 192.0.2.66', 'Authorization: Bearer x', 'Content-Length: 5'],
        ...[
          'Transfer-Encoding: chunked',
          'Host: other',
          'Connection: close',
          'X-Own: trailer',
          '__proto__: x',
        ],
      ]
      const body = `5\r\nhello\r\n0\r\n${trailers.map((line) => `${line}\r\n`).join('')}\r\n`
      const raw = await front.send(
        post('Transfer-Encoding: chunked', 'X-Own: field') + body + get('Connection: close'),
      )
      const received = await passServing(front.sidecar, raw.closed, 20)
      expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200'])
      const [upload] = device.requests.slice(before)
      expect(upload?.body?.toString()).toBe('hello')
      expect(upload?.values('X-Own')).toEqual(['field'])
      expect(upload?.values('X-Forwarded-For')).toEqual(['127.0.0.1'])
      expect(upload?.values('Host')).toEqual(['device'])
      expect(upload?.fields.join('\n')).not.toMatch(/Bearer|proto/)
    })

    it('H13 an admitted request with Expect: 100-continue gets 100, and its body reaches the device', async () => {
      const raw = await front.send(post('Expect: 100-continue', 'Content-Length: 5'))
      await raw.waitFor('HTTP/1.1 100 Continue\r\n\r\n')
      raw.write('hello')
      await raw.waitFor('from the device')
      expect(front.sidecar.device.requests.at(-1)?.values('Expect')).toEqual([])
      raw.end()
      await raw.closed
    })

    it.each([
      ['of ffffffffffffffff', 'f'.repeat(16)],
      ['that is no number', 'x'],
    ])(
      'H7 a chunk size %s behind good chunks ends the upload with 400, and its end does not reach the device',
      async (_name, size) => {
        const { device } = front.sidecar
        const before = device.requests.length
        const raw = await front.send(`${post('Transfer-Encoding: chunked')}5\r\nhello\r\n`)
        await device.waitForRequests(before + 1)
        raw.write(`${size}\r\nmore\r\n0\r\n\r\n${SMUGGLED}`)
        const received = await passServing(front.sidecar, raw.closed, 20)
        expect(responsesIn(received).map(({ status }) => status)).toEqual([400])
        expect(device.requests.slice(before).map(({ body }) => body)).toEqual([undefined])
      },
    )

    it('H13 any other expectation is 417 in http mode', async () => {
      const precise = await startFront(transport, { status_codes: 'http' })
      const before = precise.sidecar.device.byteCount
      for (const expectation of ['200-ok', '']) {
        const bytes = `${post(`Expect: ${expectation}`, 'Content-Length: 5', 'Connection: close')}hello`
        expect(await (await precise.send(bytes)).closed).toMatch(/^HTTP\/1\.1 417 /)
      }
      expect(precise.sidecar.device.byteCount).toBe(before)
      await precise.expectNothingLeft()
    })
  },
  ['http1', 'tls'],
)
