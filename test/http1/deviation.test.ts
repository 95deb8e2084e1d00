import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Deviation, headDeviation } from '../../src/http1/deviation.ts'
import { HeadMemory } from '../../src/http1/head-memory.ts'
import { ResponseReader } from '../../src/http1/response-reader.ts'

const ignore = (): void => {}

/** What a reader says of a response that only the tolerant rules read. */
function deviationOf(response: string): Deviation | undefined {
  let found: Deviation | undefined
  const reader = new ResponseReader(
    {
      ...{ onInterim: ignore, onHead: ignore, onBody: ignore, onWhole: ignore, onFault: ignore },
      onSloppy(deviation) {
        found = deviation
      },
    },
    new HeadMemory(4),
  )
  reader.expect('GET', 'auto')
  const bytes = Buffer.from(response, 'latin1')
  reader.receive(bytes, bytes.length, Number.POSITIVE_INFINITY)
  return found
}

const headOf = (...lines: readonly string[]): string => `HTTP/1.1 200 OK\r\n${lines.join('\r\n')}\r\n\r\n`
const bodyOf = (body: string): string => headOf('Transfer-Encoding: chunked') + body

const ROWS: readonly (readonly [response: string, fault: string, bytes: string])[] = [
  ['http/1.1 200 ok\r\n\r\n', 'a status line that is not that of HTTP/1.1', 'http/1.1 200 ok\\r\\n'],
  [
    'HTTP/1.1 200 k3y=v\x01\r\n\r\n',
    'a status line that is not that of HTTP/1.1',
    'xxxx/x.x xxx xxx=x\\x01\\r\\n',
  ],
  ['HTTP/1.1 200 OK\n\n', 'a line that ends with LF alone', 'HTTP/1.1 200 OK\\n'],
  [headOf('A: b\r'), 'a line that ends with CR CR LF', 'A: x\\r\\r\\n'],
  [headOf('Set-Cookie : sid=s3cret'), 'a blank before a colon', 'Set-Cookie : xxx=xxxxxx\\r\\n'],
  [headOf('Server: x', ' folded s3cret'), 'a folded line', ' xxxxxx xxxxxx\\r\\n'],
  [headOf('PHP Warning at 7'), 'a line without a colon', 'xxx xxxxxxx xx x\\r\\n'],
  [headOf('Q(1): 2'), 'a character that no field name may have', 'x(x): x\\r\\n'],
  [
    headOf('Authorization: Basic dXNlcg==\x01'),
    'a control character in a value',
    'Authorization: xxxxx xxxxxx==\\x01\\r\\n',
  ],
  [
    headOf('Content-Type: text/html\rSet-Cookie: sid=abc'),
    'a control character in a value',
    'Content-Type: text/html\\rxxx-xxxxxx: xxx=xxx\\r\\n',
  ],
  [headOf(': x'), 'a character that no field name may have', ': x\\r\\n'],
  [headOf('Connection: close\x01'), 'a control character in a value', 'Connection: close\\x01\\r\\n'],
  [
    headOf('Transfer-Encoding: identity, chunked'),
    'a length or transfer coding that is not certain',
    'Transfer-Encoding: identity, chunked\\r\\n',
  ],
  [
    headOf('Content-Length: 2', 'Content-Length: 2'),
    'a length or transfer coding that is not certain',
    'Content-Length: 2\\r\\nContent-Length: 2\\r\\n',
  ],
  [bodyOf(' 5 \r\nhello\r\n0\r\n\r\n'), 'a malformed line of a chunk', ' 5 \\r\\n'],
  [bodyOf('5\r\nhello0\r\n\r\n'), 'a chunk whose data ends without CR LF', '0\\r\\n\\r\\n'],
  [bodyOf('5\r\nhello\r\n0\r\ns3cret\r\n\r\n'), 'malformed trailers', 'xxxxxx\\r\\n\\r\\n'],
]

describe('H272 a response that only the tolerant rules read', () => {
  it.each(ROWS)('%j: its fault is named', (response, fault, bytes) => {
    expect(deviationOf(response)).toEqual({ fault, bytes })
  })

  it('of a long line, what stands around the fault is shown', () => {
    expect(deviationOf(`http/1.1 200 ${'a'.repeat(100)}\r\n\r\n`)?.bytes).toBe(
      `http/1.1 200 ${'a'.repeat(76 - 13)}`,
    )
    const found = deviationOf(headOf(`X: ${'a'.repeat(500)}\x02${'b'.repeat(500)}`))
    expect(found?.bytes).toBe(`${'x'.repeat(38)}\\x02${'x'.repeat(34)}`)
    for (const [end, shown] of [
      ['\n', '\\n'],
      ['\r\r\n', '\\r\\r\\n'],
    ] as const)
      expect(deviationOf(`HTTP/1.1 200 OK\r\nX: ${'a'.repeat(500)}${end}\r\n`)?.bytes).toBe(
        `${'x'.repeat(38 - end.length)}${shown}`,
      )
  })
})

it('H272 no secret of a response reaches the words about its fault', () => {
  const secret = 'q7W3r9T1y5U2'
  const whole = headOf(
    `Set-Cookie: sid=${secret}; Path=/`,
    `Authorization: Bearer ${secret}`,
    'Content-Type: text/html',
    `Location: /x?token=${secret}`,
    `X-Csrf: ${secret}`,
  )
  const change = fc.record({
    at: fc.nat({ max: whole.length - 1 }),
    put: fc.constantFrom('\n', '\r', '\r\n', '\0', ' ', '\t', ':', ';', '\xff', '\\', ''),
    over: fc.nat({ max: 2 }),
  })
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 3 }), (changes) => {
      const head = changes.reduce(
        (text, { at, put, over }) => text.slice(0, at) + put + text.slice(at + over),
        whole,
      )
      const { bytes } = headDeviation(head)
      expect(bytes).toMatch(/^[ -~]{0,76}$/)
      for (let i = 0; i + 4 <= secret.length; i += 1) expect(bytes).not.toContain(secret.slice(i, i + 4))
    }),
    {
      numRuns: 1000,
      // The device has forgotten a line end.
      examples: [
        [
          [
            { at: 114, put: ';', over: 2 },
            { at: 138, put: '\n', over: 0 },
          ],
        ],
      ],
    },
  )
})
