import { expect, it } from 'vitest'
import { startDevice } from '../support/device.ts'
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
