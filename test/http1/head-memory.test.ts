import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HeadMemory, NameMemory } from '../../src/http1/head-memory.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { startHttp1Server } from '../listen/http1-server.ts'
import { rawConnection } from '../support/raw.ts'
import { readResponse } from './read-response.ts'

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')

const HEAD = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n'

describe('The memory of heads', () => {
  it('finds a head by its bytes, wherever they stand and whatever follows', () => {
    const memory = new HeadMemory<string>(4)
    memory.keep(latin1(`..${HEAD}ok`), 2, HEAD.length, 'the head')
    const bytes = latin1(`.${HEAD}no`)
    expect(memory.find(bytes, 1, bytes.length)).toEqual({ bytes: latin1(HEAD), head: 'the head' })
  })

  it('keeps two heads that would have the same place, and of three the last two', () => {
    const memory = new HeadMemory<number>(4)
    // Equal in length and in their middle byte.
    const heads = ['a', 'b', 'c'].map((name) => latin1(`${name}: xxxxx\r\n\r\n`))
    for (const [i, head] of heads.entries()) {
      memory.keep(head, 0, head.length, i)
      const found = heads.map((each) => memory.find(each, 0, each.length)?.head)
      expect(found).toEqual(heads.map((_, at) => (at <= i && at > i - 2 ? at : undefined)))
    }
  })

  it('does not find a head of which a byte differs, or that is not complete', () => {
    const memory = new HeadMemory<string>(1)
    memory.keep(latin1(HEAD), 0, HEAD.length, 'the head')
    for (let at = 0; at < HEAD.length; at += 1) {
      const other = latin1(HEAD)
      other[at] = (other[at] ?? 0) ^ 1
      expect(memory.find(other, 0, other.length)).toBeUndefined()
      expect(memory.find(latin1(HEAD), 0, at)).toBeUndefined()
    }
  })

  it('does not keep a long head, and holds no more heads than it was made for', () => {
    const memory = new HeadMemory<number>(3)
    for (const size of [1024, 1025]) {
      const text = `${'y'.repeat(size - 4)}\r\n\r\n`
      expect(memory.keep(latin1(text), 0, size, 0)).toBe(size === 1024)
      const found = memory.find(latin1(text), 0, size)
      expect(found === undefined).toBe(size !== 1024)
    }
    const heads = Array.from({ length: 20 }, (_, i) => `X: ${'y'.repeat(i)}\r\n\r\n`)
    for (const [i, text] of heads.entries()) memory.keep(latin1(text), 0, text.length, i)
    const found = heads.filter((text) => memory.find(latin1(text), 0, text.length) !== undefined)
    expect(found.length).toBeLessThanOrEqual(3)
  })
})

const RESPONSES: readonly string[] = [
  `${HEAD}ok`,
  `${HEAD}no`,
  `\r\n${HEAD}ok`,
  'HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok',
  'HTTP/1.1 200 OK\nContent-Length: 2\n\nok',
]

it('C21 a response is read the same with a memory of heads and without, by all rules and after any others', () => {
  const response = fc.record({
    text: fc.constantFrom(...RESPONSES),
    method: fc.constantFrom('GET', 'HEAD', 'POST'),
    rules: fc.constantFrom('strict' as const, 'auto' as const, 'tolerant' as const),
    cut: fc.nat({ max: 90 }),
  })
  fc.assert(
    fc.property(fc.array(response, { minLength: 2, maxLength: 12 }), (responses) => {
      const known = new HeadMemory<never>(2)
      for (const { text, method, rules, cut } of responses) {
        const pieces = [text.slice(0, cut), text.slice(cut)].filter((piece) => piece !== '').map(latin1)
        expect(readResponse(pieces, method, rules, known)).toEqual(readResponse(pieces, method, rules))
      }
    }),
    { numRuns: 1000 },
  )
})

it('C21 requests on one connection are read the same when their heads repeat, cut anywhere', async () => {
  const seen: string[] = []
  const url = await startHttp1Server((exchange) => {
    seen.push(`${exchange.head.method} ${exchange.head.target}`)
    exchange.respond({ status: 200, fields: [], body: 'ok' })
  })
  const repeated = ['GET /a HTTP/1.1\r\nHost: d\r\n\r\n', '\r\nGET /b HTTP/1.1\r\nHost: d\r\n\r\n']
  const sent: string[] = []
  const client = await rawConnection(url)
  for (let i = 0; i < 60; i += 1) {
    // A new head follows one that was cut within the line end before it.
    const text = (i === 32 ? undefined : repeated[i % 2]) ?? 'HEAD /new HTTP/1.1\r\nHost: d\r\n\r\n'
    const cut = i % text.length
    client.write(text.slice(0, cut))
    // Two turns of the event loop: the server reads in between.
    await nextTurn()
    await nextTurn()
    client.write(text.slice(cut))
    sent.push(text.trim().split(' ').slice(0, 2).join(' '))
    await client.waitFor('HTTP/1.1 200 ')
    client.forget()
  }
  expect(seen).toEqual(sent)
})

describe('The memory of names', () => {
  it('C21 gives each name that is asked for, whatever it remembers', () => {
    const names = new NameMemory()
    const read = (...texts: readonly string[]): string[] =>
      texts.map((text, i) => names.at(i, `>${text}<`, 1, 1 + text.length))
    for (const texts of [
      ['Server', 'Content-Type', 'X-A'],
      ['Server', 'Content-Type', 'X-A'],
      ['server', 'Content-Typ', 'X-AB'],
      ['Servet', 'Content-Type', 'X-A', ''],
      ['', '<', '>', 'X-A'],
      Array.from({ length: 100 }, (_, i) => `X-${i}`),
      Array.from({ length: 100 }, (_, i) => `X-${i + 1}`),
    ])
      expect(read(...texts)).toEqual(texts)
  })
})

it.each(['Set-Cookie: session=1', 'WWW-Authenticate: Digest nonce="1"', 'Location: /?token=1'])(
  'H81 a response head with a secret is not remembered: %s',
  (field) => {
    const known = new HeadMemory<never>(4)
    const text = `HTTP/1.1 200 OK\r\n${field}\r\nContent-Length: 0\r\n\r\n`
    readResponse([latin1(text)], 'GET', 'strict', known)
    expect(known.find(latin1(text), 0, text.length)).toBeUndefined()
    readResponse([latin1(`${HEAD}ok`)], 'GET', 'strict', known)
    expect(known.find(latin1(HEAD), 0, HEAD.length)).toBeDefined()
  },
)
