import { describe, expect, it } from 'vitest'
import { startCannedDevice, startDevice, startRawDevice } from '../support/device.ts'
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
    // One refused by the strict parser, and three read.
    expect(device.peers).toHaveLength(4)
  })

  it('auto repeats nothing that may have done something, but learns from it', async () => {
    const device = await startCannedDevice(SLOPPY)
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    expect((await sidecar.request({ token, body: 'do it' })).status).toBe(500)
    expect(device.peers).toHaveLength(1)
    expect((await sidecar.request({ token, body: 'do it' })).text).toBe('hi')
    expect(device.peers).toHaveLength(2)
  })

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
