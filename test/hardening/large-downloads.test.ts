import { expect, it } from 'vitest'
import { startDevice } from '../support/device.ts'
import { BrokenTransfer } from '../support/message.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

const SIZE = 5 * 1024 ** 2

/** A body that no other request gets, and in which no two blocks are the same. */
function bodyOf(path: string): Buffer {
  const body = Buffer.alloc(SIZE, `${path} `)
  for (let at = 0; at < SIZE; at += 1024) body.writeUInt32BE(at, at)
  return body
}

describeTransports('Large downloads', (transport) => {
  it.each(['with a length', 'in chunks'])(
    'C21 many at once arrive whole, whoever reads slowly or leaves meanwhile, and none has bytes of another (%s)',
    async (framing) => {
      const device = await startDevice((request, response) => {
        const body = bodyOf(request.url ?? '')
        response.writeHead(200, framing === 'in chunks' ? {} : { 'Content-Length': SIZE })
        response.end(body)
      })
      const sidecar = await startSidecar({
        transport,
        device,
        config: { upstream: { max_in_flight: 32 } },
      })
      const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
      const downloads = await Promise.all(
        Array.from({ length: 15 }, async (_, at) => {
          const connection = await sidecar.connect()
          const exchange = connection.start({ path: `/file-${at}`, fields, timeout: 60_000 })
          await exchange.head
          if (at % 3 === 1) exchange.pause()
          return { at, exchange }
        }),
      )
      for (const { at, exchange } of downloads) if (at % 3 === 2) exchange.abort()
      await Promise.all(
        downloads.map(async ({ at, exchange }) => {
          if (at % 3 === 1) exchange.resume()
          const response = await exchange.response.catch((error: unknown) => {
            if (error instanceof BrokenTransfer) return error.partial
            throw error
          })
          const body = response?.body ?? Buffer.alloc(0)
          if (at % 3 < 2) expect(body).toHaveLength(SIZE)
          expect(body.equals(bodyOf(`/file-${at}`).subarray(0, body.length))).toBe(true)
        }),
      )
    },
  )
})
