import { describe, expect, it } from 'vitest'
import { type RawDevice, startRawDevice } from '../support/device.ts'
import { nextRequest, OK } from '../support/scripted.ts'
import { startSidecar } from '../support/sidecar.ts'

/** Answers that end with their head, whatever it says (RFC 9112 §6.3). */
const ANSWERS = [
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

/** What stands behind such a head all the same. */
const STRAYS = ['', '\r\n', 'hello', '5\r\nhello\r\n0\r\n\r\n', OK.replace('ok', 'no'), 'x'.repeat(100_000)]

const CASES = ANSWERS.flatMap((answer) =>
  FRAMINGS.flatMap((framing) => STRAYS.map((stray) => ({ ...answer, framing, stray }))),
)

/** Answers the case whose number is the path, and `ok` to any other. */
function startOddDevice(): Promise<RawDevice> {
  return startRawDevice(async (peer) => {
    for (;;) {
      const path = /^[A-Z]+ \/(\d+) /.exec(await nextRequest(peer))?.[1]
      const odd = path === undefined ? undefined : CASES[Number(path)]
      peer.write(odd === undefined ? OK : `${odd.line}X-A: b\r\n${odd.framing}\r\n${odd.stray}`)
    }
  })
}

/** Asks for a case, then for something good, on one connection; gives what came of both. */
async function openLane(device: RawDevice, transport: 'http1' | 'h2', parser: string) {
  const upstream = { parser, idle_timeout: '2s', response_timeout: '2s' }
  const sidecar = await startSidecar({ transport, device, config: { upstream } })
  const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
  const connection = await sidecar.connect()
  const ask = async (number: number, method: string): Promise<unknown[]> => {
    const answer = await connection.send({ fields, method, path: `/${number}`, timeout: 5000 })
    const next = await connection.send({ fields, timeout: 5000 })
    const length = answer.header('Content-Length')
    return [answer.status, answer.text, answer.header('X-A'), length, next.status, next.text]
  }
  return { sidecar, ask }
}

describe.each(['http1', 'h2'] as const)('Answers without a body over %s', (transport) => {
  // The device's side is read alike for either client: for HTTP/2 each head comes with one of the strays, in turn.
  const cases = [...CASES.entries()].filter(
    ([number]) =>
      transport === 'http1' || Math.floor(number / STRAYS.length) % STRAYS.length === number % STRAYS.length,
  )

  it.each(['strict', 'tolerant', 'auto'])(
    'H50 C21 C24 end with their heads, and what stands behind goes nowhere (%s)',
    async (parser) => {
      const { sidecar, ask } = await openLane(await startOddDevice(), transport, parser)
      for (const [number, { method, status, line, framing, stray }] of cases) {
        const what = JSON.stringify([line, framing, stray.slice(0, 20)])
        const length = status === 204 ? undefined : /^Content-Length: (\d)/.exec(framing)?.[1]
        expect(await ask(number, method), what).toEqual([status, '', 'b', length, 200, 'ok'])
      }
      expect(await sidecar.metric('postern_upstream_tolerant')).toBe(parser === 'tolerant' ? 1 : 0)
      expect(await sidecar.metric('postern_upstream_errors_total')).toBe(0)
    },
  )
})

it('H50 H100 a connection is kept behind an answer without a body only where nothing announces one', async () => {
  const device = await startOddDevice()
  const { ask } = await openLane(device, 'http1', 'strict')
  const kept: string[] = []
  let before = 1
  for (const [number, { method, status, framing, stray }] of CASES.entries()) {
    await ask(number, method)
    // The first of the two requests takes the connection of the one before.
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
  'C24 a 205 has no body over HTTP/2, and is whole without one: %j',
  async (rest) => {
    const device = await startRawDevice(async (peer) => {
      await nextRequest(peer)
      peer.write(`HTTP/1.1 205 Reset Content\r\nX-A: b\r\n${rest}`)
    })
    const sidecar = await startSidecar({ transport: 'h2', device })
    const answer = await sidecar.request({ token: await sidecar.token() })
    expect([answer.status, answer.text, answer.header('X-A')]).toEqual([205, '', 'b'])
    expect(answer.header('Content-Length')).toBeUndefined()
  },
)
