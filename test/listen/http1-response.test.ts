import { expect, it } from 'vitest'
import type { Exchange } from '../../src/http/exchange.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { writeSoon } from '../../src/system/write-soon.ts'
import { responsesIn } from '../support/http1-reader.ts'
import { type RawPeer, rawConnection, socketPair } from '../support/raw.ts'
import { startHttp1Server } from './http1-server.ts'

const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

/** A server that responds with `respond`, and the outcomes of its exchanges. */
async function startResponding(
  respond: (exchange: Exchange) => unknown,
): Promise<{ url: string; outcomes: Promise<Exchange>[]; ask: (bytes: string) => Promise<RawPeer> }> {
  const outcomes: Promise<Exchange>[] = []
  const url = await startHttp1Server((exchange) => {
    outcomes.push(new Promise((resolve) => exchange.onEnd(() => resolve(exchange))))
    respond(exchange)
  })
  return {
    url,
    outcomes,
    async ask(bytes) {
      const raw = await rawConnection(url)
      raw.write(bytes)
      return raw
    },
  }
}

const HEAD = { status: 200, reason: 'OK', fields: ['X-Own', 'yes'] }
const EVERY_BYTE = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
const LONG = Buffer.concat(Array.from({ length: 100 }, () => EVERY_BYTE))

it.each([
  ['nothing', []],
  ['one short piece', [EVERY_BYTE]],
  ['one long piece', [LONG]],
  ['an empty piece between two', [EVERY_BYTE, Buffer.alloc(0), EVERY_BYTE]],
  ['short pieces', [EVERY_BYTE, EVERY_BYTE, EVERY_BYTE]],
  ['a short piece and a long one', [EVERY_BYTE, LONG]],
  ['a long piece and a short one', [LONG, EVERY_BYTE]],
])(
  'C21 a response of %s arrives byte for byte, in one or several event-loop turns, with a length or in chunks',
  async (_, pieces) => {
    const whole = Buffer.concat(pieces)
    const writers: ((exchange: Exchange) => unknown)[] = [
      (exchange) => {
        for (const piece of pieces) exchange.write(piece)
        exchange.end()
      },
      async (exchange) => {
        for (const piece of pieces) {
          await nextTurn()
          exchange.write(piece)
        }
        await nextTurn()
        exchange.end()
      },
      (exchange) => {
        for (const piece of pieces.slice(0, -1)) exchange.write(piece)
        exchange.end(pieces.at(-1))
      },
    ]
    for (const fields of [[], ['Content-Length', String(whole.length)]]) {
      for (const write of writers) {
        const { ask, outcomes } = await startResponding((exchange) => {
          exchange.begin({ ...HEAD, fields: [...HEAD.fields, ...fields] })
          write(exchange)
        })
        const raw = await ask(REQUEST.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
        const [response] = responsesIn(await raw.closed)
        expect(response?.header('X-Own')).toBe('yes')
        expect(response?.body).toEqual(whole)
        expect(await outcomes[0]).toMatchObject({
          status: 200,
          outcome: 'complete',
          requestBytes: 0,
          responseBytes: whole.length,
        })
      }
    }
  },
)

it('C23 the head of a stream is sent before its body, and each piece before the next one exists', async () => {
  let running: Exchange | undefined
  const { ask } = await startResponding((exchange) => {
    running = exchange
    exchange.begin(HEAD)
  })
  const raw = await ask(REQUEST)
  await raw.waitFor('\r\n\r\n')
  running?.write(Buffer.from('first'))
  await raw.waitFor('5\r\nfirst\r\n')
})

it.each([
  ['shorter than its Content-Length', (exchange: Exchange) => exchange.end(Buffer.from('only'))],
  ['longer than its Content-Length', (exchange: Exchange) => exchange.end(Buffer.from('only this and'))],
  [
    'longer than its Content-Length, in pieces',
    (exchange: Exchange) => {
      exchange.write(Buffer.from('only this'))
      exchange.write(Buffer.from(' and'))
      exchange.end()
    },
  ],
])('C24 a body that is %s becomes a broken transfer without the excess bytes', async (_, respond) => {
  const { ask, outcomes } = await startResponding((exchange) => {
    exchange.begin({ ...HEAD, fields: ['Content-Length', '9'] })
    respond(exchange)
  })
  const raw = await ask(REQUEST)
  expect(await raw.closed).not.toContain('and')
  expect((await outcomes[0])?.outcome).toBe('cut')
})

const persistence: readonly (readonly [string, string, readonly string[], string])[] = [
  ['HTTP/1.1', '', ['Content-Length', '2'], 'keep-alive'],
  ['HTTP/1.1', '', [], 'keep-alive'],
  ['HTTP/1.1', 'Connection: x, Close', ['Content-Length', '2'], 'close'],
  ['HTTP/1.0', '', ['Content-Length', '2'], 'close'],
  ['HTTP/1.0', 'Connection: Keep-Alive', ['Content-Length', '2'], 'keep-alive'],
  ['HTTP/1.0', 'Connection: Keep-Alive', [], 'close'],
]

it.each(persistence)(
  'C21 %s with "%s" and the response fields %j gets Connection: %s, and the connection obeys it',
  async (version, field, fields, option) => {
    const { ask } = await startResponding((exchange) => {
      exchange.begin({ ...HEAD, fields })
      exchange.end(Buffer.from('ok'))
    })
    const request = `GET / ${version}\r\nHost: x\r\n${field === '' ? '' : `${field}\r\n`}\r\n`
    const raw = await ask(request)
    if (option === 'keep-alive') {
      await raw.waitFor('ok')
      raw.write(request)
      raw.end()
    }
    const responses = (await raw.closed).split('HTTP/1.1 ').slice(1)
    expect(responses).toHaveLength(option === 'keep-alive' ? 2 : 1)
    for (const response of responses) {
      expect(response).toContain(`\r\nConnection: ${option}\r\n`)
      expect(response.includes('\r\nKeep-Alive: timeout=60\r\n')).toBe(option === 'keep-alive')
      expect(response.includes('Transfer-Encoding')).toBe(version === 'HTTP/1.1' && fields.length === 0)
    }
  },
)

it.each([
  ['HEAD', 200, ['Content-Length', '1000']],
  ['HEAD', 200, []],
  ['GET', 204, []],
  ['GET', 304, ['Content-Length', '1000']],
])(
  'C21 a response to %s with %i and %j ends with its head, and the next response follows',
  async (method, status, fields) => {
    const { ask } = await startResponding((exchange) => {
      exchange.begin({ status, reason: 'R', fields })
      exchange.write(Buffer.from('never sent'))
      exchange.end()
    })
    const raw = await ask(REQUEST.replace('GET', method).repeat(2))
    raw.end()
    const all = await raw.closed
    expect(all).not.toMatch(/never|Transfer-Encoding/)
    expect(all.match(/HTTP\/1\.1 \d+ R\r\n/g)).toHaveLength(2)
    expect(all.split('\r\n\r\n')).toHaveLength(3)
  },
)

it('C21 the Date of the device is kept, and a missing one is added', async () => {
  const dates: (readonly string[])[] = []
  const before = Math.floor(Date.now() / 1000) * 1000
  for (const fields of [[], ['date', 'yesterday']]) {
    const { ask } = await startResponding((exchange) => {
      exchange.begin({ ...HEAD, fields: ['Content-Length', '0', ...fields] })
      exchange.end()
    })
    const raw = await ask(REQUEST)
    const [response] = responsesIn(await raw.waitFor('\r\n\r\n'))
    dates.push(response?.values('date') ?? [])
  }
  expect(dates).toEqual([
    [expect.stringMatching(/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/)],
    ['yesterday'],
  ])
  const date = Date.parse(dates[0]?.[0] ?? '')
  expect(date).toBeGreaterThanOrEqual(before - 1000)
  expect(date).toBeLessThanOrEqual(Date.now())
})

it('C18 a response that the sidecar generates has its Content-Length in bytes, not in characters', async () => {
  const { ask } = await startResponding((exchange) =>
    exchange.respond({ status: 200, fields: [], body: 'naïve €' }),
  )
  const raw = await ask(REQUEST.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
  const [response] = responsesIn(await raw.closed)
  expect([response?.header('Content-Length'), response?.text]).toEqual(['10', 'naïve €'])
})

it.each([
  ['status', 99, 'OK', []],
  ['status', 1000, 'OK', []],
  ['status', Number.NaN, 'OK', []],
  ['reason', 200, 'a\r\nX: b', []],
  ['reason', 200, 'a\u0100', []],
  ['name', 200, 'OK', ['', 'a']],
  ['name', 200, 'OK', ['a b', 'a']],
  ['name', 200, 'OK', ['X:', 'a']],
  ['name', 200, 'OK', ['X\xe9', 'a']],
  ['value', 200, 'OK', ['X', 'a\r\nY: b']],
  ['value', 200, 'OK', ['X', 'a\0']],
  ['value', 200, 'OK', ['X', 'a\x7f']],
  ['value', 200, 'OK', ['X', 'a\u20ac']],
  ['length', 200, 'OK', ['Content-Length', '1, 1']],
  ['duplicate length', 200, 'OK', ['Content-Length', '1', 'content-length', '1']],
  ['framing field', 200, 'OK', ['transfer-encoding', 'gzip']],
  ['Connection field', 200, 'OK', ['Connection', 'close']],
])(
  'C24 a head with an invalid %s is refused before anything is sent: %j %j %j',
  async (_, status, reason, fields) => {
    let thrown: unknown
    const { ask } = await startResponding((exchange) => {
      try {
        exchange.begin({ status, reason, fields })
      } catch (error) {
        thrown = error
        expect(exchange.answered).toBe(false)
        exchange.respond({ status: 500, fields: [], body: 'refused' })
      }
    })
    expect(await (await ask(REQUEST)).waitFor('refused')).toMatch(/^HTTP\/1\.1 500 Internal Server Error\r\n/)
    expect(thrown).toBeInstanceOf(Error)
  },
)

it('C21 a client that stops reading stops the writer, and one that resumes lets it continue', async () => {
  let taken = true
  const drained = Promise.withResolvers<void>()
  const { ask } = await startResponding((exchange) => {
    exchange.onDrain(() => drained.resolve())
    exchange.begin(HEAD)
    for (let i = 0; i < 1000 && taken; i += 1) taken = exchange.write(Buffer.alloc(65_536))
  })
  const raw = await ask('')
  raw.socket.pause()
  raw.write(REQUEST)
  await expect.poll(() => taken).toBe(false)
  raw.socket.resume()
  await drained.promise
})

it('C24 a response that ends with the connection is broken by a reset, even while its last piece waits for the end of the turn', async () => {
  const other = await socketPair()
  const { ask, outcomes } = await startResponding(async (exchange) => {
    exchange.begin({ ...HEAD, fields: [] })
    exchange.write(EVERY_BYTE)
    await nextTurn()
    writeSoon(other.from, 'the first of this turn')
    exchange.end(EVERY_BYTE)
    exchange.cut()
  })
  const raw = await ask('GET / HTTP/1.0\r\n\r\n')
  await raw.closed
  expect(raw.error).toMatchObject({ code: 'ECONNRESET' })
  expect(await outcomes[0]).toMatchObject({ outcome: 'cut' })
})
