import { describe, expect, it } from 'vitest'
import type { RawPeer } from '../support/raw.ts'
import { answering, expectCut, failures, type Script, withEveryParser } from './faulty-device.ts'

const ok = 'HTTP/1.1 200 OK\r\n'
const length = `${ok}Content-Length: 1000\r\n\r\nonly this`
const chunk = `${ok}Transfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n`

/** Writes these bytes, waits until the sidecar has had time to read them, and resets the connection. */
const resetting =
  (bytes: string): Script =>
  async (peer) => {
    await written(peer, bytes)
    peer.reset()
  }

async function written(peer: RawPeer, bytes: string): Promise<void> {
  await new Promise<void>((resolve) => peer.socket.write(Buffer.from(bytes, 'latin1'), () => resolve()))
  // A reset discards bytes that the other side has not read yet.
  await new Promise((resolve) => setTimeout(resolve, 100))
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
    const script: Script = async (peer) => {
      await written(peer, chunk)
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

  it('H55 a body that stalls', async () => {
    await withEveryParser(
      (peer) => peer.write(length),
      (setup) => expectCut(setup, 'http_response_incomplete'),
      {
        upstream: { idle_timeout: '300ms' },
      },
    )
  })

  it('H55 a body that stalls between chunks', async () => {
    await withEveryParser(
      (peer) => peer.write(chunk),
      (setup) => expectCut(setup, 'http_response_incomplete'),
      {
        upstream: { idle_timeout: '300ms' },
      },
    )
  })

  it('H55 a slow body that in all takes longer than every deadline arrives whole', async () => {
    const slow: Script = async (peer) => {
      peer.write(`${ok}Content-Length: 9\r\n\r\n`)
      for (const byte of 'only this') {
        peer.write(byte)
        await new Promise((resolve) => setTimeout(resolve, 200))
      }
      peer.end()
    }
    await withEveryParser(
      slow,
      async (setup) => {
        expect((await setup.ask()).text).toBe('only this')
        expect(await failures(setup)).toEqual({})
      },
      { upstream: { idle_timeout: '1500ms', response_timeout: '1500ms' } },
    )
  })
})
