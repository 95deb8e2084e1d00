import { expect, it } from 'vitest'
import { passing } from '../fleet/passing.ts'
import { startDevice, startHoldingDevice } from '../support/device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import { waitForQueued } from '../support/waiting.ts'

/** What becomes of the response to a long poll. */
type PollEnd = 'is late' | 'is given up' | 'never comes'

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
      token,
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
      /** The device has nothing more to answer for this path. */
      forget(path: string): void {
        for (const [index, { target }] of device.requests.entries())
          if (target === path && held[index]?.writableEnded === false) {
            held[index]?.destroy()
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

  /** Asks the main service and the route `/b` 16 times, and expects four of these requests at the device. */
  async function expectFour({ sidecar, ask, answer, atDevice }: Awaited<ReturnType<typeof start>>) {
    const requests = Array.from({ length: 16 }, (_, index) => ask(index % 2 === 0 ? '/' : '/b'))
    await expect.poll(passing([sidecar], atDevice)).toBe(4)
    await sidecar.clock.advance(4_000)
    expect(atDevice()).toBe(4)
    for (let rounds = 0; rounds < 16 && atDevice() > 0; rounds += 1) {
      answer('/')
      answer('/b')
      await passing([sidecar], atDevice)()
      expect(atDevice()).toBeLessThanOrEqual(4)
    }
    for (const request of requests) void request.catch(() => {})
  }

  it('C25 a route to the device by another name of this machine shares its places', async () => {
    const site = await start()
    const { port } = new URL(site.device.url)
    await site.sidecar.reload({ upstream: { routes: { '/b': { url: `http://localhost:${port}` } } } })
    await expectFour(site)
  })

  it('C25 a service that moves to the address of a route shares its places', async () => {
    const site = await start(['/b'])
    await site.sidecar.reload({ upstream: { url: (await startDevice()).url } })
    await site.sidecar.reload({ upstream: { url: site.device.url } })
    await expectFour(site)
  })

  it.each(['the main service comes back', 'a route comes'])(
    'C25 requests that are still at the device count when %s to its address',
    async (who) => {
      const { device, sidecar, ask, answer, atDevice } = await start()
      const before = Array.from({ length: 4 }, () => ask('/'))
      await expect.poll(passing([sidecar], atDevice)).toBe(4)
      const { url } = await startDevice()
      const routes = { '/b': { url: device.url } }
      if (who === 'a route comes') await sidecar.reload({ upstream: { url, routes } })
      else {
        await sidecar.reload({ upstream: { url } })
        await sidecar.reload({ upstream: { url: device.url } })
      }
      const after = Array.from({ length: 4 }, () => ask('/b'))
      await waitForQueued(sidecar, 4)
      expect([atDevice(), await sidecar.metric('postern_upstream_in_flight')]).toEqual([4, 4])
      answer('/')
      expect(await Promise.all(before)).toEqual(Array(4).fill(200))
      while (device.requests.length < 8) {
        await sidecar.clock.advance(100)
        answer('/b')
        await passing([sidecar], atDevice)()
      }
      answer('/b')
      expect(await Promise.all(after)).toEqual(Array(4).fill(200))
    },
  )

  it('C25 a route keeps its own number when the main service gets another one', async () => {
    const { device, sidecar, ask, answer, atDevice } = await start()
    const own = { '/b': { url: device.url, max_in_flight: 4 } }
    await sidecar.reload({ upstream: { max_in_flight: 4, routes: own } })
    await sidecar.reload({ upstream: { max_in_flight: 2, routes: own } })
    const requests = Array.from({ length: 6 }, () => ask('/b'))
    await expect.poll(passing([sidecar], atDevice)).toBe(4)
    const others = Array.from({ length: 3 }, () => ask('/'))
    await expect.poll(passing([sidecar], atDevice)).toBe(6)
    while (device.requests.length < 9) {
      answer('/')
      answer('/b')
      await passing([sidecar], atDevice)()
    }
    answer('/')
    answer('/b')
    expect(await Promise.all([...requests, ...others])).toEqual(Array(9).fill(200))
  })

  /** Asks once for `/poll`, whose response is late or does not come. */
  async function pollOnce(
    { device, sidecar, token, ask, answer, forget }: Awaited<ReturnType<typeof start>>,
    end: PollEnd,
  ): Promise<void> {
    if (end === 'is given up') {
      const poll = (await sidecar.connect()).start({
        path: '/poll',
        fields: ['Authorization', `Bearer ${token}`],
      })
      poll.response.catch(() => {})
      await device.waitForRequests(1)
      await sidecar.clock.advance(2_001)
      poll.abort()
    } else {
      const poll = ask('/poll')
      await device.waitForRequests(1)
      await sidecar.clock.advance(end === 'is late' ? 2_001 : 30_001)
      if (end === 'is late') answer('/poll')
      expect(await poll).toBe(end === 'is late' ? 200 : 500)
    }
    await expect.poll(() => sidecar.metric('postern_upstream_in_flight')).toBe(0)
    forget('/poll')
  }

  it.each(['is late', 'is given up', 'never comes'] as const)(
    'C25 four long polls leave places to twelve other requests, once the response to one %s',
    async (end) => {
      const site = await start()
      const { device, sidecar, ask, answer, atDevice } = site
      await pollOnce(site, end)

      const polls = Array.from({ length: 4 }, (_, index) => ask(`/poll?since=${index}`))
      await waitForQueued(sidecar, 3)
      const others = (): number => device.requests.filter(({ target }) => target === '/').length
      for (let round = 1; round <= 12; round += 1) {
        const other = ask('/')
        await expect.poll(passing([sidecar], others)).toBe(round)
        expect(atDevice()).toBeLessThanOrEqual(4)
        await sidecar.clock.advance(400)
        answer('/')
        expect(await other).toBe(200)
      }
      // None comes any more, so the polls get all places.
      await expect.poll(passing([sidecar], () => device.requests.length)).toBe(17)
      answer('/poll')
      expect(await Promise.all(polls)).toEqual(Array(4).fill(200))
    },
  )
})
