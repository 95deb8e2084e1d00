import { describe, expect, it } from 'vitest'
import { BodyPieces, ChunkedBody, type ChunkRules, pieceOf, takenOf } from '../../src/http1/body.ts'
import { LARGE_PIECE } from '../../src/system/write-soon.ts'

const STRICT: ChunkRules = { longestExtension: 10, mostExcess: 20, longestTrailers: 64, tolerant: false }

/** Bytes of an earlier read, behind those of this one: a reader that looks at them finds an end that has not come. */
const STALE = '\n\r\n0\r\n\r\n'

/** What a body holds that arrives in these pieces: its data, and how many bytes belong to it. */
function read(pieces: readonly string[], rules: ChunkRules = STRICT) {
  const body = new ChunkedBody(rules)
  let data = ''
  let after = 0
  let before = 0
  for (const piece of pieces) {
    const bytes = Buffer.from(`>${piece}${STALE}`, 'latin1')
    after = body.read(bytes, 1, 1 + piece.length, (start, end) => {
      data += bytes.toString('latin1', start, end)
    })
    if (after < 0 || body.done) break
    before += piece.length
  }
  const end = after < 0 ? (body.tooLong ? 'too long' : 'refused') : body.done ? before + after - 1 : 'more'
  return { data, end }
}

const LAST = '0\r\n\r\n'

const NEXT = 'GET /'

/** Reads a message whole, cut in two at every place, and byte by byte: what each way has read, each result once. The next message follows. */
function readings(body: string, rules?: ChunkRules): unknown[] {
  const text = body + NEXT
  const cuts = Array.from({ length: text.length }, (_, at) => [text.slice(0, at), text.slice(at)])
  const found = [[text], ...cuts, [...text]].map((pieces) => {
    const { data, end } = read(
      pieces.filter((piece) => piece !== ''),
      rules,
    )
    return JSON.stringify([data, end === body.length ? 'whole' : end])
  })
  return [...new Set(found)].map((each) => JSON.parse(each))
}

const chunk = (data: string, extension = ''): string =>
  `${data.length.toString(16)}${extension === '' ? '' : `;${extension}`}\r\n${data}\r\n`

describe('A chunked body', () => {
  it('H96 ends where it ends, and is not read beyond the bytes that have come', () => {
    const text = `${chunk('hello')}${chunk('!', 'a=b')}0;c\r\nX-T: 1\r\n\r\n`
    expect(readings(text)).toEqual([['hello!', 'whole']])
    expect(read([`${text}GET / HTTP/1.1`])).toEqual({ data: 'hello!', end: text.length })
    for (let at = 1; at < text.length; at += 1) expect(read([text.slice(0, at)]).end).toBe('more')
  })

  it('H84 has extensions of one chunk to their limit, and not a byte more', () => {
    expect(readings(chunk('hello', 'a'.repeat(10)) + LAST)).toEqual([['hello', 'whole']])
    expect(readings(chunk('hello', 'a'.repeat(11)) + LAST)).toEqual([['', 'refused']])
    expect(readings(`0;${'a'.repeat(10)}\r\n\r\n`)).toEqual([['', 'whole']])
  })

  it('H84 has extensions that exceed its data by their limit, and not a byte more; data pays for them', () => {
    const greedy = chunk('hello', 'a'.repeat(10))
    expect(read([greedy.repeat(4) + LAST])).toMatchObject({
      data: 'hello'.repeat(4),
      end: expect.any(Number),
    })
    expect(read([greedy.repeat(5)])).toEqual({ data: 'hello'.repeat(4), end: 'refused' })
    const paid = greedy.repeat(4) + chunk('x'.repeat(40), 'a')
    expect(read([paid + greedy.repeat(4)]).end).toBe('more')
    expect(read([paid + greedy.repeat(5)]).end).toBe('refused')
    // Only data of a chunk with extensions pays.
    expect(read([greedy.repeat(4) + chunk('x'.repeat(40)) + greedy]).end).toBe('refused')
  })

  it('C20 has chunks of up to 2^53 - 1 bytes, with two zeros before the digits', () => {
    expect(read(['001fffffffffffff\r\nx'])).toEqual({ data: 'x', end: 'more' })
    for (const size of ['20000000000000', '0001fffffffffffff'])
      expect(read([`${size}\r\n`]).end, size).toBe('refused')
  })

  it('C24 has trailers to their limit, and not a byte more', () => {
    const trailers = (size: number): string => `0\r\nX-T: ${'t'.repeat(size - 9)}\r\n\r\n`
    expect(readings(trailers(64))).toEqual([['', 'whole']])
    expect(readings(trailers(65))).toEqual([['', 'too long']])
    expect(readings('0\r\nX-T : 1\r\n\r\n')).toEqual([['', 'refused']])
  })

  it('H51 by the tolerant rules ends with its data, whatever its trailers are', () => {
    const tolerant = { ...STRICT, tolerant: true }
    expect(readings('5 \nhello\n0\r\r\n', tolerant)).toEqual([['hello', 'whole']])
    expect(read(['5\r\nhello\r\n0\r\nX-T : 1\r\n\r\n'], tolerant)).toEqual({ data: 'hello', end: 13 })
    expect(read(['5\r\nhello0\r\nrest'], { ...tolerant, longestTrailers: undefined }).end).toBe(11)
    // The rest of a line that is too long is not waited for.
    expect(read([' '.repeat(50)], tolerant).end).toBe('refused')
    expect(read(['5 x'], tolerant).end).toBe('refused')
  })
})

describe('A piece of a body', () => {
  const bytes = (size: number): Buffer => Buffer.alloc(size, 'abcdefg')

  it('is copied, unless it is large, and the first of its read', () => {
    expect(takenOf(0, LARGE_PIECE - 1, 1)).toBe('small')
    expect(takenOf(0, LARGE_PIECE, LARGE_PIECE + 1)).toBe('large')
    expect(takenOf(0, LARGE_PIECE, LARGE_PIECE)).toBe('kept')
    expect(takenOf(1, LARGE_PIECE, LARGE_PIECE)).toBe('large')
  })

  it.each(['small', 'large', 'kept'] as const)('has its bytes, if it is %s', (taken) => {
    const read = bytes(100)
    const start = taken === 'kept' ? 0 : 3
    for (const end of [100, 90]) {
      const piece = pieceOf(read, start, end, taken)
      expect(piece.toString()).toBe(read.toString('latin1', start, end))
      expect(piece.buffer === read.buffer).toBe(taken === 'kept')
      // Nothing else is in the memory of a large piece, so it goes with it.
      if (taken === 'large') expect(piece.buffer.byteLength).toBe(end - start)
    }
  })

  it('is joined from the chunks of one read, and from none of the read before', () => {
    const pieces = new BodyPieces()
    const read = bytes(3 * LARGE_PIECE)
    const take = (...runs: readonly (readonly [number, number])[]): readonly [string | undefined, string] => {
      for (const [start, end] of runs) pieces.add(start, end)
      const piece = pieces.take(read, LARGE_PIECE)
      return [piece?.toString('latin1'), pieces.taken]
    }
    const text = (start: number, end: number): string => read.toString('latin1', start, end)
    expect(take([2, 5], [7, 8], [10, 20])).toEqual([text(2, 5) + text(7, 8) + text(10, 20), 'small'])
    expect(take()).toEqual([undefined, 'small'])
    expect(take([0, LARGE_PIECE])).toEqual([text(0, LARGE_PIECE), 'kept'])
    expect(take([3, LARGE_PIECE + 3])).toEqual([text(3, LARGE_PIECE + 3), 'large'])
    expect(take([3, 4])).toEqual([text(3, 4), 'small'])
    const halves = [text(0, LARGE_PIECE), text(LARGE_PIECE + 1, 2 * LARGE_PIECE)].join('')
    expect(take([0, LARGE_PIECE], [LARGE_PIECE + 1, 2 * LARGE_PIECE])).toEqual([halves, 'small'])
    expect(take([1, 3], [4, 6])).toEqual([text(1, 3) + text(4, 6), 'small'])
  })
})
