import { describe, expect, it } from 'vitest'
import { judgeDevice } from '../../src/commands/check/device-checks.ts'
import { loadConfig } from '../../src/config/load.ts'
import { watchDelayedAcks } from '../../src/device/kept-connections.ts'
import { upstreamTarget } from '../../src/forward/settings.ts'
import { startRawDevice } from '../support/device.ts'
import { nextRequest } from '../support/scripted.ts'
import { startSidecar } from '../support/sidecar.ts'

/** Writes head and body apart, with Nagle's algorithm: the body waits for the acknowledgement of the head. */
const startWaiting = (nagle: boolean) =>
  startRawDevice(async (peer) => {
    peer.socket.setNoDelay(!nagle)
    for (;;) {
      await nextRequest(peer)
      peer.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n')
      setImmediate(() => peer.write('ok'))
    }
  })

function watch(): {
  readonly carried: (took: number, reused: boolean, level: number) => boolean
  /** Eight requests at once. */
  readonly eightCarried: (took: number, reused: boolean) => boolean[]
  readonly found: () => number
} {
  let found = 0
  const acks = watchDelayedAcks(() => {
    found += 1
  })
  let now = 0
  return {
    carried(took, reused, level) {
      now += took
      return acks.carried(took, reused, level, now)
    },
    eightCarried(took, reused) {
      now += took
      return Array.from({ length: 8 }, () => acks.carried(took, reused, 8, now))
    },
    found: () => found,
  }
}

describe('Delayed acknowledgements', () => {
  it('H180 a device that waits for them gets a connection per request, and the log says so once', async () => {
    const device = await startWaiting(true)
    const sidecar = await startSidecar({ device })
    const token = await sidecar.token()
    const said = (): string[] => sidecar.logLines().filter((line) => /reuse: never/.test(line))
    for (let i = 0; i < 100 && said().length === 0; i += 1)
      expect((await sidecar.request({ token })).text).toBe('ok')
    expect(said()).toHaveLength(1)
    const before = device.peers.length
    for (let i = 0; i < 10; i += 1) expect((await sidecar.request({ token })).text).toBe('ok')
    expect(device.peers).toHaveLength(before + 10)
    expect(device.peers.at(-1)?.received ?? '').not.toContain('keep-alive')
    expect(said()).toHaveLength(1)
  })

  it.each([
    [
      'waits',
      true,
      { warning: expect.stringContaining('40 ms'), remedy: expect.stringContaining('upstream.reuse: never') },
    ],
    ['does not wait', false, expect.stringContaining('answered 200')],
  ])('H180 check finds out whether a device %s for them', async (_name, nagle, expected) => {
    const device = await startWaiting(nagle)
    const text = JSON.stringify({ upstream: { url: device.url }, password: { file: '/dev/null' } })
    const { upstream } = loadConfig({ file: { path: 'postern.yaml', text }, env: {}, sets: [] })
    const judged = await judgeDevice(await upstreamTarget(upstream, 'upstream'), upstream, 'upstream')
    if (typeof expected === 'object' && 'warning' in expected) expect(judged).toMatchObject(expected)
    else expect(judged).toEqual(expected)
  })

  it('H180 new connections that are as slow change nothing', () => {
    const { carried, found } = watch()
    for (let i = 0; i < 8; i += 1) expect(carried(44, true, 1)).toBe(i === 7)
    expect(carried(44, false, 1)).toBe(false)
    for (let i = 0; i < 20; i += 1) expect(carried(44, true, 1)).toBe(false)
    expect(found()).toBe(0)
  })

  it('H180 a stall that delays eight requests at once is not eight delayed acknowledgements', () => {
    const { eightCarried, found } = watch()
    for (let stall = 0; stall < 10; stall += 1) {
      expect(eightCarried(44, true)).not.toContain(true)
      eightCarried(5, true)
    }
    expect(found()).toBe(0)
  })

  it('H180 eight requests at once, over and over, are found as those of one client', () => {
    const { eightCarried, found } = watch()
    for (let round = 0; round < 8; round += 1) eightCarried(44, true)
    for (let round = 0; round < 4; round += 1) eightCarried(5, false)
    expect(found()).toBe(1)
  })

  it('H180 one quick request on a kept connection ends the suspicion', () => {
    const { carried, found } = watch()
    for (let i = 0; i < 100; i += 1) expect(carried(i % 8 === 7 ? 5 : 44, true, 1)).toBe(false)
    expect(found()).toBe(0)
  })
})
