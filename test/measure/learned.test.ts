import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openCeilings } from '../../src/forward/ceilings.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { movableClock, stillClock } from '../support/clock.ts'
import { startHoldingDevice } from '../support/holding-device.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

const HOUR = 3_600_000

describeTransports('The learned bound', (transport) => {
  it('H201 twenty requests that hang all reach the device, and a metric tells why', async () => {
    const { device, held } = await startHoldingDevice()
    const sidecar = await startSidecar({ transport, device })
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

describe('A bound of 8 places, at a device that takes 20 ms', () => {
  it('H199 stays when clients send slowly, read slowly or leave', async () => {
    const { device, held } = await startHoldingDevice()
    const clock = stillClock()
    const upstream = { max_in_flight: { min: 1, max: 8 } }
    const sidecar = await startSidecar({ device, clock, config: { upstream } })
    const token = await sidecar.token()
    const limit = () => sidecar.metric('postern_upstream_limit')
    const changes = () => sidecar.metric('postern_upstream_limit_changes_total')
    let answered = 0
    /** Sends so many requests, and does `meanwhile` while they are at the device. */
    const round = async (count: number, meanwhile = async () => {}): Promise<void> => {
      const first = answered
      answered += count
      const responses = Array.from({ length: count }, () => sidecar.request({ token }))
      await device.waitForRequests(answered)
      await meanwhile()
      clock.advance(20)
      for (const response of held.slice(first, first + count)) response.end('ok')
      await Promise.all(responses)
    }
    for (let settled = 0, rounds = 0; settled < 10 && rounds < 100; rounds += 1) {
      await round(await limit())
      settled = (await limit()) === 8 ? settled + 1 : 0
    }
    expect(await limit()).toBe(8)
    const before = await changes()

    for (const kind of ['send slowly', 'read slowly', 'leave'] as const) {
      const length = kind === 'send slowly' ? 2 : 0
      const fields = `Host: x\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\nContent-Length: ${length}`
      const clients = await Promise.all(Array.from({ length: 4 }, () => rawConnection(sidecar.url)))
      await round(4, async () => {
        for (const { write } of clients)
          write(`POST / HTTP/1.1\r\n${fields}\r\n\r\n${'1'.repeat(length / 2)}`)
        answered += 4
        await device.waitForRequests(answered)
      })
      const responses = held.slice(answered - 4, answered)
      if (kind === 'read slowly') {
        for (const response of responses) response.end(Buffer.alloc(1 << 23))
        await Promise.all(clients.map((client) => client.waitFor('200 OK')))
        for (const { socket } of clients) socket.pause()
      }
      clock.advance(5_000)
      for (const [index, client] of clients.entries()) {
        if (kind === 'leave') client.reset()
        else if (kind === 'read slowly') client.socket.resume()
        else {
          client.write('2')
          const response = responses[index]
          if (response !== undefined) await once(response.req.resume(), 'end')
          response?.end('ok')
        }
        await client.closed
      }
      for (let rounds = 0; rounds < 8; rounds += 1) await round(await limit())
      expect([kind, await limit(), await changes()]).toEqual([kind, 8, before])
    }
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
