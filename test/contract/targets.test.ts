import { expect, it } from 'vitest'
import { expectError } from '../support/expectations.ts'
import { describeProtocols, describeTransports } from '../support/transports.ts'
import { get, sharedFront, startFront } from './front.ts'

describeProtocols('Targets', (transport) => {
  const front = sharedFront(transport)

  it('H26 OPTIONS * is answered by the sidecar itself', async () => {
    const before = front.sidecar.device.byteCount
    for (const token of [undefined, front.token]) {
      const response = await front.sidecar.request({ method: 'OPTIONS', path: '*', ...(token && { token }) })
      expectError(response, 400, 'invalid_request')
    }
    expect(front.sidecar.device.byteCount).toBe(before)
  })
})

describeTransports(
  'Targets in HTTP/2',
  (transport) => {
    const front = sharedFront(transport)

    // HTTP/2 can carry what HTTP/1 cannot. `gate/heads.txt` has the others.
    it.each(['/a#b', '/oauth/token\xa0', '/\xff\xfe', '', 'http://x/', '/a b', '\t/', '/a\x7fb'])(
      'H27 a :path of %j is refused, and no byte reaches the device',
      async (path) => {
        const before = front.sidecar.device.byteCount
        const status = await front.sidecar
          .request({ path, token: front.token })
          .then((response) => response.status)
          .catch(() => 400)
        expect(status).toBe(400)
        expect(front.sidecar.device.byteCount).toBe(before)
      },
    )
  },
  ['h2'],
)

describeTransports(
  'Targets in HTTP/1',
  (transport) => {
    const front = sharedFront(transport)

    const at = (target: string): string => get('Connection: close').replace('/x', target)

    it('H25 a target in absolute form reaches the device in origin form, with the Host of the request', async () => {
      const { device } = front.sidecar
      const before = device.requests.length
      const targets = [
        'http://device/a?b',
        'HTTP://DEVICE/a',
        'http://device',
        'http://device//other/',
        '//other/a',
      ]
      for (const target of targets)
        expect((await front.responsesTo(at(target))).map(({ status }) => status)).toEqual([200])
      const seen = device.requests.slice(before)
      expect(seen.map(({ target }) => target)).toEqual(['/a?b', '/a', '/', '//other/', '//other/a'])
      for (const request of seen) expect(request.header('Host')?.toLowerCase()).toBe('device')
    })

    // A proxy that decodes a path before it forwards it lets its client write whole requests (CRLF-powered desync).
    it.each(['strict', 'tolerant'])(
      'H95 an encoded line break reaches the device encoded (%s parser)',
      async (parser) => {
        const encoded = await startFront(transport, { upstream: { parser } })
        const target = '/x%0d%0aX-Evil:%20y%0d%0a%0d%0aGET%20/smuggled%20HTTP/1.1?a=%0aX-Evil:y&b=%0D%0A%00'
        expect((await encoded.responsesTo(at(target))).map(({ status }) => status)).toEqual([200])
        expect(encoded.sidecar.device.requests.map((request) => request.target)).toEqual([target])
        expect(encoded.sidecar.device.requests[0]?.values('X-Evil')).toEqual([])
      },
    )

    it.each([
      ['101 fields', Array<string>(101).fill('A: b')],
      ['a field of 20,000 bytes', [`A: ${'b'.repeat(20_000)}`]],
      ['a name of 20,000 bytes', [`${'A'.repeat(20_000)}: b`]],
      ['5000 small fields', Array<string>(5000).fill('A: bcd')],
      ['20,000 empty fields', Array<string>(20_000).fill('A:')],
    ])('H22 %s: 400, and no byte reaches the device', async (_name, fields) => {
      const before = front.sidecar.device.byteCount
      const [response] = await front.responsesTo(get(...fields, 'Connection: close'))
      expectError(response ?? expect.fail('no response'), 400, 'invalid_request')
      expect(front.sidecar.device.byteCount).toBe(before)
    })

    it('H22 the size cap holds for a head in fifty packets', async () => {
      const raw = await front.send(get(`A: ${'b'.repeat(70_000)}`), 50)
      expect(await raw.closed).toMatch(/^HTTP\/1\.1 400 /)
    })

    it('H22 a head past its cap is 431 in http mode', async () => {
      const precise = await startFront(transport, { status_codes: 'http' })
      for (const fields of [Array<string>(101).fill('A: b'), Array<string>(20_000).fill('A:')])
        expect((await precise.responsesTo(get(...fields, 'Connection: close')))[0]?.status).toBe(431)
    })
  },
  ['http1'],
)
