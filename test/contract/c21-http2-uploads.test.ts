import { describe, expect, it } from 'vitest'
import { closeLater } from '../support/cleanup.ts'
import { passUntil, stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { FLAG, FRAME, frame, headers, requestFields } from '../support/http2-frames.ts'
import { rawSession } from '../support/http2-session.ts'
import { startSidecar } from '../support/sidecar.ts'

const lastData = (text: string): Buffer => frame(FRAME.data, FLAG.endStream, 1, Buffer.from(text))

it('C26 a client whose uploads are refused one after the other, each with a full window under way, keeps its connection', async () => {
  const sidecar = await startSidecar({ transport: 'h2' })
  const session = await rawSession(sidecar.url)
  const post = requestFields([], { ':method': 'POST' })
  for (let id = 1; id < 80; id += 2) {
    session.send(headers(id, post, false))
    expect(await session.status(id)).toBe(401)
    // The refusal was on its way when the client sent it.
    session.send(...Array.from({ length: 4 }, () => frame(FRAME.data, 0, id, Buffer.alloc(16_000))))
  }
  session.send(headers(81, requestFields()))
  expect(await session.status(81)).toBe(401)
  expect(await sidecar.metric('postern_connections_cut_total', { reason: 'tiny_frames' })).toBe(0)
  session.raw.end()
})

describe.each(['off', '1MiB'])('An upload over HTTP/2 with buffer_uploads: %s', (buffer_uploads) => {
  async function begin() {
    const sidecar = await startSidecar({ transport: 'h2', config: { upstream: { buffer_uploads } } })
    const authorization = ['authorization', `Bearer ${await sidecar.token()}`]
    const session = await rawSession(sidecar.url)
    closeLater(() => {
      session.raw.socket.destroy()
    })
    const head = headers(1, requestFields(authorization, { ':method': 'PUT', ':path': '/upload' }), false)
    return { sidecar, session, head }
  }

  it.each([
    ['empty', ''],
    ['short', 'hello'],
  ])('that is %s and complete before it is read reaches the device', async (_, body) => {
    const { sidecar, session, head } = await begin()
    // One write: the end arrives in the same turn of the event loop as the head, and Node reports the end of an empty body unasked.
    session.send(head, lastData(body))
    // A head goes 20 ms ahead of a body of unknown length.
    expect(await passUntil(sidecar.clock, session.status(1))).toBe(200)
    expect(sidecar.device.requests.map((request) => request.body?.toString())).toEqual([body])
  })

  it('that is empty and ends while its first bytes are awaited reaches the device', async () => {
    const { sidecar, session, head } = await begin()
    session.send(head)
    await expect.poll(() => sidecar.metric('postern_connections')).toBe(1)
    session.send(lastData(''))
    expect(await passUntil(sidecar.clock, session.status(1))).toBe(200)
  })

  it('beside others of its connection reaches a device that reads slowly', async () => {
    const ofDevice = stillClock()
    const device = await startDevice(async (request, response) => {
      let length = 0
      for await (const chunk of request) {
        length += (chunk as Buffer).length // Node's requests yield buffers
        await ofDevice.pause(10)
      }
      response.end(String(length))
    })
    const upstream = { buffer_uploads, max_in_flight: 32 }
    const sidecar = await startSidecar({ transport: 'h2', device, config: { upstream } })
    const token = ['Authorization', `Bearer ${await sidecar.token()}`]
    const connection = await sidecar.connect()
    const piece = Buffer.alloc(350_000, 'x')
    const uploads = Array.from({ length: 16 }, () =>
      connection.send({ method: 'PUT', fields: token, body: [piece, piece] }),
    )
    const others = Array.from({ length: 8 }, () => connection.send({ fields: token }))
    await device.waitForRequests(24)
    await sidecar.metrics()
    // The heads of the uploads go so far ahead of their bodies.
    await sidecar.clock.advance(20)
    const responses = await passUntil(ofDevice, Promise.all([...uploads, ...others]))
    const texts = responses.map(({ text }) => text)
    expect(texts).toEqual([...Array<string>(16).fill('700000'), ...Array<string>(8).fill('0')])
  })
})
