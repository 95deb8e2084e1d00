import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compareAnswers } from './answers-compared.ts'
import { type Read, readAnswer } from './responses-read.ts'

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')
const read = (text: string, method?: string): Read => readAnswer([latin1(text)], method)
const whole = (head: Read['head'], body: string): Read => ({
  interim: [],
  head,
  body,
  end: 'whole',
  sloppy: false,
})

/** Answers of every shape that a device has. */
const ANSWERS: readonly string[] = [
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello',
  'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
  'HTTP/1.0 404 Not here, Gr\xfc\xdfe\r\nServer: old/1\r\n\r\nuntil the end',
  'HTTP/1.1 200\r\nConnection: close\r\n\r\n',
  'HTTP/1.1 204 No Content\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nX-Empty:\r\nX-Blank: \t \r\n\r\n',
  'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: "x"\r\n\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n00a\r\n0123456789\r\n0\r\nX-T: late\r\n\r\n',
  'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
  '\r\n\r\nHTTP/1.1 500 Oh\r\nKeep-Alive: timeout=5\r\nContent-Length: 3\r\n\r\nno!\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding:\tchunked\t\r\nX-A: \t"b\tc"\t \r\n\r\n5;x="a\tb"\r\n1\t2\t3\r\n0\r\nX-T: a\t\r\n\r\n',
  'HTTP/1.1 200 \tOK\t\r\nConnection: x\t,\tclose\t\r\nContent-Length:\t3\t\r\n\r\n\t\t\t',
  `HTTP/1.1 200 OK\r\nX-Long: ${'y'.repeat(300)} \t\r\nContent-Length: 1\r\n\r\nz`,
]

describe('An answer of the device', () => {
  it('H54 follows an interim one of HTTP/1.0, or that says close', () => {
    const interim = 'HTTP/1.0 102 Wait\r\nConnection: close\r\n\r\n'
    expect(read(interim + ANSWERS[1])).toEqual({
      ...read(ANSWERS[1] ?? ''),
      interim: [[102, ['Connection', 'close']]],
    })
  })

  it('C21 is taken byte for byte: status, reason, fields in order, casing and repeats, body', () => {
    expect(read(ANSWERS[2] ?? '')).toEqual(
      whole([404, 'Not here, Gr\xfc\xdfe', ['Server', 'old/1']], 'until the end'),
    )
    expect(read(ANSWERS[4] ?? '')).toEqual(
      whole(
        [204, 'No Content', ['Set-Cookie', 'a=1', 'set-cookie', 'b=2', 'X-Empty', '', 'X-Blank', '']],
        '',
      ),
    )
    expect(read(ANSWERS[6] ?? '')).toEqual(whole([200, 'OK', ['Transfer-Encoding', 'chunked']], 'hello!'))
    expect(read(ANSWERS[8] ?? '')).toEqual({
      ...whole([200, 'OK', ['Content-Length', '2']], 'ok'),
      interim: [[103, ['Link', '</a>']]],
    })
  })

  it('C21 may have tabs for blanks around its values (RFC 9110 §5.6.3), and keeps those within', () => {
    expect(read(ANSWERS[10] ?? '')).toEqual(
      whole([200, 'OK', ['Transfer-Encoding', 'chunked', 'X-A', '"b\tc"']], '1\t2\t3'),
    )
    expect(read(ANSWERS[11] ?? '')).toEqual(
      whole([200, '\tOK\t', ['Connection', 'x\t,\tclose', 'Content-Length', '3']], '\t\t\t'),
    )
  })

  it.each(['\xa0', '\x0b', '\f'])('C21 has no blank in %j: where that frames it, it is malformed', (odd) => {
    for (const value of [
      `Content-Length: 0${odd}`,
      `Content-Length:${odd}0`,
      `Transfer-Encoding: chunked${odd}`,
    ])
      expect(read(`HTTP/1.1 200 OK\r\n${value}\r\n\r\n`).end).toBe('malformed')
  })

  it.each([
    'HTTP/1.1\t200 OK',
    'HTTP/1.1 200\tOK',
    'HTTP/1.1 200\t',
    'HTTP/1.1 \t200 OK',
    '\tHTTP/1.1 200 OK',
  ])('C21 has spaces and no tabs between the parts of its first line: %j', (line) => {
    expect(read(`${line}\r\nContent-Length: 0\r\n\r\n`).end).toBe('malformed')
  })

  it.each(['X-A\t: b', '\tX-A: b', 'X-B: a\r\n\tb'])('C21 has no tab elsewhere in its head: %j', (line) => {
    expect(read(`HTTP/1.1 200 OK\r\n${line}\r\nContent-Length: 0\r\n\r\n`).end).toBe('malformed')
  })

  it('C21 ends with its head where the request was HEAD, and at 204 and 304, whatever its fields say', () => {
    const fields = ['Content-Length', '5', 'ETag', '"x"']
    expect(read(ANSWERS[5] ?? '')).toEqual(whole([304, 'Not Modified', fields], ''))
    expect(read('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', 'HEAD')).toEqual(
      whole([200, 'OK', ['Content-Length', '5']], ''),
    )
    expect(read('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', 'HEAD').end).toBe('whole')
  })

  it.each<[string, string, string]>([
    ['nothing at all', '', 'open'],
    ['half of a head', 'HTTP/1.1 200 OK\r\nContent-', 'open'],
    ['a body shorter than it said', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell', 'incomplete'],
    ['a cut chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel', 'incomplete'],
    ['no last chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n', 'incomplete'],
    [
      'a status that there is not',
      'HTTP/1.1 099 What\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
      'malformed',
    ],
    ['no HTTP', 'SSH-2.0-dropbear\r\n', 'malformed'],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab', 'malformed'],
    [
      'a length beside chunks',
      'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      'malformed',
    ],
    ['a folded field', 'HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 0\r\n\r\n', 'malformed'],
    ['a bare LF', 'HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n', 'malformed'],
    ['a NUL in a value', 'HTTP/1.1 200 OK\r\nX-A: b\0c\r\nContent-Length: 0\r\n\r\n', 'malformed'],
    [
      'another protocol, unasked',
      'HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
      'malformed',
    ],
    ['no end of interim answers', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(17), 'malformed'],
    [
      'a head of more than 64 KiB',
      `HTTP/1.1 200 OK\r\nX: ${'y'.repeat(65_536)}\r\nContent-Length: 0\r\n\r\n`,
      'too-large',
    ],
    ['a head without end', `HTTP/1.1 200 ${'y'.repeat(65_536)}`, 'too-large'],
    [
      'trailers of more than 64 KiB',
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n${'X-T: trailing\r\n'.repeat(9000)}\r\n`,
      'too-large',
    ],
  ])('C24 that is %s has a name for its fault', (_name, bytes, fault) => {
    expect(read(bytes).end).toBe(fault)
  })

  it('C24 shows what was good in front of a fault', () => {
    const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngood\r\nbad'
    expect(read(chunked)).toMatchObject({ head: [200, 'OK', ['Transfer-Encoding', 'chunked']], body: 'good' })
  })

  it.each([
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil',
    'HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\nevil',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n0\r\n\r\n',
  ])('C24 is told from what stands behind it: %j', (bytes) => {
    expect(read(bytes).end).toBe('whole, with more behind it')
  })
})

const answer = fc.constantFrom(...ANSWERS)

/** Cuts, repeats, and puts in what parsers stumble over. */
const mutated = fc
  .tuple(
    answer,
    fc.array(
      fc.record({
        at: fc.nat(400),
        drop: fc.nat(3),
        put: fc.oneof(
          fc.constantFrom(
            '\r',
            '\n',
            '\r\n',
            ' ',
            '\t',
            '\0',
            ':',
            ',',
            ';',
            '0',
            '1',
            '-',
            '+',
            'x',
            '\xff',
            'HTTP/1.1 ',
          ),
          fc.constantFrom(
            '\r\nContent-Length: 1',
            '\r\nTransfer-Encoding: chunked',
            '\r\n y',
            '\r\nConnection: close',
          ),
          fc.constant(''),
        ),
      }),
      { maxLength: 3 },
    ),
  )
  .map(([text, changes]) =>
    changes.reduce((now, { at, drop, put }) => {
      const place = at % (now.length + 1)
      return now.slice(0, place) + put + now.slice(place + drop)
    }, text),
  )

/** Answers that break RFC 9112 in a way that old firmware has. */
const sloppyAnswer = mutated.chain((text) =>
  fc.constantFrom(
    text.replaceAll('\r\n', '\n'),
    text.replace('HTTP/', 'http/'),
    text.replace(': ', ' : '),
    text.replace('\r\n', '\r\r\n'),
    text.replace('Content-Length: 5', 'Content-Length: 5, 5'),
  ),
)

const cuts = fc.array(fc.nat(400), { maxLength: 8 })

function piecesOf(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b)
  return [...places, bytes.length].map((end, i) => bytes.subarray(places[i - 1] ?? 0, end))
}

describe('The reader of answers', () => {
  it('finds the same byte by byte', () => {
    for (const text of ANSWERS) {
      const bytes = latin1(text)
      expect(readAnswer(Array.from(bytes, (byte) => Buffer.of(byte)))).toEqual(read(text))
    }
  })

  it('takes by the strict rules nothing that Node does not take likewise, by `auto` the same or what the tolerant ones take, and by all of them the same however the bytes are split', async () => {
    let taken = 0
    let sloppy = 0
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(mutated, sloppyAnswer),
        cuts,
        fc.constantFrom('GET', 'HEAD'),
        async (text, places, method) => {
          const found = await compareAnswers(piecesOf(latin1(text), places), method)
          if (found.strict) taken += 1
          if (found.sloppy) sloppy += 1
          expect(found.disagreements).toEqual([])
        },
      ),
      { numRuns: 5000 },
    )
    expect(taken).toBeGreaterThan(500)
    expect(sloppy).toBeGreaterThan(300)
  })
})
