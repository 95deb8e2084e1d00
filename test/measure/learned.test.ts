import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openCeilings } from '../../src/forward/ceilings.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { movableClock } from '../support/clock.ts'
import { startHoldingDevice } from '../support/holding-device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

const HOUR = 3_600_000

describeTransports('The learned bound', (transport) => {
  it('H201 twenty requests that hang all reach the device, and a metric tells why', async () => {
    const { device, held } = await startHoldingDevice()
    const sidecar = await startSidecar({ transport, device, config: { upstream: { max_in_flight: 'auto' } } })
    expect(await sidecar.metric('postern_upstream_limit')).toBe(2)
    const token = await sidecar.token()
    const responses = Array.from({ length: 20 }, () => sidecar.request({ path: '/hangs', token }))
    await device.waitForRequests(20)
    expect(await sidecar.metric('postern_upstream_limit')).toBe(32)
    const silent = await sidecar.metric('postern_upstream_limit_changes_total', { reason: 'silent' })
    expect(silent).toBe(4)
    for (const response of held) response.end('done')
    expect((await Promise.all(responses)).map(({ status }) => status)).toEqual(Array(20).fill(200))
  })
})

describe('The ceilings', () => {
  it('H200 survive a restart, with the time of the next attempt', () => {
    const folder = temporaryDirectory()
    const clock = movableClock()
    const fail = (error: unknown): void => expect(error).toBeUndefined()
    const until = clock.monotonic() + HOUR
    openCeilings(folder, clock, fail).keep('/video', { limit: 4, until, wait: HOUR })
    const later = movableClock()
    later.advance(60_000)
    const found = openCeilings(folder, later, fail).of('/video')
    expect(found).toMatchObject({ limit: 4, wait: HOUR })
    const left = (found?.until ?? 0) - later.monotonic()
    expect(Math.abs(left - (HOUR - 60_000))).toBeLessThan(5_000)
    expect(openCeilings(folder, later, fail).of('')).toBeUndefined()
  })

  it('H200 are gone without a state folder, and with a file that is damaged', () => {
    const failures: unknown[] = []
    const folder = temporaryDirectory()
    const open = (path: string) => openCeilings(path, movableClock(), (error) => failures.push(error))
    expect(open(join(folder, 'none')).of('')).toBeUndefined()
    expect(failures).toEqual([])
    writeFileSync(join(folder, 'ceilings.json'), '{"": {"limit": -1}, "/a/": 7')
    const ceilings = open(folder)
    expect(ceilings.of('')).toBeUndefined()
    expect(failures).toHaveLength(1)
    ceilings.keep('', { limit: 2, until: 0, wait: HOUR })
    expect(JSON.parse(readFileSync(join(folder, 'ceilings.json'), 'utf8'))).toMatchObject({
      '': { limit: 2 },
    })
    ceilings.keep('', undefined)
    expect(readFileSync(join(folder, 'ceilings.json'), 'utf8')).toBe('{}')
  })
})
