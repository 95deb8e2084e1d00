import { describe, expect, it } from 'vitest'
import { startDevice } from '../support/device.ts'
import { expectError, proxyError } from '../support/expectations.ts'
import { nextRequest, OK, startCannedDevice, startRawDevice } from '../support/raw-device.ts'
import { startSidecar } from '../support/sidecar.ts'

const MALFORMED = 'http/1.1 200 ok\nX-A : b\nContent-Length: 2\nContent-Length: 2\n\nhi'

/** The warnings in the log. */
/** Without that of the password, which these sidecars have in plain text. */
function warnings(lines: readonly string[]): string[] {
  return lines.filter((line) => JSON.parse(line).level === 40 && !JSON.parse(line).msg.startsWith('insecure'))
}

describe.each(['http1', 'h2'] as const)('upstream.parser over %s', (transport) => {
  it('auto reads the first malformed response, warns once, and stays tolerant', async () => {
    const device = await startCannedDevice(MALFORMED)
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    expect(await sidecar.metric('postern_upstream_tolerant')).toBe(0)
    for (let i = 0; i < 3; i += 1) {
      const response = await sidecar.request({ token })
      expect([response.status, response.text, response.header('X-A')]).toEqual([200, 'hi', 'b'])
    }
    expect(await sidecar.metric('postern_upstream_tolerant')).toBe(1)
    expect(await sidecar.metric('postern_upstream_errors_total')).toBe(0)
    expect(await sidecar.metric('postern_upstream_duration_seconds_count')).toBe(3)
    expect(warnings(sidecar.logLines())).toHaveLength(1)
    expect(device.peers).toHaveLength(3)
  })

  it('auto also reads the first response to a POST, and sends the request once', async () => {
    const device = await startCannedDevice(MALFORMED)
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    for (const times of [1, 2]) {
      expect((await sidecar.request({ token, body: 'do it' })).text).toBe('hi')
      expect(device.peers).toHaveLength(times)
    }
  })

  it.each(['HTTP/1.1 200 O\x01K', 'HTTP/1.1 200 \0', 'HTTP/1.1 200 OK\x7f'])(
    'auto treats the status line as malformed for clients of any protocol: %j',
    async (line) => {
      const device = await startCannedDevice(`${line}\r\nContent-Length: 2\r\n\r\nhi`)
      const sidecar = await startSidecar({ transport, device })
      expect((await sidecar.request({ token: await sidecar.token() })).text).toBe('hi')
      expect(await sidecar.metric('postern_upstream_tolerant')).toBe(1)
    },
  )

  it('auto reuses connections to a device that follows HTTP', async () => {
    const device = await startDevice()
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    for (let i = 0; i < 3; i += 1) await sidecar.request({ token })
    expect(device.connections).toBe(1)
    expect(await sidecar.metric('postern_upstream_tolerant')).toBe(0)
  })

  it('strict refuses every malformed response', async () => {
    const device = await startCannedDevice(MALFORMED)
    const sidecar = await startSidecar({ transport, device, config: { upstream: { parser: 'strict' } } })
    const token = await sidecar.token()
    for (let i = 0; i < 2; i += 1) expect((await sidecar.request({ token })).status).toBe(500)
    expect(device.peers).toHaveLength(2)
  })

  it('tolerant reads a malformed response from the start, without a warning', async () => {
    const device = await startRawDevice(async (peer) => {
      await peer.waitFor('\r\n\r\n')
      peer.end(MALFORMED)
    })
    const sidecar = await startSidecar({ transport, device, config: { upstream: { parser: 'tolerant' } } })
    const token = await sidecar.token()
    expect((await sidecar.request({ token, body: 'do it' })).text).toBe('hi')
    expect(await sidecar.metric('postern_upstream_tolerant')).toBe(1)
    expect(warnings(sidecar.logLines())).toHaveLength(0)
  })
})

describe('a status above 599 (RFC 9110 §15)', () => {
  const odd = (status: number): string => OK.replace('200 OK', `${status} Odd`)

  it.each([600, 799, 999])(
    'H45 C19 C21 %d fails only its own request over HTTP/2, because Node cannot send it',
    async (status) => {
      const device = await startRawDevice(async (peer) => {
        for (;;) {
          const head = await nextRequest(peer)
          peer.write(head.startsWith('GET /odd ') ? odd(status) : OK)
        }
      })
      for (const [codes, own] of [
        ['contract', 500],
        ['http', 502],
      ] as const) {
        const sidecar = await startSidecar({ transport: 'h2', device, config: { status_codes: codes } })
        const token = await sidecar.token()
        const before = device.peers.length
        for (const path of ['/odd', '/fine', '/odd', '/fine']) {
          const response = await sidecar.request({ path, token })
          if (path === '/fine') expect([response.status, response.text]).toEqual([200, 'ok'])
          else {
            expectError(response, own, 'upstream_unavailable')
            expect(proxyError(response)).toBe('http_protocol_error')
          }
        }
        expect(await sidecar.metric('postern_upstream_tolerant')).toBe(0)
        expect(await sidecar.metric('postern_upstream_errors_total', { reason: 'http_protocol_error' })).toBe(
          2,
        )
        expect(warnings(sidecar.logLines())).toEqual([])
        // Each of the two odd responses ended its connection, and none was requested again.
        expect(device.peers.length - before).toBe(3)
      }
    },
  )

  it.each(['strict', 'tolerant', 'auto'])('C21 passes unchanged over HTTP/1.1 (%s)', async (parser) => {
    const device = await startCannedDevice(odd(799))
    const sidecar = await startSidecar({ device, config: { upstream: { parser } } })
    const { status, reason, text } = await sidecar.request({ token: await sidecar.token() })
    expect([status, reason, text]).toEqual([799, 'Odd', 'ok'])
    expect(await sidecar.metric('postern_upstream_tolerant')).toBe(parser === 'tolerant' ? 1 : 0)
  })
})
