import { describe, expect, it } from 'vitest'
import { makeCertificate } from '../support/certificate.ts'
import { passUntil } from '../support/clock.ts'
import { type RawDevice, startCannedDevice, startDevice, startRawDevice } from '../support/device.ts'
import { type ErrorCode, expectError, proxyError } from '../support/errors.ts'
import { unusedPort } from '../support/raw.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'

type Mode = 'contract' | 'http'

/** A fault of the device, and the error that the client must get. */
interface Fault {
  readonly name: string
  readonly device: () => Promise<{ readonly url: string }>
  readonly upstream?: YamlPart
  /** The time of a deadline has to pass. */
  readonly isLate?: boolean
  readonly code: ErrorCode
  /** The status in `http` mode; in `contract` mode it is always 500. */
  readonly httpStatus: number
  /** The `error` of `Proxy-Status`. */
  readonly reason: RegExp
}

const dropping = (drop: (peer: RawDevice['peers'][number]) => void) => () =>
  startRawDevice(async (peer) => {
    await peer.waitFor('\r\n\r\n')
    drop(peer)
  })

const faults: readonly Fault[] = [
  {
    name: 'down',
    device: async () => ({ url: `http://127.0.0.1:${await unusedPort()}` }),
    code: 'upstream_unavailable',
    httpStatus: 502,
    reason: /^connection_refused$/,
  },
  {
    name: 'silent',
    device: () => startDevice(() => {}),
    isLate: true,
    code: 'upstream_timeout',
    httpStatus: 504,
    reason: /^http_response_timeout$/,
  },
  {
    name: 'closing the connection without a response',
    device: dropping((peer) => peer.end()),
    code: 'upstream_unavailable',
    httpStatus: 502,
    reason: /^(?:connection_terminated|http_response_incomplete)$/,
  },
  {
    name: 'resetting the connection without a response',
    device: dropping((peer) => peer.reset()),
    code: 'upstream_unavailable',
    httpStatus: 502,
    reason: /^connection_terminated$/,
  },
  {
    name: 'closing the connection within the response head',
    device: () => startCannedDevice('HTTP/1.1 200 OK\r\nContent-Le'),
    upstream: { parser: 'strict' },
    code: 'upstream_unavailable',
    httpStatus: 502,
    reason: /^(?:connection_terminated|http_response_incomplete|http_protocol_error)$/,
  },
  {
    name: 'speaking another protocol',
    device: () => startCannedDevice('220 ftp.example.net ready\r\n\r\n'),
    upstream: { parser: 'strict' },
    code: 'upstream_unavailable',
    httpStatus: 502,
    reason: /^http_protocol_error$/,
  },
  {
    name: 'sending an endless response head',
    device: () => startCannedDevice(`HTTP/1.1 200 OK\r\n${'X-Filler: 0123456789\r\n'.repeat(20_000)}\r\n`),
    upstream: { parser: 'strict' },
    code: 'upstream_unavailable',
    httpStatus: 502,
    reason: /^(?:http_response_header_section_size|http_protocol_error)$/,
  },
  {
    name: 'presenting an untrusted certificate',
    device: async () => startDevice(undefined, { tls: await makeCertificate() }),
    code: 'upstream_unavailable',
    httpStatus: 502,
    reason: /^tls_certificate_error$/,
  },
  {
    name: 'not speaking TLS',
    device: async () => ({ url: (await startDevice()).url.replace('http:', 'https:') }),
    code: 'upstream_unavailable',
    httpStatus: 502,
    reason: /^(?:tls_protocol_error|connection_terminated)$/,
  },
]

describeProtocols('C19 Device failures', (transport) => {
  describe.each(['contract', 'http'] as const)('status_codes: %s', (mode: Mode) => {
    const pick = (contract: number, http: number): number => (mode === 'contract' ? contract : http)
    const start = (options: Parameters<typeof startSidecar>[0] = {}): Promise<TestSidecar> =>
      startSidecar({ transport, ...options, config: { status_codes: mode, ...options.config } })

    it.each(faults)(
      'C19 a device that is $name is $code',
      async ({ device, upstream, isLate, code, httpStatus, reason }) => {
        const sidecar = await start({ device: await device(), config: { upstream: upstream ?? {} } })
        const token = await sidecar.token()
        const responses = Promise.all([
          sidecar.request({ token }),
          sidecar.request({ token, body: 'not to be repeated' }),
        ])
        for (const response of await (isLate ? passUntil(sidecar.clock, responses) : responses)) {
          expectError(response, pick(500, httpStatus), code)
          expect(proxyError(response), response.header('Proxy-Status')).toMatch(reason)
        }
      },
    )

    it('C19 a request past the queue is overloaded, with Retry-After', async () => {
      let finish: () => void = () => {}
      const device = await startDevice((_request, response) => {
        finish = () => response.end()
      })
      const config = { upstream: { max_in_flight: 1, queue: { size: 0 } } }
      const sidecar = await start({ device, config })
      const token = await sidecar.token()
      const first = sidecar.request({ token })
      await device.waitForRequests(1)
      const response = await sidecar.request({ token })
      expectError(response, pick(500, 503), 'overloaded')
      expect(response.header('Retry-After')).toMatch(/^[1-9]\d*$/)
      expect(proxyError(response)).toBe('connection_limit_reached')
      finish()
      expect((await first).status).toBe(200)
    })

    it('C19 a device that is back after a restart is used again', async () => {
      const device = await startDevice()
      const port = Number(new URL(device.url).port)
      const sidecar = await start({ device })
      const token = await sidecar.token()
      expect((await sidecar.request({ token })).status).toBe(200)
      await device.stop()
      const refused = await passUntil(sidecar.clock, sidecar.request({ token }))
      expectError(refused, pick(500, 502), 'upstream_unavailable')
      await startDevice(undefined, { port })
      expect((await sidecar.request({ token })).text).toBe('from the device')
    })
  })
})
