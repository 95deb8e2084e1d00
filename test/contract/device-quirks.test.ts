import { describe, expect, it } from 'vitest'
import type { Request } from '../support/message.ts'
import { nextRequest, OK } from '../support/raw-device.ts'
import {
  answering,
  failures,
  faultyLines,
  type Script,
  type Setup,
  withEveryParser,
} from './faulty-device.ts'

const ok = 'HTTP/1.1 200 OK\r\n'
const unasked = 'HTTP/1.1 100 Continue\r\n\r\n'
const hint = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'
const hi = `${ok}Content-Length: 2\r\n\r\nhi`

/** An unusual response that is valid. */
interface Quirk {
  readonly name: string
  readonly bytes: string
  readonly request?: Request
  readonly status?: number
  readonly text?: string
}

/** How each of the others is read, the rows of `test/http1/faulty-responses.test.ts` say. */
const quirks: readonly Quirk[] = [
  {
    name: 'H50 a 304 with a length',
    bytes: 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n',
    status: 304,
    text: '',
  },
  {
    name: 'H50 a response to HEAD in chunks',
    bytes: `${ok}Transfer-Encoding: chunked\r\n\r\n`,
    request: { method: 'HEAD' },
    text: '',
  },
  {
    name: 'H54 an unasked 100 with fields, and a 103',
    bytes: `HTTP/1.1 100 Continue\r\nServer: x\r\n\r\n${hint}${unasked}${hi}`,
    request: { body: 'once' },
  },
  { name: 'H57 HTTP/1.0 without a length', bytes: 'HTTP/1.0 200 OK\r\nServer: old\r\n\r\nhi' },
  {
    name: 'H57 a hundred fields, with trailers',
    bytes: `${ok}${'X-A: b\r\n'.repeat(100)}Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-T: t\r\n\r\n`,
  },
]

/** The client gets the response, the request is not repeated, no error is counted, and `auto` stays strict. */
async function expectAccepted(
  setup: Setup,
  { request = {}, status = 200, text = 'hi' }: Quirk,
): Promise<void> {
  const response = await setup.ask(request)
  expect([response.status, response.text]).toEqual([status, text])
  expect(response.informational.filter((interim) => interim.status === 100)).toEqual([])
  expect(await failures(setup)).toEqual({})
  await expect.poll(() => faultyLines(setup)).toMatchObject([{ status, out: text.length }])
  expect(faultyLines(setup)[0]).not.toHaveProperty('end')
  expect(setup.device.received).toHaveLength(1)
  expect(await setup.sidecar.metric('postern_upstream_tolerant')).toBe(setup.parser === 'tolerant' ? 1 : 0)
}

describe('An unusual response of the device reaches the client:', () => {
  it.each(quirks)('$name', async (quirk) => {
    await withEveryParser(answering(quirk.bytes), (setup) => expectAccepted(setup, quirk))
  })

  it('H54 an unasked 100 before every response keeps the connection to the device open', async () => {
    let connections = 0
    const script: Script = async (peer) => {
      connections += 1
      for (;;) {
        peer.write(unasked + OK)
        await nextRequest(peer)
      }
    }
    await withEveryParser(
      script,
      async (setup) => {
        for (let i = 0; i < 3; i += 1) expect((await setup.ask({ body: 'x' })).text).toBe('ok')
      },
      { parsers: ['auto'] },
    )
    expect(connections).toBe(1)
  })
})
