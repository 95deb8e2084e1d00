import { describe, expect, it } from 'vitest'
import { nextRequest, OK, type RawDevice, startRawDevice } from '../support/raw-device.ts'
import { startSidecar } from '../support/sidecar.ts'

/** Responses that end with their head regardless of its fields (RFC 9112 §6.3). */
const RESPONSES = [
  { method: 'GET', status: 304, line: 'HTTP/1.1 304 Not Modified\r\n' },
  { method: 'GET', status: 204, line: 'HTTP/1.1 204 No Content\r\n' },
  { method: 'HEAD', status: 200, line: 'HTTP/1.1 200 OK\r\n' },
  { method: 'HEAD', status: 404, line: 'HTTP/1.0 404 Not Found\r\n' },
] as const

const FRAMINGS = [
  '',
  'Content-Length: 0\r\n',
  'Content-Length: 5\r\n',
  'Content-Length: 5\t\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Transfer-Encoding: chunked\t\r\n',
  'Transfer-Encoding: gzip\r\n',
  'Transfer-Encoding: gzip, chunked\r\n',
  'Transfer-Encoding: identity\r\n',
]

/** Bytes that devices send after such a head. */
const STRAYS = ['', '\r\n', 'hello', OK.replace('ok', 'no')]

const CASES = RESPONSES.flatMap((response) =>
  FRAMINGS.flatMap((framing) => STRAYS.map((stray) => ({ ...response, framing, stray }))),
)

/** A device that responds to `/NUMBER` with that case, and to other paths with `ok`. */
function startOddDevice(): Promise<RawDevice> {
  return startRawDevice(async (peer) => {
    for (;;) {
      const path = /^[A-Z]+ \/(\d+) /.exec(await nextRequest(peer))?.[1]
      const odd = path === undefined ? undefined : CASES[Number(path)]
      peer.write(odd === undefined ? OK : `${odd.line}X-A: b\r\n${odd.framing}\r\n${odd.stray}`)
    }
  })
}

/** A sidecar and a client. `sendPair` requests a case and then `/` on one connection, and returns parts of both responses. */
async function openClient(device: RawDevice, transport: 'http1' | 'h2', parser: string) {
  const upstream = { parser, idle_timeout: '2s', response_timeout: '2s' }
  const sidecar = await startSidecar({ transport, device, config: { upstream } })
  const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
  const connection = await sidecar.connect()
  const sendPair = async (number: number, method: string): Promise<unknown[]> => {
    const response = await connection.send({ fields, method, path: `/${number}` })
    const next = await connection.send({ fields })
    const length = response.header('Content-Length')
    return [response.status, response.text, response.header('X-A'), length, next.status, next.text]
  }
  return { sidecar, sendPair }
}

describe.each(['http1', 'h2'] as const)('responses without a body over %s', (transport) => {
  // Where each ends, the rows of `test/http1/faulty-responses.test.ts` say: here is each head with one of the strays.
  const cases = [...CASES.entries()].filter(
    ([number]) => Math.floor(number / STRAYS.length) % STRAYS.length === number % STRAYS.length,
  )

  it.each(transport === 'http1' ? ['strict', 'tolerant'] : ['auto'])(
    'H50 C21 C24 end with their heads, and no client gets the bytes after them (%s)',
    async (parser) => {
      const { sidecar, sendPair } = await openClient(await startOddDevice(), transport, parser)
      for (const [number, { method, status, line, framing, stray }] of cases) {
        const what = JSON.stringify([line, framing, stray.slice(0, 20)])
        const length = status === 204 ? undefined : /^Content-Length: (\d)/.exec(framing)?.[1]
        expect(await sendPair(number, method), what).toEqual([status, '', 'b', length, 200, 'ok'])
      }
      expect(await sidecar.metric('postern_upstream_tolerant')).toBe(parser === 'tolerant' ? 1 : 0)
      expect(await sidecar.metric('postern_upstream_errors_total')).toBe(0)
    },
  )
})

it('H50 H100 a connection is reused after a response without a body only if no field announces one', async () => {
  const device = await startOddDevice()
  const { sendPair } = await openClient(device, 'http1', 'strict')
  const kept: string[] = []
  let before = 1
  for (const [number, { method, status, framing, stray }] of CASES.entries()) {
    await sendPair(number, method)
    // Without a new connection, the first request of the pair reused that of the previous pair.
    if (device.peers.length === before)
      kept.push(`${method} ${status} ${framing.trim()} ${JSON.stringify(stray)}`)
    before = device.peers.length
  }
  expect(kept).toEqual(
    [304, 204].flatMap((status) =>
      ['', 'Content-Length: 0'].flatMap((framing) =>
        ['""', '"\\r\\n"'].map((stray) => `GET ${status} ${framing} ${stray}`),
      ),
    ),
  )
})

it.each(['Content-Length: 5\r\n\r\nhello', 'Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n'])(
  'C24 a 205 over HTTP/2 has no body and is complete without one: %j',
  async (rest) => {
    const device = await startRawDevice(async (peer) => {
      await nextRequest(peer)
      peer.write(`HTTP/1.1 205 Reset Content\r\nX-A: b\r\n${rest}`)
    })
    const sidecar = await startSidecar({ transport: 'h2', device })
    const response = await sidecar.request({ token: await sidecar.token() })
    expect([response.status, response.text, response.header('X-A')]).toEqual([205, '', 'b'])
    expect(response.header('Content-Length')).toBeUndefined()
  },
)
