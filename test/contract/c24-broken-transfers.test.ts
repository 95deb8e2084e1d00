import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { startDevice } from '../support/device.ts'
import { type RawPeer, rawConnection } from '../support/raw.ts'
import { brokenBy, startCutting } from '../support/raw-device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import { expectCut, failures, type Script, type Setup, withEveryParser } from './faulty-device.ts'

const ok = 'HTTP/1.1 200 OK\r\n'
const length = `${ok}Content-Length: 1000\r\n\r\nonly this`
const chunk = `${ok}Transfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n`
const untilClose = `${ok}X-A: b\r\n\r\nonly this`

/** Writes these bytes, and ends on cue: a reset discards bytes that the other side has not read yet. */
const cutting =
  (bytes: string, cut: (peer: RawPeer) => unknown): Script =>
  async (peer, cue) => {
    peer.write(bytes)
    await cue()
    cut(peer)
  }
const fin = (peer: RawPeer): void => peer.end()
const reset = (peer: RawPeer): void => peer.reset()

/** Lets a body that has stalled reach the deadline for its next byte, by default 60 s. */
async function reachDeadline({ sidecar, device }: Setup): Promise<void> {
  for (let i = 0; i < 6; i += 1) {
    expect(await sidecar.metric('postern_upstream_errors_total')).toBe(0)
    device.proceed()
    await sidecar.clock.advance(i < 5 ? 10_000 : 9_999)
  }
  expect(await sidecar.metric('postern_upstream_errors_total')).toBe(0)
  await sidecar.clock.advance(1)
}

// Where a body breaks off by its bytes, the rows of `test/http1/faulty-responses.test.ts` say.
describe('C24 A response that the device breaks off does not look whole to the client:', () => {
  it.each<[name: string, script: Script, failure: string]>([
    ['a length, then FIN', cutting(length, fin), 'http_response_incomplete'],
    ['a length, then RST', cutting(length, reset), 'http_response_incomplete'],
    ['chunks, then FIN', cutting(chunk, fin), 'http_response_incomplete'],
    ['chunks, then RST', cutting(chunk, reset), 'http_response_incomplete'],
    ['no length, then RST', cutting(untilClose, reset), 'http_response_incomplete'],
    ['an invalid chunk size', cutting(chunk, (peer) => peer.write('zz\r\n')), 'http_protocol_error'],
  ])('C24 H49 %s', async (_name, script, failure) => {
    await withEveryParser(script, async (setup) => {
      await expectCut(setup, failure)
      // A cut body does not make `auto` switch to the tolerant parser.
      const tolerant = setup.parser === 'tolerant' ? 1 : 0
      expect(await setup.sidecar.metric('postern_upstream_tolerant')).toBe(tolerant)
    })
  })

  it('C24 H49 a body cut before its first byte', async () => {
    await withEveryParser(
      (peer) => peer.end(`${ok}Content-Length: 1000\r\n\r\n`),
      (setup) => expectCut(setup, 'http_response_incomplete', ''),
    )
  })

  it.each<[string, Script]>([
    ['with a length', (peer) => peer.write(length)],
    [
      'in chunks, with endless extensions and no data',
      async (peer, cue) => {
        peer.write(`${chunk}1;`)
        for (;;) {
          await cue()
          peer.write('x')
        }
      },
    ],
  ])('C24 H55 a body that stalls is broken off at the deadline, %s', async (_name, script) => {
    await withEveryParser(script, (setup) =>
      expectCut(setup, 'http_response_incomplete', undefined, () => reachDeadline(setup)),
    )
  })

  it('H55 a slow body that in all takes longer than every deadline arrives whole', async () => {
    const body = 'only this'
    const slow: Script = async (peer, cue) => {
      peer.write(`${ok}Content-Length: 9\r\n\r\n`)
      for (const byte of body) {
        await cue()
        peer.write(byte)
      }
      peer.end()
    }
    await withEveryParser(slow, async (setup) => {
      const { sidecar, token, device } = setup
      const connection = await sidecar.connect()
      const exchange = connection.start({ path: '/faulty', fields: ['Authorization', `Bearer ${token}`] })
      await exchange.head
      for (let seen = 1; seen <= body.length; seen += 1) {
        await sidecar.clock.advance(59_999)
        device.proceed()
        await exchange.waitFor(body.slice(0, seen))
      }
      expect((await exchange.response).text).toBe(body)
      expect(await failures(setup)).toEqual({})
      connection.close()
    })
  })
})

describeTransports('C24 A broken response', (transport) => {
  it('C24 leaves other responses whole, also on the same HTTP/2 connection', async () => {
    const device = await startDevice((incoming, response) => {
      if (incoming.url !== '/cut') {
        response.end('whole')
        return
      }
      response.writeHead(200, { 'Content-Length': 1000 })
      response.write('only this', () => response.destroy())
    })
    const sidecar = await startSidecar({ transport, device })
    const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
    const connections = await Promise.all(Array.from({ length: 6 }, () => sidecar.connect()))
    await Promise.all(
      connections.map(async (connection, i) => {
        const path = i % 2 === 0 ? '/cut' : '/whole'
        const exchange = connection.start({ fields, path })
        if (path === '/cut') await brokenBy(exchange)
        else expect((await exchange.response).text).toBe('whole')
      }),
    )
    if (transport !== 'h2') return
    // In HTTP/2 only the stream breaks, not the connection.
    const [one] = connections
    if (one === undefined) throw new Error('there are six')
    const cut = one.start({ fields, path: '/cut' })
    const whole = one.start({ fields, path: '/whole' })
    await brokenBy(cut)
    expect((await whole.response).text).toBe('whole')
    expect((await one.send({ fields, path: '/whole' })).text).toBe('whole')
  })
})

describeTransports(
  'C24 An HTTP/1.0 client',
  (transport) => {
    it.each([
      ['chunks', 'Transfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n', fin],
      ['no length', 'X-A: b\r\n\r\nonly this', reset],
    ])('C24 H49 sees that a response with %s is cut', async (_name, head, cut) => {
      const { device, proceed } = await startCutting(head, cut)
      const sidecar = await startSidecar({ transport, device, config: { upstream: { parser: 'strict' } } })
      const raw = await rawConnection(sidecar.url)
      const broken = once(raw.socket, 'error')
      raw.write(`GET / HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer ${await sidecar.token()}\r\n\r\n`)
      await raw.waitFor('only this')
      proceed()
      expect(await broken).toMatchObject([{ code: 'ECONNRESET' }])
    })
  },
  ['http1', 'tls'],
)
