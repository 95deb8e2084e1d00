import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { Exchange, Outcome } from '../../src/http/exchange.ts'
import { writeSoon } from '../../src/system/write-soon.ts'
import { startHttp1Server } from '../support/http1-server.ts'
import { type RawPeer, rawConnection } from '../support/raw.ts'
import { answersIn } from '../support/raw-answers.ts'
import { socketPair } from '../support/socket-pair.ts'

const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

/** A server that answers as told, and the outcomes of its exchanges. */
async function answering(
  respond: (exchange: Exchange) => unknown,
): Promise<{ url: string; outcomes: Promise<Outcome>[]; ask: (bytes: string) => Promise<RawPeer> }> {
  const outcomes: Promise<Outcome>[] = []
  const url = await startHttp1Server((exchange) => {
    outcomes.push(new Promise((resolve) => exchange.onEnd(resolve)))
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
  'C21 a response of %s arrives byte for byte, at once or in turns, with a length or in chunks',
  async (_, pieces) => {
    const whole = Buffer.concat(pieces)
    const ways: ((exchange: Exchange) => unknown)[] = [
      (exchange) => {
        for (const piece of pieces) exchange.write(piece)
        exchange.end()
      },
      async (exchange) => {
        for (const piece of pieces) {
          await turn()
          exchange.write(piece)
        }
        await turn()
        exchange.end()
      },
      (exchange) => {
        for (const piece of pieces.slice(0, -1)) exchange.write(piece)
        exchange.end(pieces.at(-1))
      },
    ]
    for (const fields of [[], ['Content-Length', String(whole.length)]]) {
      for (const way of ways) {
        const { ask, outcomes } = await answering((exchange) => {
          exchange.begin({ ...HEAD, fields: [...HEAD.fields, ...fields] })
          way(exchange)
        })
        const raw = await ask(REQUEST.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
        const [answer] = answersIn(await raw.closed)
        expect(answer?.header('X-Own')).toBe('yes')
        expect(answer?.body).toEqual(whole)
        expect(await outcomes[0]).toEqual({
          status: 200,
          end: 'complete',
          requestBytes: 0,
          responseBytes: whole.length,
        })
      }
    }
  },
)

it('C23 the head of a stream leaves before there is any of its body, and a first piece before there is a second', async () => {
  let running: Exchange | undefined
  const { ask } = await answering((exchange) => {
    running = exchange
    exchange.begin(HEAD)
  })
  const raw = await ask(REQUEST)
  await raw.waitFor('\r\n\r\n')
  running?.write(Buffer.from('first'))
  await raw.waitFor('5\r\nfirst\r\n')
})

it.each([
  ['shorter', (exchange: Exchange) => exchange.end(Buffer.from('only'))],
  ['longer', (exchange: Exchange) => exchange.end(Buffer.from('only this and'))],
  [
    'longer, in pieces',
    (exchange: Exchange) => {
      exchange.write(Buffer.from('only this'))
      exchange.write(Buffer.from(' and'))
      exchange.end()
    },
  ],
])(
  'C24 a body that is %s than its length is a broken transfer, and nothing of what is too much is sent',
  async (_, respond) => {
    const { ask, outcomes } = await answering((exchange) => {
      exchange.begin({ ...HEAD, fields: ['Content-Length', '9'] })
      respond(exchange)
    })
    const raw = await ask(REQUEST)
    expect(await raw.closed).not.toContain('and')
    expect((await outcomes[0])?.end).toBe('cut')
  },
)

const persistence: readonly (readonly [string, string, readonly string[], string])[] = [
  ['HTTP/1.1', '', ['Content-Length', '2'], 'keep-alive'],
  ['HTTP/1.1', '', [], 'keep-alive'],
  ['HTTP/1.1', 'Connection: x, Close', ['Content-Length', '2'], 'close'],
  ['HTTP/1.0', '', ['Content-Length', '2'], 'close'],
  ['HTTP/1.0', 'Connection: Keep-Alive', ['Content-Length', '2'], 'keep-alive'],
  ['HTTP/1.0', 'Connection: Keep-Alive', [], 'close'],
]

it.each(persistence)(
  'C21 %s "%s", answered with %j: the connection is told to %s, and does',
  async (version, field, fields, said) => {
    const { ask } = await answering((exchange) => {
      exchange.begin({ ...HEAD, fields })
      exchange.end(Buffer.from('ok'))
    })
    const request = `GET / ${version}\r\nHost: x\r\n${field === '' ? '' : `${field}\r\n`}\r\n`
    const raw = await ask(request)
    if (said === 'keep-alive') {
      await raw.waitFor('ok')
      raw.write(request)
      raw.end()
    }
    const answers = (await raw.closed).split('HTTP/1.1 ').slice(1)
    expect(answers).toHaveLength(said === 'keep-alive' ? 2 : 1)
    for (const answer of answers) {
      expect(answer).toContain(`\r\nConnection: ${said}\r\n`)
      expect(answer.includes('\r\nKeep-Alive: timeout=60\r\n')).toBe(said === 'keep-alive')
      expect(answer.includes('Transfer-Encoding')).toBe(version === 'HTTP/1.1' && fields.length === 0)
    }
  },
)

it.each([
  ['HEAD', 200, ['Content-Length', '1000']],
  ['HEAD', 200, []],
  ['GET', 204, []],
  ['GET', 304, ['Content-Length', '1000']],
])(
  'C21 %s answered with %i %j: the head is all, and the next answer follows',
  async (method, status, fields) => {
    const { ask } = await answering((exchange) => {
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

it('C21 the device’s own Date is kept, and one is added where it sent none', async () => {
  const dates: (readonly string[])[] = []
  for (const fields of [[], ['date', 'yesterday']]) {
    const { ask } = await answering((exchange) => {
      exchange.begin({ ...HEAD, fields: ['Content-Length', '0', ...fields] })
      exchange.end()
    })
    const raw = await ask(REQUEST)
    const [answer] = answersIn(await raw.waitFor('\r\n\r\n'))
    dates.push(answer?.values('date') ?? [])
  }
  expect(dates).toEqual([
    [expect.stringMatching(/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/)],
    ['yesterday'],
  ])
  expect(Math.abs(Date.parse(dates[0]?.[0] ?? '') - Date.now())).toBeLessThan(5000)
})

it('C18 a whole answer carries its length, in bytes, whatever its letters', async () => {
  const { ask } = await answering((exchange) => exchange.reply({ status: 200, fields: [], body: 'naïve €' }))
  const raw = await ask(REQUEST.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
  const [answer] = answersIn(await raw.closed)
  expect([answer?.header('Content-Length'), answer?.text]).toEqual(['10', 'naïve €'])
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
  ['second length', 200, 'OK', ['Content-Length', '1', 'content-length', '1']],
  ['framing of its own', 200, 'OK', ['transfer-encoding', 'gzip']],
  ['connection of its own', 200, 'OK', ['Connection', 'close']],
])(
  'C24 a head with a %s that HTTP/1 cannot carry is refused before anything is sent: %j %j %j',
  async (_, status, reason, fields) => {
    let thrown: unknown
    const { ask } = await answering((exchange) => {
      try {
        exchange.begin({ status, reason, fields })
      } catch (error) {
        thrown = error
        expect(exchange.answered).toBe(false)
        exchange.reply({ status: 500, fields: [], body: 'refused' })
      }
    })
    expect(await (await ask(REQUEST)).waitFor('refused')).toMatch(/^HTTP\/1\.1 500 Internal Server Error\r\n/)
    expect(thrown).toBeInstanceOf(Error)
  },
)

it('C21 a client that reads nothing stops the writer, and one that reads on lets it go on', async () => {
  let taken = true
  const drained = Promise.withResolvers<void>()
  const { ask } = await answering((exchange) => {
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

it('C24 a response that only the end of the connection ends breaks visibly, also while its last piece waits for the turn to end', async () => {
  const other = await socketPair()
  const { ask, outcomes } = await answering(async (exchange) => {
    exchange.begin({ ...HEAD, fields: [] })
    exchange.write(EVERY_BYTE)
    await turn()
    writeSoon(other.from, 'the first of this turn')
    exchange.end(EVERY_BYTE)
    exchange.cut()
  })
  const raw = await ask('GET / HTTP/1.0\r\n\r\n')
  await raw.closed
  expect(raw.error).toMatchObject({ code: 'ECONNRESET' })
  expect(await outcomes[0]).toMatchObject({ end: 'cut' })
})
