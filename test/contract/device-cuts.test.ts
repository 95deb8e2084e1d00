import { describe, expect, it } from 'vitest'
import { answering, expectCut, failures, type Script, type Setup, withEveryParser } from './faulty-device.ts'

const ok = 'HTTP/1.1 200 OK\r\n'
const length = `${ok}Content-Length: 1000\r\n\r\nonly this`
const chunk = `${ok}Transfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n`

/** Writes these bytes, and resets the connection on cue: a reset discards bytes that the other side has not read yet. */
const resetting =
  (bytes: string): Script =>
  async (peer, cue) => {
    peer.write(bytes)
    await cue()
    peer.reset()
  }

/** Lets a body that has stalled reach the deadline for its next byte, by default 60 s. */
async function reachDeadline(setup: Setup): Promise<void> {
  await setup.sidecar.clock.advance(59_999)
  expect(await failures(setup)).toEqual({})
  await setup.sidecar.clock.advance(1)
}

const cuts: readonly (readonly [string, Script])[] = [
  ['a length, then FIN', answering(length)],
  ['a length, then RST', resetting(length)],
  ['a length, one byte short', answering(`${ok}Content-Length: 10\r\n\r\nonly this`)],
  ['a length, on a connection to be closed', answering(length.replace('\r\n', '\r\nConnection: close\r\n'))],
  ['a length, of HTTP/1.0', answering(length.replace('1.1', '1.0'))],
  ['chunks, then FIN', answering(chunk)],
  ['chunks, then RST', resetting(chunk)],
  ['chunks, on a connection to be closed', answering(chunk.replace('\r\n', '\r\nConnection: close\r\n'))],
  ['half a chunk', answering(`${ok}Transfer-Encoding: chunked\r\n\r\n99\r\nonly this`)],
]

describe('H49 A response that the device breaks off does not look whole to the client:', () => {
  it.each(cuts)('H49 %s', async (_name, script) => {
    await withEveryParser(script, async (setup) => {
      await expectCut(setup, 'http_response_incomplete')
      // A cut body does not make `auto` switch to the tolerant parser.
      const tolerant = setup.parser === 'tolerant' ? 1 : 0
      expect(await setup.sidecar.metric('postern_upstream_tolerant')).toBe(tolerant)
    })
  })

  it('H49 half of the last chunk (only the tolerant parser takes it for the end)', async () => {
    const script = answering(`${chunk}0\r\n`)
    await withEveryParser(script, (setup) => expectCut(setup, 'http_response_incomplete'), {
      parsers: ['strict', 'auto'],
    })
    await withEveryParser(script, async (setup) => expect((await setup.ask()).text).toBe('only this'), {
      parsers: ['tolerant'],
    })
  })

  it('H49 an invalid chunk size', async () => {
    const script: Script = async (peer, cue) => {
      peer.write(chunk)
      await cue()
      peer.write('zz\r\n')
    }
    await withEveryParser(script, async (setup) => {
      await expectCut(setup, 'http_protocol_error')
      // The tolerant parser refuses it too, so `auto` does not switch to it.
      const tolerant = setup.parser === 'tolerant' ? 1 : 0
      expect(await setup.sidecar.metric('postern_upstream_tolerant')).toBe(tolerant)
    })
  })

  it('H49 a reset of a body without a length', async () => {
    await withEveryParser(resetting(`${ok}Connection: close\r\n\r\nonly this`), (setup) =>
      expectCut(setup, 'http_response_incomplete'),
    )
  })

  it('H49 a body cut before its first byte', async () => {
    await withEveryParser(answering(`${ok}Content-Length: 1000\r\n\r\n`), (setup) =>
      expectCut(setup, 'http_response_incomplete', ''),
    )
  })

  it.each([
    ['a body that stalls', length],
    ['a body that stalls between chunks', chunk],
  ])('H55 %s', async (_name, bytes) => {
    await withEveryParser(
      (peer) => peer.write(bytes),
      (setup) => expectCut(setup, 'http_response_incomplete', undefined, () => reachDeadline(setup)),
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
