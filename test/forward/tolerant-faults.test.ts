import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { failureOf } from '../../src/device/failure.ts'
import { makeCertificate } from '../support/certificate.ts'
import { connect, send } from '../support/client.ts'
import { startDevice } from '../support/device.ts'
import { BrokenTransfer } from '../support/message.ts'
import { startCannedDevice, startRawDevice } from '../support/raw-device.ts'
import { type Front, startFront } from './tolerant-front.ts'

/** @param meanwhile what happens before the response of the front */
async function failureOfRequestTo(
  device: { url: string },
  meanwhile: (front: Front) => Promise<void> = async () => {},
): Promise<string> {
  const front = await startFront(device)
  const response = send({ transport: 'http1', url: front.url })
  await meanwhile(front)
  expect((await response).status).toBe(502)
  const end = await front.waitForEnd()
  return end.kind === 'failed' ? failureOf(end.error) : end.kind
}

/** The same, at a deadline of 2 s, and not a millisecond earlier. */
const failureInTime = (device: { url: string }, begun: () => Promise<unknown>): Promise<string> =>
  failureOfRequestTo(device, async ({ clock, ends }) => {
    await begun()
    await clock.advance(1_999)
    expect(ends).toEqual([])
    await clock.advance(1)
  })

describe('the tolerant parser', () => {
  it.each([
    ['its Content-Length is reached', 'HTTP/1.1 200 OK\nContent-Length: 20\n\nshort'],
    ['its last chunk', 'HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nshort\n'],
  ])('C24 breaks the transfer of a body that ends before %s', async (_name, bytes) => {
    const front = await startFront(await startCannedDevice(bytes))
    const broken = await send({ transport: 'http1', url: front.url }).catch((error: unknown) => error)
    expect(broken).toBeInstanceOf(BrokenTransfer)
  })

  it('C24 breaks the transfer at an invalid chunk', async () => {
    const device = await startRawDevice(async (peer) => {
      await peer.waitFor('\r\n\r\n')
      peer.write('HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nwhole\n')
      await peer.waitFor('go on')
      peer.end('0x5\nwrong\n0\n\n')
    })
    const front = await startFront(device)
    const connection = await connect({ transport: 'http1', url: front.url })
    const exchange = connection.start({ method: 'POST', open: true, body: 'ready' })
    await exchange.waitFor('whole')
    exchange.write('go on')
    // The head of an upload of unknown length goes ahead of it.
    await front.clock.advance(20)
    await expect(exchange.response).rejects.toBeInstanceOf(BrokenTransfer)
    const end = await front.waitForEnd()
    expect(end.kind === 'broken' && failureOf(end.error)).toBe('http_protocol_error')
  })

  it('C24 breaks the transfer at a reset, which never completes a body without a length', async () => {
    const device = await startRawDevice(async (peer) => {
      await peer.waitFor('\r\n\r\n')
      peer.write('HTTP/1.0 200 OK\n\nhalf of it')
    })
    const front = await startFront(device)
    const exchange = (await connect({ transport: 'http1', url: front.url })).start({})
    await exchange.waitFor('half of it')
    device.peers[0]?.reset()
    await expect(exchange.response).rejects.toBeInstanceOf(BrokenTransfer)
    expect((await front.waitForEnd()).kind).toBe('broken')
  })

  it('C24 reports a device that is down, closes the connection, or never responds', async () => {
    const device = await startDevice(() => {})
    expect(await failureInTime(device, () => device.waitForRequests(1))).toBe('http_response_timeout')
    await device.stop()
    expect(await failureOfRequestTo(device)).toBe('connection_refused')
    expect(await failureOfRequestTo(await startCannedDevice(''))).toBe('connection_terminated')
  })

  it('C24 reports a device with an untrusted certificate', async () => {
    const device = await startDevice(undefined, { tls: await makeCertificate() })
    expect(await failureOfRequestTo(device)).toBe('tls_certificate_error')
  })

  it('C24 reports a device that accepts connections and sends no TLS record', async () => {
    const mute = await startRawDevice(() => {})
    const url = mute.url.replace('http:', 'https:')
    expect(await failureInTime({ url }, () => mute.waitForConnection(1))).toBe('connection_timeout')
  })

  it('C24 breaks the transfer of a device that stalls within a body', async () => {
    const device = await startRawDevice(async (peer) => {
      await peer.waitFor('\r\n\r\n')
      peer.write('HTTP/1.1 200 OK\nContent-Length: 20\n\nstalls')
    })
    const front = await startFront(device)
    const exchange = (await connect({ transport: 'http1', url: front.url })).start({})
    await exchange.waitFor('stalls')
    await front.clock.advance(1_999)
    expect(front.ends).toEqual([])
    await front.clock.advance(1)
    await expect(exchange.response).rejects.toBeInstanceOf(BrokenTransfer)
    const end = await front.waitForEnd()
    expect(end.kind === 'broken' && failureOf(end.error)).toBe('http_response_incomplete')
  })

  it.each(['before the head', 'within the body'])(
    'C24 closes the connection to the device when the client leaves %s',
    async (when) => {
      const device = await startRawDevice(async (peer) => {
        await peer.waitFor('\r\n\r\n')
        if (when === 'within the body') peer.write('HTTP/1.1 200 OK\nContent-Length: 20\n\nhalf')
      })
      const front = await startFront(device)
      const connection = await connect({ transport: 'http1', url: front.url })
      const exchange = connection.start({})
      const peer = await device.waitForConnection(1)
      if (when === 'within the body') await exchange.waitFor('half')
      else await peer.waitFor('\r\n\r\n')
      const left = once(peer.socket, 'end')
      exchange.abort()
      await left
      expect((await front.waitForEnd()).kind).toBe('abandoned')
    },
  )
})
