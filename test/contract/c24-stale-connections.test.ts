import { expect, it } from 'vitest'
import { makeCertificate } from '../support/certificate.ts'
import { startDevice, startRawDevice } from '../support/device.ts'
import { expectError } from '../support/errors.ts'
import { nextRequest, OK, startScripted } from '../support/scripted.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

describeTransports('C24', (transport) => {
  it('C24 a stale keep-alive connection costs a GET nothing: it is sent once more, on another', async () => {
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

  it('C24 only once: a device that drops the second connection too is a 500', async () => {
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
    expectError(await sidecar.request({ token }), 500, 'upstream_unavailable')
    expect(device.peers).toHaveLength(2)
  })

  it.each(['POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND'])(
    'C24 a request that is not safe to repeat is never sent twice: %s',
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
  ])('C24 nor is a GET that carries a body: %s', async (_name, body) => {
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

  it('C24 a GET that got a single byte of an answer is not sent again', async () => {
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

  it('C24 a device that falls silent on a connection used before is slow, not stale: asked once, one deadline', async () => {
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
    const sidecar = await startSidecar({
      transport,
      device,
      config: { upstream: { response_timeout: '1s' } },
    })
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).text).toBe('ok')
    expectError(await sidecar.request({ token }), 500, 'upstream_timeout')
    expect(asked).toBe(1)
  })

  it('C24 a device that cannot be connected to is tried once for each request', async () => {
    const device = await startDevice(undefined, { tls: await makeCertificate() })
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    for (let i = 1; i <= 3; i += 1) {
      expectError(await sidecar.request({ token }), 500, 'upstream_unavailable')
      expect(device.connections).toBe(i)
    }
  })

  it('C24 idle connections that the device closes are not used again, whatever the method', async () => {
    const device = await startDevice()
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    for (let i = 0; i < 3; i += 1) {
      expect((await sidecar.request({ token, body: 'x' })).status).toBe(200)
      device.closeConnections()
      await device.waitForOpenConnections(0)
      // Whatever was in the air when the device saw its side close has been read by now.
      await sidecar.metrics()
    }
    expect(device.requests).toHaveLength(3)
  })
})
