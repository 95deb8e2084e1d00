import { describe, expect, it } from 'vitest'
import { startCannedDevice, startDevice, startRawDevice } from '../support/device.ts'
import { expectError, proxyError } from '../support/errors.ts'
import { nextRequest, OK } from '../support/scripted.ts'
import { startSidecar } from '../support/sidecar.ts'

const SLOPPY = 'http/1.1 200 ok\nX-A : b\nContent-Length: 2\nContent-Length: 2\n\nhi'

/** The warnings in the log. */
function warnings(lines: readonly string[]): string[] {
  return lines.filter((line) => JSON.parse(line).level === 40 || JSON.parse(line).level === 'warn')
}

describe.each(['http1', 'h2'] as const)('upstream.parser over %s', (transport) => {
  it('auto reads a sloppy answer at once, warns once, and stays tolerant', async () => {
    const device = await startCannedDevice(SLOPPY)
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    expect(await sidecar.metric('postern_upstream_tolerant')).toBe(0)
    for (let i = 0; i < 3; i += 1) {
      const answer = await sidecar.request({ token })
      expect([answer.status, answer.text, answer.header('X-A')]).toEqual([200, 'hi', 'b'])
    }
    expect(await sidecar.metric('postern_upstream_tolerant')).toBe(1)
    expect(await sidecar.metric('postern_upstream_errors_total')).toBe(0)
    expect(await sidecar.metric('postern_upstream_duration_seconds_count')).toBe(3)
    expect(warnings(sidecar.logLines())).toHaveLength(1)
    expect(device.peers).toHaveLength(3)
  })

  it('auto reads also the first answer to what may have done something, and asks once', async () => {
    const device = await startCannedDevice(SLOPPY)
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    for (const times of [1, 2]) {
      expect((await sidecar.request({ token, body: 'do it' })).text).toBe('hi')
      expect(device.peers).toHaveLength(times)
    }
  })

  it.each(['HTTP/1.1 200 O\x01K', 'HTTP/1.1 200 \0', 'HTTP/1.1 200 OK\x7f'])(
    'auto finds a status line sloppy, whatever the client speaks: %j',
    async (line) => {
      const device = await startCannedDevice(`${line}\r\nContent-Length: 2\r\n\r\nhi`)
      const sidecar = await startSidecar({ transport, device })
      expect((await sidecar.request({ token: await sidecar.token() })).text).toBe('hi')
      expect(await sidecar.metric('postern_upstream_tolerant')).toBe(1)
    },
  )

  it('auto keeps its connections to a device that speaks HTTP', async () => {
    const device = await startDevice()
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    for (let i = 0; i < 3; i += 1) await sidecar.request({ token })
    expect(device.connections).toBe(1)
    expect(await sidecar.metric('postern_upstream_tolerant')).toBe(0)
  })

  it('strict refuses a sloppy answer, every time', async () => {
    const device = await startCannedDevice(SLOPPY)
    const sidecar = await startSidecar({ transport, device, config: { upstream: { parser: 'strict' } } })
    const token = await sidecar.token()
    for (let i = 0; i < 2; i += 1) expect((await sidecar.request({ token })).status).toBe(500)
    expect(device.peers).toHaveLength(2)
  })

  it('tolerant reads a sloppy answer without trying to be strict', async () => {
    const device = await startRawDevice(async (peer) => {
      await peer.waitFor('\r\n\r\n')
      peer.end(SLOPPY)
    })
    const sidecar = await startSidecar({ transport, device, config: { upstream: { parser: 'tolerant' } } })
    const token = await sidecar.token()
    expect((await sidecar.request({ token, body: 'do it' })).text).toBe('hi')
    expect(await sidecar.metric('postern_upstream_tolerant')).toBe(1)
    expect(warnings(sidecar.logLines())).toHaveLength(0)
  })
})

describe('A status above 599 (RFC 9110 §15)', () => {
  const odd = (status: number): string => OK.replace('200 OK', `${status} Odd`)

  it.each([600, 799, 999])(
    'H45 C19 C21 %d fails alone over HTTP/2, which Node cannot carry it in',
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
          const answer = await sidecar.request({ path, token })
          if (path === '/fine') expect([answer.status, answer.text]).toEqual([200, 'ok'])
          else {
            expectError(answer, own, 'upstream_unavailable')
            expect(proxyError(answer)).toBe('http_protocol_error')
          }
        }
        expect(await sidecar.metric('postern_upstream_tolerant')).toBe(0)
        expect(await sidecar.metric('postern_upstream_errors_total', { reason: 'http_protocol_error' })).toBe(
          2,
        )
        expect(warnings(sidecar.logLines())).toEqual([])
        // Each of the two ended its connection, and was asked for once.
        expect(device.peers.length - before).toBe(3)
      }
    },
  )

  it.each(['strict', 'tolerant', 'auto'])('C21 passes through as it is over HTTP/1 (%s)', async (parser) => {
    const device = await startCannedDevice(odd(799))
    const sidecar = await startSidecar({ device, config: { upstream: { parser } } })
    const { status, reason, text } = await sidecar.request({ token: await sidecar.token() })
    expect([status, reason, text]).toEqual([799, 'Odd', 'ok'])
    expect(await sidecar.metric('postern_upstream_tolerant')).toBe(parser === 'tolerant' ? 1 : 0)
  })
})
