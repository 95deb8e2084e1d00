import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HeadMemory } from '../../src/http1/head-memory.ts'
import { ResponseReader } from '../../src/http1/response-reader.ts'
import { LARGE_PIECE } from '../../src/system/write-soon.ts'
import { compareResponses } from './compare-responses.ts'
import { type Read, readResponse } from './read-response.ts'

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')
const read = (text: string, method?: string): Read => readResponse([latin1(text)], method)
const whole = (head: Read['head'], body: string): Read => ({
  interim: [],
  head,
  body,
  end: 'whole',
  tolerated: false,
})

/** Responses of every kind that a device sends. */
const RESPONSES: readonly string[] = [
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

describe('a response of the device', () => {
  it('H54 may follow an interim response of HTTP/1.0 with Connection: close', () => {
    const interim = 'HTTP/1.0 102 Wait\r\nConnection: close\r\n\r\n'
    expect(read(interim + RESPONSES[1])).toEqual({
      ...read(RESPONSES[1] ?? ''),
      interim: [[102, ['Connection', 'close']]],
    })
  })

  it('C21 is read byte for byte: status, reason, fields with their order, casing and repeats, body', () => {
    expect(read(RESPONSES[2] ?? '')).toEqual(
      whole([404, 'Not here, Gr\xfc\xdfe', ['Server', 'old/1']], 'until the end'),
    )
    expect(read(RESPONSES[4] ?? '')).toEqual(
      whole(
        [204, 'No Content', ['Set-Cookie', 'a=1', 'set-cookie', 'b=2', 'X-Empty', '', 'X-Blank', '']],
        '',
      ),
    )
    expect(read(RESPONSES[6] ?? '')).toEqual(whole([200, 'OK', ['Transfer-Encoding', 'chunked']], 'hello!'))
    expect(read(RESPONSES[8] ?? '')).toEqual({
      ...whole([200, 'OK', ['Content-Length', '2']], 'ok'),
      interim: [[103, ['Link', '</a>']]],
    })
  })

  it('C21 may have tabs around its values (RFC 9110 §5.6.3), and keeps tabs within them', () => {
    expect(read(RESPONSES[10] ?? '')).toEqual(
      whole([200, 'OK', ['Transfer-Encoding', 'chunked', 'X-A', '"b\tc"']], '1\t2\t3'),
    )
    expect(read(RESPONSES[11] ?? '')).toEqual(
      whole([200, '\tOK\t', ['Connection', 'x\t,\tclose', 'Content-Length', '3']], '\t\t\t'),
    )
  })

  it('C21 ends with its head for HEAD, 204 and 304, regardless of its fields', () => {
    const fields = ['Content-Length', '5', 'ETag', '"x"']
    expect(read(RESPONSES[5] ?? '')).toEqual(whole([304, 'Not Modified', fields], ''))
    expect(read('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', 'HEAD')).toEqual(
      whole([200, 'OK', ['Content-Length', '5']], ''),
    )
    expect(read('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', 'HEAD').end).toBe('whole')
  })

  it.each([
    [
      'with 17 interim responses before it',
      `${'HTTP/1.1 100 Continue\r\n\r\n'.repeat(17)}${RESPONSES[1]}`,
      'malformed',
    ],
    [
      'with a head of more than 64 KiB',
      `HTTP/1.1 200 OK\r\nX: ${'y'.repeat(65_536)}\r\nContent-Length: 0\r\n\r\n`,
      'too-large',
    ],
    ['with a head that does not end', `HTTP/1.1 200 ${'y'.repeat(65_536)}`, 'too-large'],
    [
      'with trailers of more than 64 KiB',
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n${'X-T: trailing\r\n'.repeat(9000)}\r\n`,
      'too-large',
    ],
  ])('C24 %s has its fault named', (_name, bytes, fault) => {
    expect(read(bytes).end).toBe(fault)
  })

  it('H51 with a long line that ends with LF alone is noticed at that LF, though little more of the line has come', () => {
    const pieces = [`HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: ${'y'.repeat(1500)}`, 'y\n\n'].map(latin1)
    expect(readResponse(pieces).end).toBe('malformed')
    expect(readResponse(pieces, 'GET', 'auto')).toMatchObject({ end: 'whole', tolerated: true })
  })

  it('C24 is reported up to its fault', () => {
    const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngood\r\nbad'
    expect(read(chunked)).toMatchObject({ head: [200, 'OK', ['Transfer-Encoding', 'chunked']], body: 'good' })
  })
})

describe('the responses on one connection', () => {
  /** A reader and what it tells, in order. */
  function reading() {
    const told: unknown[] = []
    const reader = new ResponseReader(
      {
        onInterim: ({ status }) => told.push(status),
        onHead: ({ status }) => told.push(status),
        onBody: (bytes) => told.push(`${bytes}`),
        onWhole: (last, clean) => told.push([last?.toString(), clean]),
        onFault: (fault) => told.push(fault),
        onMalformed: ({ fault }) => told.push(fault),
        onSwitch: ({ status }, rest) => told.push([status, `${rest}`]),
      },
      new HeadMemory(4),
    )
    return {
      reader,
      /** What it tells of these bytes. */
      of(text: string): readonly unknown[] {
        const bytes = latin1(text)
        reader.receive(bytes, bytes.length, Number.POSITIVE_INFINITY)
        return told.splice(0)
      },
      told: () => told.splice(0),
    }
  }
  const INTERIM = 'HTTP/1.1 103 Early Hints\r\n\r\n'
  const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

  it('C24 are read each for itself: the interim ones, what has come, and whether another may follow', () => {
    const { reader, of } = reading()
    for (const method of ['GET', 'POST', 'GET']) {
      reader.expect(method, 'strict')
      expect([reader.heard, reader.head, reader.persists]).toEqual([false, undefined, false])
      expect(of(INTERIM.repeat(16))).toEqual(Array(16).fill(103))
      expect([reader.heard, reader.persists]).toEqual([true, false])
      expect(of(OK)).toEqual([200, ['ok', true]])
      expect([reader.head?.status, reader.persists]).toEqual([200, true])
    }
    reader.expect('GET', 'strict')
    expect(of(INTERIM.repeat(17))).toEqual([...Array(16).fill(103), 'malformed'])
  })

  it('C24 do not go on after one that only the tolerant rules read, in its head or in its chunks', () => {
    const chunks = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok'
    for (const [text, fault] of [
      [OK.replaceAll('\r\n', '\n'), 'a line that ends with LF alone'],
      [`${chunks}0\r\n`, 'a chunk whose data ends without CR LF'],
    ] as const) {
      const { reader, of } = reading()
      reader.expect('GET', 'auto')
      expect(of(text)).toContain(fault)
      expect([reader.head?.status, reader.persists]).toEqual([200, false])
    }
    const { reader, of } = reading()
    reader.expect('GET', 'auto')
    expect(of(`${chunks}\r\n0\r\n\r\n`)).toEqual([200, ['ok', true]])
    expect(reader.persists).toBe(true)
    // A response without chunks after one with them.
    reader.expect('GET', 'auto')
    expect(of(OK)).toEqual([200, ['ok', true]])
  })

  it('C21 are read the same when their heads repeat, wherever each is cut', () => {
    const { reader, of } = reading()
    for (let cut = 0; cut <= OK.length - 2; cut += 1) {
      reader.expect('GET', 'strict')
      expect([...of(OK.slice(0, cut)), ...of(OK.slice(cut))], `${cut}`).toEqual([200, ['ok', true]])
    }
  })

  it('H51 may have interim ones that only the tolerant rules read, too', () => {
    const text = `${INTERIM}${INTERIM}${OK}`.replaceAll('\r\n', '\n')
    for (const rules of ['auto', 'tolerant'] as const) {
      for (let cut = 0; cut <= text.length - 2; cut += 1) {
        const { reader, of } = reading()
        reader.expect('GET', rules)
        const told = [...of(text.slice(0, cut)), ...of(text.slice(cut))]
        expect(
          told.filter((each) => each !== 'a line that ends with LF alone'),
          `${rules}, ${cut}`,
        ).toEqual([103, 103, 200, ['ok', true]])
      }
    }
  })

  it.each([
    ['of a known length', `HTTP/1.1 200 OK\r\nContent-Length: ${4 * LARGE_PIECE}\r\n\r\n`],
    [
      'in a chunk',
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${(4 * LARGE_PIECE).toString(16)}\r\n`,
    ],
  ])('C21 keep the bytes of a read only if the reader says so: a body %s', (_what, head) => {
    const pieces: Buffer[] = []
    const ignore = (): void => {}
    const reader = new ResponseReader(
      {
        ...{ onInterim: ignore, onHead: ignore, onWhole: ignore, onFault: ignore, onMalformed: ignore },
        onBody: (piece) => pieces.push(piece),
      },
      new HeadMemory(4),
    )
    reader.expect('GET', 'strict')
    const taken = [
      latin1(head),
      Buffer.alloc(LARGE_PIECE, 'a'),
      Buffer.alloc(LARGE_PIECE, 'b'),
      latin1('c'),
    ].map((bytes, i) => {
      const said = reader.receive(bytes, bytes.length, i === 1 ? LARGE_PIECE : LARGE_PIECE + 1)
      // The next read uses the memory again, unless it is kept.
      if (said !== 'kept') bytes.fill('x')
      return said
    })
    expect(taken).toEqual(['small', 'kept', 'large', 'small'])
    expect(pieces.map(String)).toEqual(['a'.repeat(LARGE_PIECE), 'b'.repeat(LARGE_PIECE), 'c'])
  })

  it('C24 have extensions of one chunk of up to 4 KiB', () => {
    const chunks = (size: number): string =>
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;${'x'.repeat(size)}\r\nok\r\n0\r\n\r\n`
    for (const [size, told] of [
      [4096, ['ok', true]],
      [4097, 'malformed'],
    ] as const) {
      const { reader, of } = reading()
      reader.expect('GET', 'strict')
      expect(of(chunks(size))).toEqual([200, told])
    }
  })

  it('C24 end with the connection: whole after a FIN if one has no length, else incomplete, and nothing after that', () => {
    for (const [inOrder, end] of [
      [true, [undefined, true]],
      [false, 'incomplete'],
    ] as const) {
      const { reader, of, told } = reading()
      reader.expect('GET', 'strict')
      reader.finish(inOrder)
      expect(told()).toEqual([])
      expect(of('HTTP/1.1 200 OK\r\n\r\n')).toEqual([200])
      expect(of('some')).toEqual(['some'])
      reader.finish(inOrder)
      reader.finish(inOrder)
      expect(told()).toEqual([end])
    }
    const { reader, of, told } = reading()
    reader.expect('GET', 'strict')
    of('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel')
    reader.close()
    reader.finish(true)
    expect(told()).toEqual([])
  })

  it('C23 switch protocols only if the request asked for it, and the bytes behind the head are of the other one', () => {
    const switching =
      'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nframes'
    const { reader, of } = reading()
    reader.expect('GET', 'strict', true)
    expect(of(switching)).toEqual([[101, 'frames']])
    const other = reading()
    other.reader.expect('GET', 'strict')
    expect(other.of(switching)).toEqual(['malformed'])
  })

  it('C24 have heads of up to 64 KiB, interim ones too, and not a byte more', () => {
    const head = (size: number): string => {
      const [start, end] = ['HTTP/1.1 200 OK\r\nX: ', '\r\nContent-Length: 0\r\n\r\n']
      return start + 'y'.repeat(size - start.length - end.length) + end
    }
    for (const cut of [0, 60_000]) {
      for (const [size, told] of [
        [65_536, [200, [undefined, true]]],
        [65_537, ['too-large']],
      ] as const) {
        const { reader, of } = reading()
        reader.expect('GET', 'strict')
        const text = head(size)
        expect([...of(text.slice(0, cut)), ...of(text.slice(cut))], `${size}, ${cut}`).toEqual(told)
      }
    }
  })
})

const response = fc.constantFrom(...RESPONSES)

/** Cuts, repeats and inserts bytes that are difficult for parsers. */
const mutated = fc
  .tuple(
    response,
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

/** Responses that violate RFC 9112 the way old firmware does. */
const malformedResponse = mutated.chain((text) =>
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

describe('the response reader', () => {
  it('reads the same from single bytes as from one piece', () => {
    for (const text of RESPONSES) {
      const bytes = latin1(text)
      expect(readResponse(Array.from(bytes, (byte) => Buffer.of(byte)))).toEqual(read(text))
    }
  })

  it('agrees with Node where the strict rules accept, falls back from `auto` to the tolerant rules, and ignores how the bytes are split', async () => {
    let accepted = 0
    let tolerated = 0
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(mutated, malformedResponse),
        cuts,
        fc.constantFrom('GET', 'HEAD'),
        async (text, places, method) => {
          const found = await compareResponses(piecesOf(latin1(text), places), method)
          if (found.strict) accepted += 1
          if (found.tolerated) tolerated += 1
          expect(found.disagreements).toEqual([])
        },
      ),
      { numRuns: 2000 },
    )
    expect(accepted).toBeGreaterThan(200)
    expect(tolerated).toBeGreaterThan(120)
  })
})
