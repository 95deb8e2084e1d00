import { expect, it } from 'vitest'
import { stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { nextRequest, OK, startScripted } from '../support/scripted.ts'
import { startSidecar } from '../support/sidecar.ts'

const POST = { method: 'POST', body: 'x' } as const
const GET = { method: 'GET' } as const

async function start(...options: Parameters<typeof startDevice>) {
  const device = await startDevice(...options)
  const clock = stillClock()
  const sidecar = await startSidecar({ device, clock })
  const token = await sidecar.token()
  /** Sends a request after `idle` ms of idle time, and returns how many connections the device has had. */
  const after = async (idle: number, request: object): Promise<number> => {
    await clock.advance(idle)
    expect((await sidecar.request({ token, ...request })).status).toBe(200)
    return device.connections
  }
  return { device, sidecar, clock, after }
}

it('C24 H48 a POST reuses a connection to an unknown device for 200 ms at most, and a GET for longer', async () => {
  const { after } = await start()
  expect(await after(0, POST)).toBe(1)
  expect(await after(199, POST)).toBe(1)
  expect(await after(201, POST)).toBe(2)
  expect(await after(3000, GET)).toBe(2)
})

it('C24 H48 a connection that was still good after 3 s idle lets a POST reuse one after 1.4 s', async () => {
  const { after } = await start()
  await after(0, GET)
  await after(3000, GET)
  expect(await after(1400, POST)).toBe(1)
  expect(await after(1600, POST)).toBe(2)
})

it('C24 H48 after the device closes an idle connection, no connection is reused after half that idle time', async () => {
  const { device, sidecar, clock, after } = await start()
  await after(0, GET)
  await clock.advance(900)
  device.closeConnections()
  await device.waitForOpenConnections(0)
  // By now the sidecar has read the FIN that was on its way.
  await sidecar.metrics()
  expect(await after(0, GET)).toBe(2)
  expect(await after(400, POST)).toBe(2)
  expect(await after(500, GET)).toBe(3)
})

it.each(['with FIN', 'with RST'])(
  'C24 H48 a device that closes idle connections %s makes no later request fail',
  async (how) => {
    const device = await startScripted(async (peer) => {
      await nextRequest(peer)
      peer.write(OK)
      await nextRequest(peer)
      if (how === 'with FIN') peer.end()
      else peer.reset()
    })
    const clock = stillClock()
    const sidecar = await startSidecar({ device, clock })
    const token = await sidecar.token()
    const ask = async (request: object): Promise<void> => {
      await clock.advance(1000)
      expect((await sidecar.request({ token, ...request })).text).toBe('ok')
    }
    await ask(GET)
    // This GET meets the close and is repeated on a second connection, which the device closes as well.
    await ask(GET)
    for (let i = 3; i <= 6; i += 1) {
      await ask(POST)
      expect(device.peers).toHaveLength(i)
    }
  },
)

it("C24 H48 no connection is reused later than two seconds before the end of the device's Keep-Alive timeout", async () => {
  const { after } = await start((_request, response) => {
    response.shouldKeepAlive = true
    response.writeHead(200, { 'Keep-Alive': 'timeout=2', Connection: 'keep-alive' }).end()
  })
  expect(await after(0, POST)).toBe(1)
  expect(await after(0, POST)).toBe(2)
  expect(await after(0, GET)).toBe(3)
})
