import { once } from 'node:events'
import http2 from 'node:http2'
import { expect, it } from 'vitest'
import { closeLater } from '../support/cleanup.ts'
import { startDevice } from '../support/device.ts'
import { headers, requestFields, SETTING, settings } from '../support/http2-frames.ts'
import { rawSession } from '../support/http2-session.ts'
import { clientContext } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

/** More than the kernel takes for a client that does not read. */
const SIZE = 24 * 1024 ** 2

/** Enough for the buffers of others, for clients that read at full speed. */
const LESS = 4 * 1024 ** 2

/** A body that no other request gets, and in which no two blocks are the same. */
function bodyOf(path: string): Buffer {
  const body = Buffer.alloc(path.startsWith('/fast') ? LESS : SIZE, `${path} `)
  for (let at = 0; at < body.length; at += 4096) body.writeUInt32BE(at, at)
  return body
}

describeTransports('Large downloads', (transport) => {
  // How the device frames a body, each transport has in one way.
  const framing = transport === 'tls' ? 'with a length' : 'in chunks'
  it(`C21 what waits for slow clients is theirs, whatever others download or leave meanwhile (${framing})`, async () => {
    const device = await startDevice((request, response) => {
      const body = bodyOf(request.url ?? '')
      response.writeHead(200, framing === 'in chunks' ? {} : { 'Content-Length': body.length })
      response.end(body)
    })
    const sidecar = await startSidecar({ transport, device, config: { upstream: { max_in_flight: 32 } } })
    const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
    const begin = async (path: string) => {
      const connection = await sidecar.connect()
      return { path, ...connection.start({ path, fields }) }
    }
    const slow = await Promise.all(['/slow-1', '/slow-2'].map(begin))
    await Promise.all(slow.map(({ head }) => head))
    for (const download of slow) download.pause()
    const left = await begin('/left')
    await left.waitFor('/left')
    left.abort()
    await left.response.catch(() => {})
    const fast = await Promise.all(['/fast-1', '/fast-2'].map(begin))
    await Promise.all(fast.map(({ response }) => response))
    for (const download of slow) download.resume()
    for (const { path, response } of [...fast, ...slow])
      expect((await response).body.equals(bodyOf(path)), path).toBe(true)
  })
})

/** Concurrent streams on the connection: as many as a connection may have. */
const STREAMS = 100
/** Downloads one after another on each of them. */
const EACH = 2

/** Downloads one response, and returns how many bytes of it arrived, whole or not. */
async function download(session: http2.ClientHttp2Session, token: string): Promise<number> {
  const stream = session.request({ ':path': '/', authorization: `Bearer ${token}` })
  let length = 0
  stream.on('error', () => {})
  stream.on('data', (chunk: Buffer) => {
    length += chunk.length
  })
  await once(stream, 'close')
  return length
}

/** Bytes of each of them. */
const LENGTH = 200_000

// The default window of HTTP/2, and one that never limits.
it.each([65_535, 16 << 20])(
  'C21 with a window of %i bytes, a client that reads gets a hundred concurrent responses whole, twice, with the usual bound on queued bytes',
  async (initialWindowSize) => {
    const body = Buffer.alloc(LENGTH)
    const device = await startDevice((_request, response) => response.end(body))
    const sidecar = await startSidecar({ transport: 'h2', device })
    const token = await sidecar.token()
    const session = http2.connect(sidecar.url, {
      secureContext: clientContext,
      rejectUnauthorized: false,
      settings: { initialWindowSize },
    })
    closeLater(() => session.destroy())
    const lengths = await Promise.all(
      Array.from({ length: STREAMS }, async () => {
        const each: number[] = []
        for (let i = 0; i < EACH; i += 1) each.push(await download(session, token))
        return each
      }),
    )
    expect(lengths.flat().filter((length) => length !== LENGTH)).toEqual([])
    expect(await sidecar.metric('postern_connections_cut_total')).toBe(0)
  },
)

it("maxStreams and maxQueuedBytes may both exceed Node's own limits for a session", async () => {
  const device = await startDevice((_request, response) => response.end(Buffer.alloc(60_000)))
  const config = { upstream: { max_in_flight: 300 } }
  const bounds = { listen: { maxStreams: 300, maxQueuedBytes: 64 * 1024 ** 2 } }
  const sidecar = await startSidecar({ transport: 'h2', device, config, bounds })
  const token = await sidecar.token()
  const session = await rawSession(sidecar.url, { opening: [settings([SETTING.initialWindowSize, 0])] })
  const get = requestFields(['authorization', `Bearer ${token}`])
  const ids = Array.from({ length: 300 }, (_, i) => 2 * i + 1)
  for (const id of ids) {
    session.send(headers(id, get))
    // One after another: each finds the responses to all earlier ones still unsent.
    expect(await session.status(id)).toBe(200)
  }
  expect(await sidecar.metric('postern_connections_cut_total')).toBe(0)
  session.raw.end()
})
