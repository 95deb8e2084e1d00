import { describe, expect, it } from 'vitest'
import { nextTurn } from '../../src/system/clock.ts'
import { passUntil } from '../support/clock.ts'
import type { Request } from '../support/message.ts'
import { nextRequest, OK } from '../support/scripted.ts'
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

const quirks: readonly Quirk[] = [
  {
    name: 'H50 a 304 with a length',
    bytes: 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n',
    status: 304,
    text: '',
  },
  {
    name: 'H50 a 204 with a length',
    bytes: 'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n',
    status: 204,
    text: '',
  },
  {
    name: 'H50 a response to HEAD with a length',
    bytes: `${ok}Content-Length: 5\r\n\r\n`,
    request: { method: 'HEAD' },
    text: '',
  },
  {
    name: 'H50 a response to HEAD in chunks',
    bytes: `${ok}Transfer-Encoding: chunked\r\n\r\n`,
    request: { method: 'HEAD' },
    text: '',
  },
  { name: 'H54 an unasked 100', bytes: unasked + hi },
  {
    name: 'H54 an unasked 100 before the response to a POST',
    bytes: unasked + hi,
    request: { body: 'once' },
  },
  { name: 'H54 five unasked 100s', bytes: unasked.repeat(5) + hi, request: { body: 'once' } },
  {
    name: 'H54 an unasked 100 with fields, and a 103',
    bytes: `HTTP/1.1 100 Continue\r\nServer: x\r\n\r\n${hint}${unasked}${hi}`,
    request: { body: 'once' },
  },
  { name: 'H54 three 103s', bytes: hint.repeat(3) + hi },
  { name: 'H57 HTTP/1.0 without a length', bytes: 'HTTP/1.0 200 OK\r\nServer: old\r\n\r\nhi' },
  {
    name: 'H57 HTTP/1.0 kept alive',
    bytes: 'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi',
  },
  { name: 'H57 Connection: close', bytes: `${ok}Connection: close\r\nContent-Length: 2\r\n\r\nhi` },
  { name: 'H57 no length', bytes: `${ok}\r\nhi` },
  { name: 'H57 fields of 20 KB', bytes: `${ok}X-A: ${'a'.repeat(20_000)}\r\nContent-Length: 2\r\n\r\nhi` },
  {
    name: 'H57 a tab around the coding',
    bytes: `${ok}Transfer-Encoding:\t chunked \t\r\n\r\n2\r\nhi\r\n0\r\n\r\n`,
  },
  { name: 'H57 a tab around the length', bytes: `${ok}Content-Length:\t2\t\r\n\r\nhi and more` },
  {
    name: 'H57 tabs in trailers',
    bytes: `${ok}Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-T:\tt\t\r\n\r\n`,
  },
  {
    name: 'H57 tabs in an interim response',
    bytes: `HTTP/1.1 103 Early Hints\r\nLink:\t</a>\t\r\n\r\n${ok}Content-Length: 2\t\r\n\r\nhi`,
  },
  { name: 'H57 a hundred fields', bytes: `${ok}${'X-A: b\r\n'.repeat(100)}Content-Length: 2\r\n\r\nhi` },
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
  expect(faultyLines(setup)).toMatchObject([{ status, out: text.length }])
  expect(faultyLines(setup)[0]).not.toHaveProperty('end')
  expect(setup.device.received).toHaveLength(1)
  expect(await setup.sidecar.metric('postern_upstream_tolerant')).toBe(setup.parser === 'tolerant' ? 1 : 0)
}

describe('An unusual response of the device reaches the client:', () => {
  it.each(quirks)('$name', async (quirk) => {
    await withEveryParser(answering(quirk.bytes), (setup) => expectAccepted(setup, quirk))
  })

  it('H54 an unasked 100 byte by byte, before a response that contains the same bytes', async () => {
    const odd = `${unasked}HTTP/1.0 100 Continue\r\n\r\nHTTP/1.1 200 100\r\nContent-Length: 15\r\n\r\nHTTP/1.1 100 hi`
    const script: Script = async (peer) => {
      for (const byte of odd) {
        peer.write(byte)
        await nextTurn()
      }
      peer.end()
    }
    const quirk = { name: '', bytes: odd, text: 'HTTP/1.1 100 hi', request: { body: 'once' } }
    await withEveryParser(script, (setup) => expectAccepted(setup, quirk))
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
    // One connection for each of the two sidecars.
    expect(connections).toBe(2)
  })

  it('H56 a response before the end of the upload reaches the client', async () => {
    const early = 'HTTP/1.1 413 Content Too Large\r\nContent-Length: 8\r\n\r\ntoo much'
    await withEveryParser(answering(early), async (setup) => {
      const connection = await setup.sidecar.connect()
      const fields = ['Authorization', `Bearer ${setup.token}`, 'Content-Length', '1000']
      const exchange = connection.start({
        method: 'POST',
        path: '/faulty',
        fields,
        open: true,
      })
      exchange.write('some of it')
      expect(await exchange.response).toMatchObject({ status: 413, text: 'too much' })
      connection.close()
      expect(await failures(setup)).toEqual({})
      await expect.poll(() => faultyLines(setup)).toMatchObject([{ status: 413, out: 8 }])
    })
  })
})

describe('A device closes a kept-alive connection:', () => {
  it('H47 a GET is repeated on other connections, and a POST never is', async () => {
    // The connection serves one request and closes at the next.
    const script: Script = (peer) => peer.end()
    await withEveryParser(script, async (setup) => {
      const { sidecar, token, device } = setup
      for (const request of [{}, { body: 'once' }]) {
        expect((await sidecar.request({ token })).text).toBe('ok')
        const before = device.received.length
        // A connection that closes is opened again, after pauses, until `connect_timeout`.
        await passUntil(sidecar.clock, setup.ask(request))
        if ('body' in request) expect(device.received.length - before).toBe(1)
        else expect(device.received.length - before).toBeGreaterThan(1)
      }
      expect(await failures(setup)).toEqual({ connection_terminated: 2 })
    })
  })

  it('H47 a GET is not repeated after the first byte of a response, also not after an unasked 100', async () => {
    for (const bytes of [unasked, 'HTTP/1.1 1', 'H']) {
      await withEveryParser(answering(bytes), async (setup) => {
        expect((await setup.sidecar.request({ token: setup.token })).text).toBe('ok')
        await setup.ask()
        expect(setup.device.received).toHaveLength(1)
      })
    }
  })

  it('H48 no GET fails although it closes right after each response without notice', async () => {
    let closes = 0
    const turns = async (count: number): Promise<void> => {
      for (let turn = 0; turn < count; turn += 1) await nextTurn()
    }
    // The close and the next request meet in every order.
    const script: Script = async (peer) => {
      peer.write(OK)
      await turns(++closes % 3)
      peer.end()
    }
    await withEveryParser(script, async (setup) => {
      for (let i = 0; i < 25; i += 1) {
        expect((await setup.ask()).text).toBe('ok')
        await turns(i % 5)
      }
      expect(await failures(setup)).toEqual({})
    })
  })

  it('H48 no POST fails when it closes at its announced Keep-Alive timeout', async () => {
    const script: Script = async (peer, cue) => {
      peer.write(OK.replace('\r\n', '\r\nKeep-Alive: timeout=1\r\n'))
      await cue()
      peer.end()
    }
    await withEveryParser(script, async (setup) => {
      const { sidecar, device } = setup
      expect((await setup.ask({ body: 'x' })).text).toBe('ok')
      await sidecar.clock.advance(995)
      const asked = setup.ask({ body: 'x' })
      await expect.poll(() => device.received.length).toBe(2)
      await sidecar.clock.advance(5)
      device.proceed()
      expect((await asked).text).toBe('ok')
      expect(await failures(setup)).toEqual({})
      expect(device.received).toHaveLength(2)
    })
  })
})
