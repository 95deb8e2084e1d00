import { describe, expect, it } from 'vitest'
import type { Request } from '../support/message.ts'
import { nextRequest, OK } from '../support/scripted.ts'
import { failures, inEveryLane, logged, type Script, saying, type World } from './faulty-device.ts'

const ok = 'HTTP/1.1 200 OK\r\n'
const unasked = 'HTTP/1.1 100 Continue\r\n\r\n'
const hint = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'
const hi = `${ok}Content-Length: 2\r\n\r\nhi`

/** An answer that is odd, and not wrong. */
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
    name: 'H50 an answer to HEAD with a length',
    bytes: `${ok}Content-Length: 5\r\n\r\n`,
    request: { method: 'HEAD' },
    text: '',
  },
  {
    name: 'H50 an answer to HEAD in chunks',
    bytes: `${ok}Transfer-Encoding: chunked\r\n\r\n`,
    request: { method: 'HEAD' },
    text: '',
  },
  { name: 'H54 an unasked 100', bytes: unasked + hi },
  { name: 'H54 an unasked 100 before the answer to a POST', bytes: unasked + hi, request: { body: 'once' } },
  { name: 'H54 several of them', bytes: unasked.repeat(5) + hi, request: { body: 'once' } },
  {
    name: 'H54 an unasked 100 with fields, and hints',
    bytes: `HTTP/1.1 100 Continue\r\nServer: x\r\n\r\n${hint}${unasked}${hi}`,
    request: { body: 'once' },
  },
  { name: 'H54 a few 103s', bytes: hint.repeat(3) + hi },
  { name: 'H57 HTTP/1.0 until the end', bytes: 'HTTP/1.0 200 OK\r\nServer: old\r\n\r\nhi' },
  {
    name: 'H57 HTTP/1.0 kept alive',
    bytes: 'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi',
  },
  { name: 'H57 Connection: close', bytes: `${ok}Connection: close\r\nContent-Length: 2\r\n\r\nhi` },
  { name: 'H57 until the end of the connection', bytes: `${ok}\r\nhi` },
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
    name: 'H57 tabs in an interim answer',
    bytes: `HTTP/1.1 103 Early Hints\r\nLink:\t</a>\t\r\n\r\n${ok}Content-Length: 2\t\r\n\r\nhi`,
  },
  { name: 'H57 a hundred fields', bytes: `${ok}${'X-A: b\r\n'.repeat(100)}Content-Length: 2\r\n\r\nhi` },
]

/** The answer is right, asked for once and counted as no fault, and a device read strictly stays so. */
async function expectRight(world: World, { request = {}, status = 200, text = 'hi' }: Quirk): Promise<void> {
  const answer = await world.ask(request)
  expect([answer.status, answer.text]).toEqual([status, text])
  expect(answer.informational.filter((interim) => interim.status === 100)).toEqual([])
  expect(await failures(world)).toEqual({})
  expect(logged(world)).toMatchObject([{ status, out: text.length }])
  expect(logged(world)[0]).not.toHaveProperty('end')
  expect(world.device.asked).toHaveLength(1)
  expect(await world.sidecar.metric('postern_upstream_tolerant')).toBe(world.lane === 'tolerant' ? 1 : 0)
}

describe('A device answers oddly, and the client gets what it meant:', () => {
  it.each(quirks)('$name', async (quirk) => {
    await inEveryLane(saying(quirk.bytes), (world) => expectRight(world, quirk))
  })

  it('H54 an unasked 100 one byte at a time, and as much alike as can be', async () => {
    const odd = `${unasked}HTTP/1.0 100 Continue\r\n\r\nHTTP/1.1 200 100\r\nContent-Length: 15\r\n\r\nHTTP/1.1 100 hi`
    const script: Script = async (peer) => {
      for (const byte of odd) {
        peer.write(byte)
        await new Promise((resolve) => setImmediate(resolve))
      }
      peer.end()
    }
    const quirk = { name: '', bytes: odd, text: 'HTTP/1.1 100 hi', request: { body: 'once' } }
    await inEveryLane(script, (world) => expectRight(world, quirk))
  })

  it('H54 an unasked 100 before every answer costs the device no connection', async () => {
    let connections = 0
    const script: Script = async (peer) => {
      connections += 1
      for (;;) {
        peer.write(unasked + OK)
        await nextRequest(peer)
      }
    }
    await inEveryLane(
      script,
      async (world) => {
        for (let i = 0; i < 3; i += 1) expect((await world.ask({ body: 'x' })).text).toBe('ok')
      },
      { lanes: ['auto'] },
    )
    // One for each of the two clients' sidecars.
    expect(connections).toBe(2)
  })

  it('H56 an answer before the upload is over reaches the client', async () => {
    const early = 'HTTP/1.1 413 Content Too Large\r\nContent-Length: 8\r\n\r\ntoo much'
    await inEveryLane(saying(early), async (world) => {
      const connection = await world.sidecar.connect()
      const fields = ['Authorization', `Bearer ${world.token}`]
      const exchange = connection.start({
        method: 'POST',
        path: '/faulty',
        fields,
        open: true,
        timeout: 4000,
      })
      exchange.write('some of it')
      expect(await exchange.response).toMatchObject({ status: 413, text: 'too much' })
      connection.close()
      expect(await failures(world)).toEqual({})
      await expect.poll(() => logged(world)).toMatchObject([{ status: 413, out: 8 }])
    })
  })
})

describe('A device closes connections that it had kept,', () => {
  it('H47 and a GET is asked for once more, elsewhere, a POST never', async () => {
    // The connection was good for the first answer, and closes when it is asked for another.
    const script: Script = (peer) => peer.end()
    await inEveryLane(script, async (world) => {
      const { sidecar, token, device, lane } = world
      for (const request of [{}, { body: 'once' }]) {
        expect((await sidecar.request({ token })).text).toBe('ok')
        const before = device.asked.length
        await world.ask(request)
        const repeated = lane !== 'tolerant' && !('body' in request)
        expect(device.asked.length - before).toBe(repeated ? 2 : 1)
      }
      expect(await failures(world)).toEqual({ connection_terminated: 2 })
    })
  })

  it('H47 but not behind any byte of an answer, be it an unasked 100 or a part of one', async () => {
    for (const said of [unasked, 'HTTP/1.1 1', 'H']) {
      await inEveryLane(saying(said), async (world) => {
        expect((await world.sidecar.request({ token: world.token })).text).toBe('ok')
        await world.ask()
        expect(world.device.asked).toHaveLength(1)
      })
    }
  })

  it('H48 straight after each answer, unannounced: no GET fails', async () => {
    const script: Script = async (peer) => {
      peer.write(OK)
      await new Promise((resolve) => setTimeout(resolve, 2))
      peer.end()
    }
    await inEveryLane(script, async (world) => {
      for (let i = 0; i < 25; i += 1) {
        expect((await world.ask()).text).toBe('ok')
        await new Promise((resolve) => setTimeout(resolve, i % 5))
      }
      expect(await failures(world)).toEqual({})
    })
  })

  it('H48 as it had announced: it is not asked on them any more, so that no POST fails either', async () => {
    const script: Script = async (peer) => {
      peer.write(OK.replace('\r\n', '\r\nKeep-Alive: timeout=1\r\n'))
      await new Promise((resolve) => setTimeout(resolve, 1000))
      peer.end()
    }
    await inEveryLane(script, async (world) => {
      expect((await world.ask({ body: 'x' })).text).toBe('ok')
      await new Promise((resolve) => setTimeout(resolve, 995))
      expect((await world.ask({ body: 'x' })).text).toBe('ok')
      expect(await failures(world)).toEqual({})
      expect(world.device.asked).toHaveLength(2)
    })
  })
})
