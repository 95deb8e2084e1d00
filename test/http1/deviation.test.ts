import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type Deviation, headDeviation } from '../../src/http1/deviation.ts'
import { HeadMemory } from '../../src/http1/head-memory.ts'
import { ResponseReader } from '../../src/http1/response-reader.ts'
import { runCases } from '../support/cases.ts'
import { bytesOf } from '../support/shown-bytes.ts'

const ignore = (): void => {}

/** What a reader says of a response that only the tolerant rules read. */
function deviationOf(response: string): Deviation | undefined {
  let found: Deviation | undefined
  const reader = new ResponseReader(
    {
      ...{ onInterim: ignore, onHead: ignore, onBody: ignore, onWhole: ignore, onFault: ignore },
      onMalformed(deviation) {
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
// `at` is the part of the response that shows the fault.
runCases(join(import.meta.dirname, 'deviations.txt'), {
  given: ['bytes'],
  results: ['fault', 'at'],
  play({ bytes = '' }) {
    const found = deviationOf(bytesOf(bytes).toString('latin1'))
    return { fault: found?.fault, at: found?.bytes }
  },
})

it('H272 of a long line, what stands around the fault is shown', () => {
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
