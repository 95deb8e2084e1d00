import { describe, expect, it } from 'vitest'
import { nextTurn } from '../../src/system/clock.ts'
import { makeCertificate } from '../support/certificate.ts'
import { passUntil, stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { expectError } from '../support/expectations.ts'
import type { Request } from '../support/message.ts'
import { nextRequest, OK, startRawDevice } from '../support/raw-device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports, type Transport } from '../support/transports.ts'
import { answering, failures, type Script, withEveryParser } from './faulty-device.ts'

/** The device answers a GET, and closes the connection at this request: it gets no other one. */
async function expectNotRepeated(transport: Transport, request: Request): Promise<void> {
  const seen: string[] = []
  const device = await startRawDevice(async (peer, number) => {
    if (number === 1) {
      await nextRequest(peer)
      peer.write(OK)
    }
    seen.push(await nextRequest(peer))
    peer.end()
  })
  const sidecar = await startSidecar({ transport, device })
  const token = await sidecar.token()
  expect((await sidecar.request({ token })).text).toBe('ok')
  expectError(await sidecar.request({ token, ...request }), 500, 'upstream_unavailable')
  expect(seen).toHaveLength(1)
}

describeTransports('C24 Stale connections', (transport) => {
  it('C24 a GET that meets a stale keep-alive connection is repeated on another one', async () => {
    const device = await startRawDevice(
      async (peer) => {
        await nextRequest(peer)
        peer.write(OK)
        await nextRequest(peer)
        peer.end()
      },
      async (peer) => {
        await nextRequest(peer)
        peer.write(OK)
      },
    )
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).text).toBe('ok')
    expect((await sidecar.request({ token })).text).toBe('ok')
    expect(device.peers).toHaveLength(2)
  })

  it('C24 a POST that meets one is never repeated', async () => {
    await expectNotRepeated(transport, { method: 'POST' })
  })
})

describe('C24 A device that closes a kept-alive connection', () => {
  it.each<Request>([
    ...['PUT', 'PATCH', 'DELETE', 'PROPFIND'].map((method) => ({ method })),
    { method: 'GET', body: 'x' },
    { method: 'GET', body: ['x', 'y'] },
  ])('C24 a request that is not safe to repeat is never repeated: %j', async (request) => {
    await expectNotRepeated('http1', request)
  })

  it('C24 H47 a GET is repeated on other connections, and a POST never is', async () => {
    // The connection serves one request and closes at the next.
    const script: Script = (peer) => peer.end()
    await withEveryParser(script, async (setup) => {
      const { sidecar, token, device } = setup
      for (const request of [{}, { body: 'once' }]) {
        expect((await sidecar.request({ token })).text).toBe('ok')
        const before = device.received.length
        // A connection that closes is opened again, after pauses, until `connect_timeout`.
        await passUntil(sidecar.clock, setup.ask(request))
        if ('body' in request) expect(device.received.length - before).toBe(1)
        else expect(device.received.length - before).toBeGreaterThan(1)
      }
      expect(await failures(setup)).toEqual({ connection_terminated: 2 })
    })
  })

  it('C24 H47 a GET is not repeated after the first byte of a response, also not after an unasked 100', async () => {
    for (const bytes of ['HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 200 OK\r\n', 'H']) {
      await withEveryParser(answering(bytes), async (setup) => {
        expect((await setup.sidecar.request({ token: setup.token })).text).toBe('ok')
        await setup.ask()
        expect(setup.device.received).toHaveLength(1)
      })
    }
  })

  it('C24 a GET is sent three times at most: a device that reads it and closes is 500', async () => {
    const device = await startRawDevice(
      async (peer) => {
        await nextRequest(peer)
        peer.write(OK)
        await nextRequest(peer)
        peer.end()
      },
      async (peer) => {
        await nextRequest(peer)
        peer.end()
      },
    )
    const sidecar = await startSidecar({ device })
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).text).toBe('ok')
    const response = await passUntil(sidecar.clock, sidecar.request({ token }))
    expectError(response, 500, 'upstream_unavailable')
    // On the reused connection, and on two new ones.
    expect(device.peers).toHaveLength(3)
  })

  it('C24 a GET is not repeated when a reused connection falls silent: it is 500 after one deadline', async () => {
    let asked = 0
    const device = await startRawDevice(async (peer, number) => {
      if (number === 1) {
        await nextRequest(peer)
        peer.write(OK)
      }
      for (;;) {
        await nextRequest(peer)
        asked += 1
      }
    })
    const sidecar = await startSidecar({ device })
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).text).toBe('ok')
    expectError(await passUntil(sidecar.clock, sidecar.request({ token })), 500, 'upstream_timeout')
    expect(asked).toBe(1)
  })

  it('C24 a request tries to connect to a device with an untrusted certificate only once', async () => {
    const device = await startDevice(undefined, { tls: await makeCertificate() })
    const sidecar = await startSidecar({ device })
    const token = await sidecar.token()
    // After the third failure the sidecar looks for the cause, on a connection of its own (H109).
    for (let i = 1; i <= 2; i += 1) {
      expectError(await sidecar.request({ token }), 500, 'upstream_unavailable')
      expect(device.connections).toBe(i)
    }
  })

  it('C24 an idle connection that the device has closed is not reused for a POST', async () => {
    const device = await startDevice()
    const sidecar = await startSidecar({ device })
    const token = await sidecar.token()
    for (let i = 0; i < 3; i += 1) {
      expect((await sidecar.request({ token, body: 'x' })).status).toBe(200)
      device.closeConnections()
      await device.waitForOpenConnections(0)
      // By now the sidecar has read the FIN that was on its way.
      await sidecar.metrics()
    }
    expect(device.requests).toHaveLength(3)
  })

  it('H48 no GET fails although it closes right after each response without notice', async () => {
    let closes = 0
    const turns = async (count: number): Promise<void> => {
      for (let turn = 0; turn < count; turn += 1) await nextTurn()
    }
    // The close and the next request meet in every order.
    const script: Script = async (peer) => {
      peer.write(OK)
      await turns(++closes % 3)
      peer.end()
    }
    await withEveryParser(script, async (setup) => {
      for (let i = 0; i < 25; i += 1) {
        expect((await setup.ask()).text).toBe('ok')
        await turns(i % 5)
      }
      expect(await failures(setup)).toEqual({})
    })
  })

  it('H48 no POST fails when it closes at its announced Keep-Alive timeout', async () => {
    const script: Script = async (peer, cue) => {
      peer.write(OK.replace('\r\n', '\r\nKeep-Alive: timeout=1\r\n'))
      await cue()
      peer.end()
    }
    await withEveryParser(script, async (setup) => {
      const { sidecar, device } = setup
      expect((await setup.ask({ body: 'x' })).text).toBe('ok')
      await sidecar.clock.advance(995)
      const asked = setup.ask({ body: 'x' })
      await expect.poll(() => device.received.length).toBe(2)
      await sidecar.clock.advance(5)
      device.proceed()
      expect((await asked).text).toBe('ok')
      expect(await failures(setup)).toEqual({})
      expect(device.received).toHaveLength(2)
    })
  })
})

const POST = { method: 'POST', body: 'x' } as const
const GET = { method: 'GET' } as const

async function startIdling(...options: Parameters<typeof startDevice>) {
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
  const { after } = await startIdling()
  expect(await after(0, POST)).toBe(1)
  expect(await after(199, POST)).toBe(1)
  expect(await after(201, POST)).toBe(2)
  expect(await after(3000, GET)).toBe(2)
})

it('C24 H48 a connection that was still good after 3 s idle lets a POST reuse one after 1.4 s', async () => {
  const { after } = await startIdling()
  await after(0, GET)
  await after(3000, GET)
  expect(await after(1400, POST)).toBe(1)
  expect(await after(1600, POST)).toBe(2)
})

it('C24 H48 after the device closes an idle connection, no connection is reused after half that idle time', async () => {
  const { device, sidecar, clock, after } = await startIdling()
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
    const device = await startRawDevice(async (peer) => {
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
  const { after } = await startIdling((_request, response) => {
    response.shouldKeepAlive = true
    response.writeHead(200, { 'Keep-Alive': 'timeout=2', Connection: 'keep-alive' }).end()
  })
  expect(await after(0, POST)).toBe(1)
  expect(await after(0, POST)).toBe(2)
  expect(await after(0, GET)).toBe(3)
})
