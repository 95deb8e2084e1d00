import { expect, it } from 'vitest'
import { END_HEADERS, frame, PREFACE, packedFields, TYPES, uint32 } from '../support/http2-bytes.ts'
import { rawConnection } from '../support/raw.ts'
import { prepareSite, type Served } from './serve.ts'

const get = packedFields([
  [':method', 'GET'],
  [':scheme', 'https'],
  [':path', '/'],
  [':authority', 'x'],
])
/** A request whose stream is not ended, and GOAWAY. */
const REQUEST_AND_GOAWAY =
  PREFACE +
  frame(TYPES.settings, 0, 0) +
  frame(TYPES.headers, END_HEADERS, 1, get) +
  frame(TYPES.goaway, 0, 0, uint32(0) + uint32(0))

const open = (sidecar: Served): Promise<number> => sidecar.metric('postern_connections')

it('C24 H58 a client that sends GOAWAY and resets the connection during the response leaves no connection behind', async () => {
  const site = await prepareSite({ transport: 'h2', config: { listen: { idle_timeout: '300ms' } } })
  const sidecar = await site.serve()
  for (let round = 0; round < 4; round++) {
    const peers = await Promise.all(
      Array.from({ length: 30 }, () => rawConnection(sidecar.url, { alpn: ['h2'] })),
    )
    for (const peer of peers) {
      peer.write(REQUEST_AND_GOAWAY)
      setImmediate(() => peer.reset())
    }
    await Promise.all(peers.map(({ closed }) => closed))
  }
  await expect.poll(() => open(sidecar)).toBe(0)
  sidecar.signal('SIGTERM')
  expect(await sidecar.exit).toEqual({ code: 0, signal: null })
})
