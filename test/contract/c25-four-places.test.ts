import { expect, it } from 'vitest'
import { passing } from '../fleet/passing.ts'
import { startHoldingDevice } from '../support/device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import { waitForQueued } from '../support/waiting.ts'

describeTransports('C25 Four places at the device', (transport) => {
  async function start(paths: readonly string[] = []) {
    const { device, held } = await startHoldingDevice()
    const routes = Object.fromEntries(paths.map((path) => [path, { url: device.url }]))
    // The default.
    const config = { upstream: { max_in_flight: undefined, queue: undefined, routes } }
    const sidecar = await startSidecar({ transport, device, config })
    const token = await sidecar.token()
    let answered = 0
    return {
      device,
      sidecar,
      ask: async (path: string) => (await sidecar.request({ path, token })).status,
      /** Answers all requests for this path that are at the device and wait. */
      answer(path: string): void {
        for (const [index, { target }] of device.requests.entries()) {
          const response = held[index]
          if (target.split('?')[0] !== path || response === undefined || response.writableEnded) continue
          response.end('done')
          answered += 1
        }
      },
      /** How many requests wait at the device. */
      atDevice: () => device.requests.length - answered,
    }
  }

  it('C25 thirty files of a page that take a second each all come: their client gets places, one after the other', async () => {
    const { device, sidecar, ask, answer } = await start()
    const responses = Array.from({ length: 30 }, () => ask('/file'))
    await waitForQueued(sidecar, 28)
    for (let rounds = 0; rounds < 30 && device.requests.length < 30; rounds += 1) {
      const { length } = device.requests
      await sidecar.clock.advance(1_000)
      answer('/file')
      await device.waitForRequests(length + 1)
    }
    answer('/file')
    expect(await Promise.all(responses)).toEqual(Array(30).fill(200))
  })

  it('C25 no more than four requests are at the device, however long it is silent', async () => {
    const { device, sidecar, ask, answer, atDevice } = await start()
    const responses = Array.from({ length: 12 }, () => ask('/hangs'))
    await expect.poll(passing([sidecar], atDevice)).toBe(4)
    for (let rounds = 0; rounds < 8; rounds += 1) await sidecar.clock.advance(500)
    expect(await sidecar.metric('postern_upstream_limit')).toBe(4)
    for (let answered = 4; answered < 12; answered += 4) {
      answer('/hangs')
      await expect.poll(passing([sidecar], () => device.requests.length)).toBe(answered + 4)
      expect(atDevice()).toBe(4)
    }
    answer('/hangs')
    expect(await Promise.all(responses)).toEqual(Array(12).fill(200))
  })

  it('C25 two routes to one device share its places, and its connections', async () => {
    const { device, sidecar, ask, answer, atDevice } = await start(['/b'])
    const requests = Array.from({ length: 12 }, (_, index) => ask(index % 2 === 0 ? '/' : '/b'))
    for (let answered = 0; answered < 12; ) {
      await expect.poll(passing([sidecar], atDevice)).toBeGreaterThan(0)
      expect(atDevice()).toBeLessThanOrEqual(4)
      answered += atDevice()
      answer('/')
      answer('/b')
    }
    expect(await Promise.all(requests)).toEqual(Array(12).fill(200))
    expect(await sidecar.metric('postern_upstream_limit')).toBeLessThanOrEqual(4)
    await expect.poll(() => device.openConnections).toBeLessThanOrEqual(4)
    // Also where all idle connections are those of one route.
    for (const path of ['/', '/b', '/']) {
      const { length } = device.requests
      const all = Array.from({ length: 4 }, () => ask(path))
      await expect.poll(passing([sidecar], () => device.requests.length)).toBe(length + 4)
      await expect.poll(() => device.openConnections).toBeLessThanOrEqual(4)
      answer(path)
      expect(await Promise.all(all)).toEqual(Array(4).fill(200))
    }
  })

  it('C25 four long polls leave places to twelve other requests', async () => {
    const { device, sidecar, ask, answer, atDevice } = await start()
    const first = ask('/poll')
    await device.waitForRequests(1)
    await sidecar.clock.advance(2_001)
    answer('/poll')
    expect(await first).toBe(200)

    const polls = Array.from({ length: 4 }, (_, index) => ask(`/poll?since=${index}`))
    await waitForQueued(sidecar, 3)
    for (let round = 0; round < 12; round += 1) {
      const { length } = device.requests
      const other = ask('/')
      await expect.poll(passing([sidecar], () => device.requests.length)).toBe(length + 1)
      expect(atDevice()).toBeLessThanOrEqual(4)
      await sidecar.clock.advance(400)
      answer('/')
      expect(await other).toBe(200)
    }
    // None comes any more, so the polls get all places.
    await expect.poll(passing([sidecar], () => device.requests.length)).toBe(17)
    answer('/poll')
    expect(await Promise.all(polls)).toEqual(Array(4).fill(200))
  })
})
