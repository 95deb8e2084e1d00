import { describe, expect, it } from 'vitest'
import type { Received } from '../../src/verify/exchange.ts'
import { createOutage } from '../../src/verify/server-clock.ts'

const START = Date.parse('2026-11-22T12:00:00Z')

/** A response, or the lack of one, `seconds` after the start. */
function answerAt(seconds: number, changes: Partial<Received> = {}): Received {
  const at = START + seconds * 1000
  return { status: 200, fields: new Map(), body: '', failure: undefined, at, sentAt: at, ms: 1, ...changes }
}

const closed = (seconds: number): Received =>
  answerAt(seconds, { status: 0, failure: 'the connection was closed without a response' })

const refused = (seconds: number): Received =>
  answerAt(seconds, { status: 0, failure: 'no response: connect ECONNREFUSED', unreachable: true })

const outageOf = (answers: readonly Received[], sent: 'alone' | 'in a burst' = 'alone') => {
  const outage = createOutage('http://device.example')
  for (const answer of answers) outage.note(answer, sent)
  return outage
}

describe('An outage', () => {
  it('is five failures in a row, each a little apart, and has a start', () => {
    const dead = [0, 2, 4, 6].map(refused)
    outageOf(dead)
    expect(() => outageOf([...dead, refused(8)])).toThrow(
      'http://device.example has not responded since 2026-11-22T12:00:00.000Z: no response: connect ECONNREFUSED',
    )
  })

  it('is over with any response, whatever its status', () => {
    outageOf(
      [0, 2, 4, 6].flatMap((at) => [refused(at), answerAt(at + 1, { status: 500 })]).concat(refused(8)),
    )
  })

  it('is none if a server closes the connection on many odd requests at once', () => {
    outageOf(Array.from({ length: 50 }, (_, i) => closed(i / 50)))
  })

  it('counts a burst as one', () => {
    outageOf(
      Array.from({ length: 50 }, (_, i) => closed(i)),
      'in a burst',
    )
  })

  it('leaves a server that has crashed the time to start again, and no other server', () => {
    expect(outageOf([closed(0), refused(0.01)]).pauseBefore(START + 500)).toBe(1510)
    expect(outageOf([closed(0)]).pauseBefore(START + 10)).toBe(0)
    expect(outageOf([refused(0), answerAt(1)]).pauseBefore(START + 1001)).toBe(0)
  })
})
