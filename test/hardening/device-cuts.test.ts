import { describe, expect, it } from 'vitest'
import type { RawPeer } from '../support/raw.ts'
import { expectCut, failures, inEveryLane, type Script, saying } from './faulty-device.ts'

const ok = 'HTTP/1.1 200 OK\r\n'
const length = `${ok}Content-Length: 1000\r\n\r\nonly this`
const chunk = `${ok}Transfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n`

/** Resets a connection when what was written on it has had the time to be read. */
const resetting =
  (bytes: string): Script =>
  async (peer) => {
    await written(peer, bytes)
    peer.reset()
  }

async function written(peer: RawPeer, bytes: string): Promise<void> {
  await new Promise<void>((resolve) => peer.socket.write(Buffer.from(bytes, 'latin1'), () => resolve()))
  // A reset overtakes what the other side has not read.
  await new Promise((resolve) => setTimeout(resolve, 100))
}

const cuts: readonly (readonly [string, Script])[] = [
  ['a length, then FIN', saying(length)],
  ['a length, then RST', resetting(length)],
  ['a length, one byte short', saying(`${ok}Content-Length: 10\r\n\r\nonly this`)],
  ['a length, on a connection to be closed', saying(length.replace('\r\n', '\r\nConnection: close\r\n'))],
  ['a length, of HTTP/1.0', saying(length.replace('1.1', '1.0'))],
  ['chunks, then FIN', saying(chunk)],
  ['chunks, then RST', resetting(chunk)],
  ['chunks, on a connection to be closed', saying(chunk.replace('\r\n', '\r\nConnection: close\r\n'))],
  ['half a chunk', saying(`${ok}Transfer-Encoding: chunked\r\n\r\n99\r\nonly this`)],
]

describe('A device breaks its answer off, and no client takes that for the end:', () => {
  it.each(cuts)('H49 %s', async (_name, script) => {
    await inEveryLane(script, async (world) => {
      await expectCut(world, 'http_response_incomplete')
      // A device that breaks off is not one that is sloppy.
      const tolerant = world.lane === 'tolerant' ? 1 : 0
      expect(await world.sidecar.metric('postern_upstream_tolerant')).toBe(tolerant)
    })
  })

  it('H49 half of the last chunk: in the tolerant lane alone that is the end', async () => {
    const script = saying(`${chunk}0\r\n`)
    await inEveryLane(script, (world) => expectCut(world, 'http_response_incomplete'), {
      lanes: ['strict', 'auto'],
    })
    await inEveryLane(script, async (world) => expect((await world.ask()).text).toBe('only this'), {
      lanes: ['tolerant'],
    })
  })

  it('H49 a chunk that is none', async () => {
    const script: Script = async (peer) => {
      await written(peer, chunk)
      peer.write('zz\r\n')
    }
    await inEveryLane(script, async (world) => {
      await expectCut(world, 'http_protocol_error')
      // What the tolerant rules refuse as well teaches `auto` nothing.
      const learnt = world.lane === 'tolerant' ? 1 : 0
      expect(await world.sidecar.metric('postern_upstream_tolerant')).toBe(learnt)
    })
  })

  it('H49 a reset where only the end of the connection would end the body', async () => {
    await inEveryLane(resetting(`${ok}Connection: close\r\n\r\nonly this`), (world) =>
      expectCut(world, 'http_response_incomplete'),
    )
  })

  it('H49 a body cut before its first byte', async () => {
    await inEveryLane(saying(`${ok}Content-Length: 1000\r\n\r\n`), (world) =>
      expectCut(world, 'http_response_incomplete', ''),
    )
  })

  it('H55 a body that stalls', async () => {
    await inEveryLane(
      (peer) => peer.write(length),
      (world) => expectCut(world, 'http_response_incomplete'),
      {
        upstream: { idle_timeout: '300ms' },
      },
    )
  })

  it('H55 a body that stalls between chunks', async () => {
    await inEveryLane(
      (peer) => peer.write(chunk),
      (world) => expectCut(world, 'http_response_incomplete'),
      {
        upstream: { idle_timeout: '300ms' },
      },
    )
  })

  it('H55 but not one that is slow, and takes longer than any deadline in all', async () => {
    const slow: Script = async (peer) => {
      peer.write(`${ok}Content-Length: 9\r\n\r\n`)
      for (const byte of 'only this') {
        peer.write(byte)
        await new Promise((resolve) => setTimeout(resolve, 200))
      }
      peer.end()
    }
    await inEveryLane(
      slow,
      async (world) => {
        expect((await world.ask()).text).toBe('only this')
        expect(await failures(world)).toEqual({})
      },
      { upstream: { idle_timeout: '1500ms', response_timeout: '1500ms' } },
    )
  })
})
