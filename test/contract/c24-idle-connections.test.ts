import { expect, it } from 'vitest'
import { movableClock, stillClock } from '../support/clock.ts'
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
  /** Sends a request when the connection has been idle for so long; gives how many connections there were by then. */
  const after = async (idle: number, request: object): Promise<number> => {
    clock.advance(idle)
    expect((await sidecar.request({ token, ...request })).status).toBe(200)
    return device.connections
  }
  return { device, sidecar, clock, after }
}

it('C24 H48 what must not be repeated trusts an unknown device for a moment only, what may be repeated for longer', async () => {
  const { after } = await start()
  expect(await after(0, POST)).toBe(1)
  expect(await after(199, POST)).toBe(1)
  expect(await after(201, POST)).toBe(2)
  expect(await after(3000, GET)).toBe(2)
})

it('C24 H48 a connection that was idle for long and still good tells that others will be', async () => {
  const { after } = await start()
  await after(0, GET)
  await after(3000, GET)
  expect(await after(1400, POST)).toBe(1)
  expect(await after(1600, POST)).toBe(2)
})

it('C24 H48 the device closes an idle connection: from then on none is used again after half that time', async () => {
  const { device, sidecar, clock, after } = await start()
  await after(0, GET)
  clock.advance(900)
  device.closeConnections()
  await device.waitForOpenConnections(0)
  // Whatever was in the air when the device saw its side close has been read by now.
  await sidecar.metrics()
  expect(await after(0, GET)).toBe(2)
  expect(await after(400, POST)).toBe(2)
  expect(await after(500, GET)).toBe(3)
})

it.each(['in silence', 'by a reset'])(
  'C24 H48 a device that gives up idle connections %s costs no request after the first that met it',
  async (how) => {
    const device = await startScripted(async (peer) => {
      await nextRequest(peer)
      peer.write(OK)
      await nextRequest(peer)
      if (how === 'in silence') peer.end()
      else peer.reset()
    })
    const clock = movableClock()
    const sidecar = await startSidecar({ device, clock })
    const token = await sidecar.token()
    const ask = async (request: object): Promise<void> => {
      clock.advance(1000)
      expect((await sidecar.request({ token, ...request })).text).toBe('ok')
    }
    await ask(GET)
    // Met, and repeated on a second connection, which the device gives up as well.
    await ask(GET)
    for (let i = 3; i <= 6; i += 1) {
      await ask(POST)
      expect(device.peers).toHaveLength(i)
    }
  },
)

it('C24 H48 the time that the device names itself (Keep-Alive: timeout) is kept, less two seconds', async () => {
  const { after } = await start((_request, response) => {
    response.shouldKeepAlive = true
    response.writeHead(200, { 'Keep-Alive': 'timeout=2', Connection: 'keep-alive' }).end()
  })
  expect(await after(0, POST)).toBe(1)
  expect(await after(0, POST)).toBe(2)
  expect(await after(0, GET)).toBe(3)
})
