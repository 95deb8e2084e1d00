import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createConnections } from '../../src/device/connections.ts'
import { sendOwnRequest } from '../../src/device/own-request.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { nextRequest, OK, type RawDevice, startRawDevice } from '../support/raw-device.ts'
import { PATIENCE } from '../support/running-test.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeProtocols, rowsOver } from '../support/transports.ts'

const LATE = 'Content-Length: 4\r\n\r\nlate'
const CLOSING = `HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n${LATE}`
const OLD = `HTTP/1.0 408 Request Time-out\r\n${LATE}`
const KEEPING = `HTTP/1.1 408 Request Timeout\r\n${LATE}`

/** A device whose first connection answers one request, and this at the next one; the later connections say `ok`. */
async function startTimingOut(answer: string) {
  const seen: string[] = []
  const device = await startRawDevice(async (peer, number) => {
    for (let count = 1; ; count += 1) {
      const head = await nextRequest(peer)
      seen.push(head)
      if (number === 1 && count === 2) {
        peer.end(answer)
        return
      }
      peer.write(OK)
    }
  })
  return { device, seen }
}

describeProtocols('C24 The 408 of an idle connection', (transport) => {
  it.each(
    rowsOver(transport, [
      ['HTTP/1.1 with Connection: close', CLOSING],
      ['HTTP/1.0', OLD],
    ]),
  )('C24 is no response to the next request, which is sent again: %s', async (_name, answer) => {
    const { device, seen } = await startTimingOut(answer)
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).text).toBe('ok')
    const second = await sidecar.request({ token })
    expect([second.status, second.text]).toEqual([200, 'ok'])
    expect(seen).toHaveLength(3)
  })
})

// What is done with it does not depend on the client.
describe('C24 The 408 of an idle connection', () => {
  it.each(['POST', 'PUT', 'DELETE'])(
    'C24 is no response to a %s without a body, which is sent again',
    async (method) => {
      const { device, seen } = await startTimingOut(CLOSING)
      const sidecar = await startSidecar({ device })
      const token = await sidecar.token()
      expect((await sidecar.request({ token })).text).toBe('ok')
      expect((await sidecar.request({ token, method })).text).toBe('ok')
      expect(seen).toHaveLength(3)
    },
  )

  it('C24 is no response to an upload that was buffered, which is sent again whole', async () => {
    const bodies: string[] = []
    const device = await startRawDevice(async (peer, number) => {
      if (number === 1) {
        await nextRequest(peer)
        peer.write(OK)
      }
      bodies.push((await peer.waitFor('\r\n\r\nab')).split('\r\n\r\n')[1] ?? '')
      if (number === 1) peer.end(CLOSING)
      else peer.write(OK)
    })
    const sidecar = await startSidecar({ device })
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).text).toBe('ok')
    const upload = await sidecar.request({ token, method: 'POST', body: ['a', 'b'] })
    expect(upload.text).toBe('ok')
    expect(bodies).toEqual(['ab', 'ab'])
  })

  it('C19 C24 is the response where the body has streamed to the device', async () => {
    const { device, seen } = await startTimingOut(CLOSING)
    const sidecar = await startSidecar({ device })
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).text).toBe('ok')
    expect((await sidecar.request({ token, method: 'PUT', body: 'x' })).status).toBe(408)
    expect(seen).toHaveLength(2)
  })

  it.each([
    ['without Connection: close', KEEPING],
    ['after an interim response', `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${CLOSING}`],
  ])('C19 a 408 passes: %s', async (_name, answer) => {
    const { device, seen } = await startTimingOut(answer)
    const sidecar = await startSidecar({ device })
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).text).toBe('ok')
    const second = await sidecar.request({ token })
    expect([second.status, second.text]).toEqual([408, 'late'])
    expect(seen).toHaveLength(2)
  })

  it('C19 a 408 passes on a new connection', async () => {
    const device = await startRawDevice(async (peer) => {
      await nextRequest(peer)
      peer.end(CLOSING)
    })
    const sidecar = await startSidecar({ device })
    expect((await sidecar.request({ token: await sidecar.token() })).status).toBe(408)
    expect(device.peers).toHaveLength(1)
  })

  it('C24 closes the connection at once, also if the device sends no more of it', async () => {
    const device = await startRawDevice(async (peer, number) => {
      peer.socket.once('end', () => peer.end())
      await nextRequest(peer)
      peer.write(OK)
      await nextRequest(peer)
      peer.write(number === 1 ? CLOSING.replace('late', '') : OK)
    })
    const sidecar = await startSidecar({ device })
    const token = await sidecar.token()
    for (let i = 0; i < 2; i += 1) expect((await sidecar.request({ token })).text).toBe('ok')
    expect(device.peers).toHaveLength(2)
    await device.peers[0]?.closed
  })

  it('C24 a request is sent again once: the second 408 passes', async () => {
    const device = await startRawDevice(
      async (peer) => {
        await nextRequest(peer)
        peer.write(OK)
        await nextRequest(peer)
        peer.end(CLOSING)
      },
      async (peer) => {
        await nextRequest(peer)
        peer.end(CLOSING)
      },
    )
    const sidecar = await startSidecar({ device })
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).text).toBe('ok')
    expect((await sidecar.request({ token })).status).toBe(408)
    expect(device.peers).toHaveLength(2)
  })
})

describe('C24 What the 408 of an idle connection teaches', () => {
  async function startIdling(device: RawDevice) {
    const clock = stillClock()
    const sidecar = await startSidecar({ device, clock })
    const token = await sidecar.token()
    /** Sends a request after an idle time (ms), and returns the number of connections that the device has had. */
    const ask = async (idle: number): Promise<number> => {
      await clock.advance(idle)
      expect((await sidecar.request({ token })).text).toBe('ok')
      return device.peers.length
    }
    return { sidecar, clock, ask }
  }

  it('C24 H48 the idle time is learned where the 408 met a request', async () => {
    const { device, seen } = await startTimingOut(CLOSING)
    const { ask } = await startIdling(device)
    expect(await ask(0)).toBe(1)
    expect(await ask(900)).toBe(2)
    expect(seen).toHaveLength(3)
    expect(await ask(400)).toBe(2)
    expect(await ask(500)).toBe(3)
  })

  it('C24 H48 the idle time is learned where the 408 met none, and it is no stray response', async () => {
    const timeout = Promise.withResolvers<void>()
    const device = await startRawDevice(async (peer, number) => {
      if (number === 1) timeout.promise.then(() => peer.end(CLOSING))
      for (;;) {
        await nextRequest(peer)
        peer.write(OK)
      }
    })
    const { sidecar, clock, ask } = await startIdling(device)
    expect(await ask(0)).toBe(1)
    await clock.advance(900)
    timeout.resolve()
    await device.peers[0]?.closed
    expect(await ask(0)).toBe(2)
    expect(await ask(400)).toBe(2)
    expect(await ask(500)).toBe(3)
    expect(sidecar.logLines().filter((line) => line.includes('after its response'))).toEqual([])
  })
})

it('C24 the 408 of an idle connection is no response to a login or health check of Postern itself', async () => {
  const { device, seen } = await startTimingOut(CLOSING)
  const target = { origin: device.url, socketPath: undefined, reuse: 'shared', parser: 'auto' } as const
  const deadlines = { connect: PATIENCE, response: PATIENCE, idle: PATIENCE }
  const connections = createConnections(target, deadlines, stillClock())
  closeLater(() => connections.close())
  const login = { method: 'POST', target: '/login', fields: ['Host', 'd'], body: 'x' }
  expect((await sendOwnRequest(connections, login, false)).status).toBe(200)
  expect((await sendOwnRequest(connections, login, false)).status).toBe(200)
  expect(seen).toHaveLength(3)
})

it('C24 the 408 of an idle connection is no response to an upload whose body is kept for a login', async () => {
  const { device, seen } = await startTimingOut(CLOSING)
  const password = join(temporaryDirectory(), 'device-password')
  writeFileSync(password, 'secret\n')
  const auth = { kind: 'basic', user: 'admin', password: { file: password } }
  const sidecar = await startSidecar({ device, config: { upstream: { auth } } })
  const upload = { token: await sidecar.token(), method: 'PUT', body: 'x' }
  // The login is the first request of the connection.
  expect((await sidecar.request(upload)).status).toBe(200)
  expect(seen).toHaveLength(3)
})

describe('C24 Keep-Alive: max', () => {
  it.each([
    ['counts down', (count: number) => 3 - count, [1, 1, 1, 2]],
    ['stays the same', () => 2, [1, 1, 2, 2, 3]],
    ['is 0', () => 0, [1, 2]],
  ])(
    'C24 no connection carries more requests than the device announces: it %s',
    async (_how, max, expected) => {
      const device = await startRawDevice(async (peer) => {
        for (let count = 0; ; count += 1) {
          await nextRequest(peer)
          peer.write(OK.replace('\r\n\r\n', `\r\nKeep-Alive: timeout=60, max=${max(count)}\r\n\r\n`))
        }
      })
      const sidecar = await startSidecar({ device })
      const token = await sidecar.token()
      const connections: number[] = []
      for (const _count of expected) {
        expect((await sidecar.request({ token })).text).toBe('ok')
        connections.push(device.peers.length)
      }
      expect(connections).toEqual(expected)
    },
  )
})
