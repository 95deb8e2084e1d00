import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { withoutFleet } from '../../src/forward/ceiling.ts'
import { openCeilings } from '../../src/forward/ceilings-file.ts'
import { passing, passWhile } from '../fleet/passing.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'
import { startDevice, startHoldingDevice } from '../support/device.ts'
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
    await expect.poll(passing([sidecar], () => device.requests.length)).toBe(20)
    expect(await sidecar.metric('postern_upstream_limit')).toBeGreaterThanOrEqual(20)
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
    const upstream = { max_in_flight: { min: 7, max: 8 } }
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
      await clock.advance(20)
      for (const response of held.slice(first, first + count)) response.end('ok')
      await Promise.all(responses)
    }
    for (let settled = 0, rounds = 0; settled < 20 && rounds < 100; rounds += 1) {
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
      // Clients that leave after more than `stream_after` show a path whose responses begin late.
      await clock.advance(kind === 'leave' ? 1_500 : 5_000)
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

/** A device that goes away at the fifth connection, and counts them. */
async function startFragile(clock: MovableClock, port?: number) {
  const device = await startDevice(
    (_request, response) => clock.after(5, () => response.end('ok')),
    port === undefined ? {} : { port },
  )
  let most = 0
  let away: Promise<void> | undefined
  device.server.on('connection', () => {
    most = Math.max(most, device.openConnections)
    if (device.openConnections > 4) away ??= device.stop()
  })
  return {
    device,
    get most() {
      return most
    },
    get away() {
      return away
    },
  }
}

describe('A device that breaks at the fifth connection', () => {
  it('H263 H264 does so once: the strike is kept, logged and counted at once, and holds over a restart and eight weeks', async () => {
    const clock = stillClock()
    const fragile = await startFragile(clock)
    const { device } = fragile
    const first = await startSidecar({ clock, device })
    const token = await first.token()
    const strikes = (kind: string) => first.metric('postern_upstream_strikes_total', { kind })
    let asks = true
    const client = async (): Promise<void> => {
      while (asks) await first.request({ token })
    }
    const clients = Array.from({ length: 8 }, client)
    await expect.poll(passing([first], () => strikes('broke'))).toBe(1)
    await fragile.away
    expect(await first.metric('postern_upstream_limit')).toBe(4)
    const told = first.logLines().filter((line) => line.includes('broke the device'))
    expect(told).toHaveLength(1)
    expect(told[0]).toContain('"level":40')
    expect(told[0]).toContain('"limit":4')
    expect(told[0]).toContain('postern retry')
    const file = readFileSync(join(first.directory, 'state', 'ceilings.json'), 'utf8')
    expect(JSON.parse(file)).toMatchObject({ '': { wall: { places: 4 } } })
    expect(first.overview.condition().services[0]?.ceiling).toMatchObject({ kind: 'broke', limit: 4 })
    asks = false
    await passWhile([first], Promise.all(clients))
    await first.stop()

    // Weeks change nothing.
    await clock.leap(8 * 168 * HOUR)
    const again = await startFragile(clock, Number(new URL(device.url).port))
    const second = await startSidecar({
      clock,
      device: again.device,
      config: { state_dir: join(first.directory, 'state') },
    })
    const other = await second.token()
    for (let round = 0; round < 40; round += 1)
      await passWhile(
        [second],
        Promise.all(Array.from({ length: 8 }, () => second.request({ token: other }))),
      )
    expect([again.most, again.away]).toEqual([4, undefined])
  })
})

const DEVICE = 'http://192.0.2.7 1-64'

describe('The ceilings', () => {
  const fail = (error: unknown): void => expect(error).toBeUndefined()

  it('H200 H264 survive a restart, with the time of the next attempt', () => {
    const folder = temporaryDirectory()
    const [clock, later] = [stillClock(), stillClock()]
    const guess = { places: 4, until: clock.monotonic() + HOUR, wait: HOUR }
    const wall = { places: 7, doubted: true } as const
    openCeilings(folder, clock, fail).keep('/video', DEVICE, { guess, wall })
    later.advance(60_000)
    const found = openCeilings(folder, later, fail).of('/video', DEVICE)
    expect(found).toMatchObject({ guess: { places: 4, wait: HOUR }, wall })
    const left = (found.guess?.until ?? 0) - later.monotonic()
    expect(Math.abs(left - (HOUR - 60_000))).toBeLessThan(5_000)
    expect(openCeilings(folder, later, fail).of('', DEVICE)).toEqual({})
  })

  it('H264 are those of one device: another address or other bounds begin anew', () => {
    const folder = temporaryDirectory()
    const wall = { places: 4 }
    openCeilings(folder, stillClock(), fail).keep('', DEVICE, { wall })
    const read = openCeilings(folder, stillClock(), fail)
    expect(read.of('', DEVICE)).toEqual({ wall })
    expect(read.of('', 'http://192.0.2.8 1-64')).toEqual({})
  })

  it('H287 have the wall of a fleet, and the id of a sidecar, over a restart; alone, the wall stays', () => {
    const folder = temporaryDirectory()
    const clock = stillClock()
    const first = openCeilings(folder, clock, fail)
    const id = first.sidecar()
    expect(openCeilings(folder, clock, fail).sidecar()).toBe(id)
    const wall = { places: 4, fleet: 7 }
    first.keep('', DEVICE, { wall })
    const again = openCeilings(folder, clock, fail)
    expect(again.sidecar()).toBe(id)
    expect(again.of('', DEVICE)).toEqual({ wall })
    expect(withoutFleet(again.of('', DEVICE))).toEqual({ wall: { places: 4 } })
    expect(openCeilings(temporaryDirectory(), clock, fail).sidecar()).not.toBe(id)
  })

  it('H200 are gone without a state folder, and with a file that is damaged', () => {
    const failures: unknown[] = []
    const folder = temporaryDirectory()
    const open = (path: string) => openCeilings(path, stillClock(), (error) => failures.push(error))
    expect(open(join(folder, 'none')).of('', DEVICE)).toEqual({})
    expect(failures).toEqual([])
    writeFileSync(join(folder, 'ceilings.json'), '{"": {"guess": {"places": -1}}, "/a/": 7')
    const ceilings = open(folder)
    expect(ceilings.of('', DEVICE)).toEqual({})
    expect(failures).toHaveLength(1)
    ceilings.keep('', DEVICE, { guess: { places: 2, until: 0, wait: HOUR } })
    expect(JSON.parse(readFileSync(join(folder, 'ceilings.json'), 'utf8'))).toMatchObject({
      '': { device: DEVICE, guess: { places: 2 } },
    })
    ceilings.keep('', DEVICE, {})
    expect(readFileSync(join(folder, 'ceilings.json'), 'utf8')).toBe('{}')
  })

  it.each([
    { wall: { places: 0 } },
    { wall: { places: '4' } },
    { guess: { places: 4, until: 1, wait: 0 } },
    { guess: null, wall: 7 },
  ])('H264 an entry of the file that is none is left out: %j', (entry) => {
    const folder = temporaryDirectory()
    writeFileSync(join(folder, 'ceilings.json'), JSON.stringify({ '': { device: DEVICE, ...entry } }))
    expect(openCeilings(folder, stillClock(), fail).of('', DEVICE)).toEqual({})
  })

  it('H264 a wall with more or other parts than it has is a wall', () => {
    const folder = temporaryDirectory()
    const wall = { kind: 'broke', places: 4, until: 5, doubted: 1, fleet: { sum: 0 } }
    writeFileSync(join(folder, 'ceilings.json'), JSON.stringify({ '': { device: DEVICE, wall } }))
    expect(openCeilings(folder, stillClock(), fail).of('', DEVICE)).toEqual({ wall: { places: 4 } })
  })
})
