import { expect, it } from 'vitest'
import { nextTurn } from '../../src/system/clock.ts'
import { goaway, headers, PREFACE, requestFields, settings } from '../support/http2-frames.ts'
import { rawConnection } from '../support/raw.ts'
import { prepareSite, type Served } from './serve.ts'

/** A request whose stream is not ended, and GOAWAY. */
const REQUEST_AND_GOAWAY = Buffer.concat([PREFACE, settings(), headers(1, requestFields(), false), goaway(0)])

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
      void nextTurn().then(() => peer.reset())
    }
    await Promise.all(peers.map(({ closed }) => closed))
  }
  await expect.poll(() => open(sidecar)).toBe(0)
  sidecar.signal('SIGTERM')
  expect(await sidecar.exit).toEqual({ code: 0, signal: null })
})

/** Longer than the test may take, so that an end by one of these deadlines fails it. */
const PATIENT = {
  listen: { idle_timeout: '10m' },
  upstream: { response_timeout: '10m', idle_timeout: '10m' },
}
const bearer = (token: string): [string, string] => ['authorization', `Bearer ${token}`]

// The sidecar is a process of its own here too: a client in the same process resets the connection before the handshake is over.
it.each([
  {
    protocol: 'http/1.1',
    bytesFor: (token: string) => `GET / HTTP/1.1\r\nHost: x\r\n${bearer(token).join(': ')}\r\n\r\n`,
  },
  {
    protocol: 'h2',
    bytesFor: (token: string) =>
      Buffer.concat([PREFACE, settings(), headers(1, requestFields(bearer(token)))]),
  },
])(
  'C24 clients that reset a new connection ($protocol) with its first request leave nothing behind',
  async ({ protocol, bytesFor }) => {
    const site = await prepareSite({ transport: 'tls', config: PATIENT })
    const large = Buffer.alloc(1_000_000, 'x')
    site.device.handle((_request, response) => void response.end(large))
    const sidecar = await site.serve()
    const bytes = bytesFor((await sidecar.grant()).access_token)
    for (let round = 0; round < 15; round++) {
      await Promise.all(
        Array.from({ length: 8 }, async (_, i) => {
          const peer = await rawConnection(sidecar.url, { alpn: [protocol] })
          peer.write(bytes)
          if (i % 2 === 0) await nextTurn()
          peer.reset()
          await peer.closed
        }),
      )
    }
    await expect.poll(() => sidecar.metric('postern_upstream_in_flight')).toBe(0)
    await expect.poll(() => open(sidecar)).toBe(0)
  },
)
