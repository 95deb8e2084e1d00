import { expect, it } from 'vitest'
import { makeCertificate } from '../support/certificate.ts'
import { passUntil } from '../support/clock.ts'
import { startDevice, startRawDevice } from '../support/device.ts'
import { expectError } from '../support/errors.ts'
import { nextRequest, OK, startScripted } from '../support/scripted.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

describeTransports('C24 Stale connections', (transport) => {
  it('C24 a GET that meets a stale keep-alive connection is repeated on another one', async () => {
    const device = await startScripted(
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

  it('C24 a GET is sent three times at most: a device that reads it and closes is 500', async () => {
    const device = await startScripted(
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
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).text).toBe('ok')
    const response = await passUntil(sidecar.clock, sidecar.request({ token }))
    expectError(response, 500, 'upstream_unavailable')
    // On the reused connection, and on two new ones.
    expect(device.peers).toHaveLength(3)
  })

  it.each(['POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND'])(
    'C24 a request that is not safe to repeat is never repeated: %s',
    async (method) => {
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
      expectError(await sidecar.request({ token, method }), 500, 'upstream_unavailable')
      expect(seen).toHaveLength(1)
    },
  )

  it.each([
    ['of known length', 'x'],
    ['in chunks', ['x', 'y']],
  ])('C24 a GET with a body is never repeated: %s', async (_name, body) => {
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
    expectError(await sidecar.request({ token, method: 'GET', body }), 500, 'upstream_unavailable')
    expect(seen).toHaveLength(1)
  })

  it('C24 a GET is not repeated after the first bytes of a response', async () => {
    const device = await startScripted(async (peer) => {
      await nextRequest(peer)
      peer.write(OK)
      await nextRequest(peer)
      peer.end('HTTP/1.1 200 OK\r\n')
    })
    const sidecar = await startSidecar({ transport, device, config: { upstream: { parser: 'strict' } } })
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).text).toBe('ok')
    expectError(await sidecar.request({ token }), 500, 'upstream_unavailable')
    expect(device.peers).toHaveLength(1)
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
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).text).toBe('ok')
    expectError(await passUntil(sidecar.clock, sidecar.request({ token })), 500, 'upstream_timeout')
    expect(asked).toBe(1)
  })

  it('C24 a request tries to connect to a device with an untrusted certificate only once', async () => {
    const device = await startDevice(undefined, { tls: await makeCertificate() })
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    // After the third failure the sidecar looks for the cause, on a connection of its own (H109).
    for (let i = 1; i <= 2; i += 1) {
      expectError(await sidecar.request({ token }), 500, 'upstream_unavailable')
      expect(device.connections).toBe(i)
    }
  })

  it('C24 an idle connection that the device has closed is not reused for a POST', async () => {
    const device = await startDevice()
    const sidecar = await startSidecar({ transport, device })
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
})
