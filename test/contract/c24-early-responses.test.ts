import { expect, it } from 'vitest'
import { brokenBy, startRawDevice } from '../support/raw-device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports, rowsOver } from '../support/transports.ts'
import { sendThenRead } from './blocking-client.ts'
import { answering, failures, faultyLines, withEveryParser } from './faulty-device.ts'

/** Bytes. The sidecar may take a whole 2 MiB before the response comes: then nothing is cut off, and nothing is tested. */
const UPLOAD = 4 << 20

/** The response, the reset and the next piece of the upload come in every order in this many tries. */
const TRIES = 8

describeTransports(
  'C24 A device responds to an upload early and closes without reading on:',
  (transport) => {
    // Through TLS each parser and each framing once: how a body is framed for the device does not know of TLS.
    const rows: readonly (readonly [parser: string, chunked: boolean])[] = [
      ['strict', false],
      ['tolerant', true],
      ...(transport === 'http1' ? [['strict', true] as const, ['tolerant', false] as const] : []),
    ]
    it.each(rows)(
      'C24 its response reaches the client every time (parser %s, chunked %s)',
      async (parser, chunked) => {
        const device = await startRawDevice(async (peer) => {
          await peer.waitFor('\r\n\r\n')
          peer.socket.pause()
          peer.write('HTTP/1.1 413 Content Too Large\r\nContent-Length: 8\r\n\r\ntoo much')
          peer.socket.destroy()
        })
        const sidecar = await startSidecar({ transport, device, config: { upstream: { parser } } })
        const head = `POST /x HTTP/1.1\r\nHost: device\r\nAuthorization: Bearer ${await sidecar.token()}`
        const responses: string[] = []
        for (let i = 0; i < TRIES; i += 1) {
          const { status, text } = await sendThenRead(sidecar.url, head, { size: UPLOAD, chunked })
          responses.push(`${status} ${text}`)
        }
        expect(responses).toEqual(Array(TRIES).fill('413 too much'))
        expect(await sidecar.metric('postern_upstream_errors_total')).toBe(0)
      },
    )

    it.each(rowsOver(transport, ['strict', 'tolerant']))(
      'C24 a response without a length that ends with a reset is a broken transfer (parser %s)',
      async (parser) => {
        const device = await startRawDevice(async (peer) => {
          await peer.waitFor('\r\n\r\n')
          peer.socket.pause()
          peer.write('HTTP/1.1 413 Content Too Large\r\nConnection: close\r\n\r\nonly this')
          peer.reset()
        })
        // The upload is open: collected, it would reach the device only after its first MiB.
        const upstream = { parser, buffer_uploads: 'off' }
        const sidecar = await startSidecar({ transport, device, config: { upstream } })
        const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
        for (let i = 0; i < TRIES; i += 1) {
          const exchange = (await sidecar.connect()).start({ method: 'POST', path: '/x', fields, open: true })
          let isOver = false
          const broken = brokenBy(exchange).finally(() => {
            isOver = true
          })
          while (!isOver) {
            exchange.write('x'.repeat(1000))
            // The head of an upload is sent a moment before the body.
            await sidecar.clock.advance(1)
            await sidecar.metrics()
          }
          expect((await broken).partial?.status).toBe(413)
        }
      },
    )
  },
  ['http1', 'tls'],
)

describeTransports('C24 A device breaks off an early response to an upload:', (transport) => {
  it('C24 the transfer is broken for the client, and the place at the device is free', async () => {
    const device = await startRawDevice(async (peer) => {
      await peer.waitFor('\r\n\r\n')
      peer.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this')
      peer.socket.end()
    })
    const sidecar = await startSidecar({ transport, device, config: { upstream: { buffer_uploads: 'off' } } })
    const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
    const exchange = (await sidecar.connect()).start({ method: 'POST', path: '/x', fields, open: true })
    exchange.write('x')
    await brokenBy(exchange)
    await expect.poll(() => sidecar.metric('postern_upstream_in_flight')).toBe(0)
  })
})

it('C24 H56 a response before the end of the upload reaches the client', async () => {
  const early = 'HTTP/1.1 413 Content Too Large\r\nContent-Length: 8\r\n\r\ntoo much'
  await withEveryParser(answering(early), async (setup) => {
    const connection = await setup.sidecar.connect()
    const fields = ['Authorization', `Bearer ${setup.token}`, 'Content-Length', '1000']
    const exchange = connection.start({
      method: 'POST',
      path: '/faulty',
      fields,
      open: true,
    })
    exchange.write('some of it')
    expect(await exchange.response).toMatchObject({ status: 413, text: 'too much' })
    connection.close()
    expect(await failures(setup)).toEqual({})
    await expect.poll(() => faultyLines(setup)).toMatchObject([{ status: 413, out: 8 }])
  })
})
