import { describe, expect, it } from 'vitest'
import { NEW_DEVICE } from '../../src/commands/check/device.ts'
import { loadConfig } from '../../src/config/load.ts'
import { watchDelayedAcks } from '../../src/device/kept-connections.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'
import { nextRequest, OK, startRawDevice } from '../support/raw-device.ts'
import { startSidecar } from '../support/sidecar.ts'

/**
 * A device whose requests on kept connections take 44 ms, as if each waited for an acknowledgement, and those on new connections 3 ms; or
 * all take 3 ms. No time passes otherwise, so a busy machine changes nothing.
 */
const startWaiting = (clock: MovableClock, waits: boolean) =>
  startRawDevice(async (peer) => {
    for (let carried = 0; ; carried += 1) {
      await nextRequest(peer)
      await clock.advance(waits && carried > 0 ? 44 : 3)
      peer.write(OK)
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
    const clock = stillClock()
    const device = await startWaiting(clock, true)
    const sidecar = await startSidecar({ device, clock })
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
      {
        result: 'warning',
        message: expect.stringContaining('40 ms'),
        remedy: expect.stringContaining('upstream.reuse: never'),
      },
    ],
    ['does not wait', false, { result: 'ok', message: expect.stringContaining('answered 200') }],
  ])('H180 H370 check finds out whether a device %s for them', async (_name, waits, expected) => {
    const clock = stillClock()
    const device = await startWaiting(clock, waits)
    const text = JSON.stringify({ upstream: { url: device.url }, password: { file: '/dev/null' } })
    const { upstream } = loadConfig({ file: { path: 'postern.yaml', text }, env: {}, sets: [] })
    const { result, line } = await NEW_DEVICE.run({ service: upstream, key: 'upstream', clock })
    expect(result).toMatchObject(expected)
    // What `init` writes.
    expect(line).toBe(waits ? 'reuse: never' : undefined)
  })

  it('H180 new connections that are as slow change nothing, and are not tried a fourth time', () => {
    const { carried, found } = watch()
    for (let round = 0; round < 3; round += 1) {
      for (let i = 0; i < 8; i += 1) expect(carried(44, true, 1)).toBe(i === 7)
      expect(carried(44, false, 1)).toBe(false)
    }
    for (let i = 0; i < 20; i += 1) expect(carried(44, true, 1)).toBe(false)
    expect(found()).toBe(0)
  })

  it('H180 a stall of this process while it tries new connections is no answer of the device', () => {
    const { carried, found } = watch()
    for (let i = 0; i < 8; i += 1) carried(44, true, 1)
    carried(500, false, 1)
    for (let i = 0; i < 8; i += 1) carried(44, true, 1)
    for (let i = 0; i < 4; i += 1) carried(5, false, 1)
    expect(found()).toBe(1)
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

  it('H180 a new connection beside as few busy ones as any suspicious request had is a try', () => {
    const { carried, found } = watch()
    for (const level of [2, 8, 8, 8, 8, 8, 8, 8]) carried(44, true, level)
    for (let i = 0; i < 4; i += 1) {
      expect(carried(5, false, 1)).toBe(false)
      expect(carried(5, false, 2)).toBe(true)
    }
    expect(found()).toBe(1)
  })

  it('H180 one quick request on a kept connection ends the suspicion', () => {
    const { carried, found } = watch()
    for (let i = 0; i < 100; i += 1) expect(carried(i % 8 === 7 ? 5 : 44, true, 1)).toBe(false)
    expect(found()).toBe(0)
  })
})
