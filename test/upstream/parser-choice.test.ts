import { describe, expect, it } from 'vitest'
import { DeviceFault } from '../../src/upstream/failure.ts'
import { MalformedAnswer } from '../../src/upstream/malformed-answer.ts'
import { createParserChoice, type ParserChoice, type ParserMode } from '../../src/upstream/parser-choice.ts'
import type { RelayEnd } from '../../src/upstream/relay.ts'

function codedError(name: string, code: string | undefined, message = 'as Node says it'): Error {
  return Object.assign(new Error(message), { name }, code === undefined ? {} : { code })
}

const failed = (error: unknown): RelayEnd => ({ kind: 'failed', error, silent: false })

const refused: readonly (readonly [string, unknown])[] = [
  ['what cannot be read or handed on', new MalformedAnswer()],
]

const otherwise: readonly (readonly [string, RelayEnd])[] = [
  ['was relayed', { kind: 'relayed' }],
  ['was abandoned by its client', { kind: 'abandoned' }],
  ['met a closed connection', failed(new DeviceFault('connection_terminated'))],
  ['was cut within its body', failed(new DeviceFault('http_response_incomplete'))],
  ['met nobody', failed(codedError('Error', 'ECONNREFUSED'))],
  ['waited too long', failed(new DeviceFault('http_response_timeout'))],
  ['was answered with too large a head', failed(new DeviceFault('http_response_header_section_size'))],
  ['broke its own upload', failed(codedError('BrokenBodyError', undefined))],
  ['met a flood of interim answers', failed(new DeviceFault('http_protocol_error'))],
  ['met a bug', failed(new TypeError('not a function'))],
]

function choose(mode: ParserMode): { readonly choice: ParserChoice; readonly warnings: number } {
  let warnings = 0
  const choice = createParserChoice(mode, () => {
    warnings += 1
  })
  return {
    choice,
    get warnings() {
      return warnings
    },
  }
}

describe('The parser', () => {
  it.each(refused)('auto turns tolerant for good, once, at %s', (_name, error) => {
    const watch = choose('auto')
    const { choice } = watch
    expect(choice.lane).toBe('strict')
    expect(choice.strictEnded(failed(error))).toBe(true)
    expect(choice.lane).toBe('tolerant')
    // Requests that were under way in the strict lane may be repeated too, without another warning.
    expect(choice.strictEnded(failed(error))).toBe(true)
    expect(choice.strictEnded({ kind: 'relayed' })).toBe(false)
    expect(choice.lane).toBe('tolerant')
    expect(watch.warnings).toBe(1)
  })

  it('auto turns tolerant at a malformed body, but repeats nothing that the client has seen begin', () => {
    const { choice } = choose('auto')
    const error = new MalformedAnswer()
    expect(choice.strictEnded({ kind: 'broken', error })).toBe(false)
    expect(choice.lane).toBe('tolerant')
  })

  it.each(otherwise)('auto stays strict after a request that %s', (_name, end) => {
    const { choice } = choose('auto')
    expect(choice.strictEnded(end)).toBe(false)
    expect(choice.lane).toBe('strict')
  })

  it.each(['strict', 'tolerant'] as const)('%s stays so', (mode) => {
    const watch = choose(mode)
    const { choice } = watch
    expect(choice.strictEnded(failed(new MalformedAnswer()))).toBe(false)
    expect(choice.lane).toBe(mode)
    expect(watch.warnings).toBe(0)
  })
})
