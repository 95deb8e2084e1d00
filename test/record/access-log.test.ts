import fc from 'fast-check'
import { expect, it, vi } from 'vitest'
import type { Exchange } from '../../src/http/exchange.ts'
import { createAccessLog, createTimestamp } from '../../src/record/access-log.ts'
import { createLogOn } from '../../src/record/log.ts'
import { anyCodePoint } from '../support/any-code-point.ts'
import { closeLater } from '../support/cleanup.ts'
import { movableClock } from '../support/clock.ts'
import { exchangeRecord } from '../support/exchange-record.ts'
import { requestHead } from '../support/request-head.ts'

const FACTS = {
  head: requestHead({ target: '/status?secret=1', fields: [], peer: '127.0.0.1', localPort: 80 }),
  requestId: '0123abc',
  client: '127.0.0.1',
  grant: 'c0ffee',
  requestBytes: 3,
  responseBytes: 27,
  duration: 5.249,
}
const RECORD = exchangeRecord(FACTS)

function accessLines(exchange: Exchange, level = 'info'): string[] {
  const clock = movableClock()
  const lines: string[] = []
  const log = createAccessLog(createLogOn(level, { write: (line) => lines.push(line) }), clock)
  closeLater(log.close)
  log.write(exchange)
  return lines
}

it('a request is logged as one line of JSON in the format of pino, without its query', () => {
  const [line = '', ...further] = accessLines(RECORD)
  expect(further).toEqual([])
  expect(line.endsWith('}\n')).toBe(true)
  const { time, ...others } = JSON.parse(line) as { time: string }
  expect(new Date(time).toISOString()).toBe(time)
  expect(Object.entries(others)).toEqual([
    ['level', 30],
    ['request_id', '0123abc'],
    ['grant', 'c0ffee'],
    ['client', '127.0.0.1'],
    ['method', 'GET'],
    ['path', '/status'],
    ['version', '1.1'],
    ['endpoint', 'api'],
    ['status', 200],
    ['ms', 5.2],
    ['in', 3],
    ['out', 27],
    ['msg', 'request'],
  ])
})

it('the line of a request has its end, its refusal and the refusal that was not enforced', () => {
  const refusal = { kind: 'unauthorized', cause: 'expired' } as const
  const wouldRefuse = { kind: 'rate-limited', retryAfter: 3 } as const
  const [line = ''] = accessLines(exchangeRecord({ outcome: 'cut', refusal, wouldRefuse }))
  expect(JSON.parse(line)).toMatchObject({
    end: 'cut',
    refusal: 'unauthorized: expired',
    would_refuse: 'rate-limited',
  })
})

it('C9 user info of a target in absolute form is not logged', () => {
  for (const [target, path] of [
    ['http://user:secret@host/path?secret', 'http://host/path'],
    ['user:secret@host:443', 'host:443'],
    ['HTTP:///user:secret@@host/a@b', 'HTTP:///host/a@b'],
    ['/a@b', '/a@b'],
  ] as const) {
    const [line = ''] = accessLines(exchangeRecord({ head: requestHead({ target }) }))
    expect(JSON.parse(line)).toMatchObject({ path })
  }
})

it('any method or path of a client is logged as one line of printable ASCII that is JSON', () => {
  const odd = fc.string({ unit: anyCodePoint, maxLength: 300 })
  fc.assert(
    fc.property(odd, odd, (method, path) => {
      const [line = ''] = accessLines(
        exchangeRecord({ ...FACTS, head: requestHead({ method, target: path }) }),
      )
      expect(line).toMatch(/^[ -~]*\n$/)
      const shown = (text: string, longest: number): string =>
        (text.length > longest ? `${text.slice(0, longest)}...` : text).replace(/[^ -~]/g, '?')
      const plain = path.includes('?') ? path.slice(0, path.indexOf('?')) : path
      expect(JSON.parse(line)).toMatchObject({ method: shown(method, 32), path: shown(plain, 256) })
    }),
  )
})

it('a log level above `info` omits requests', () => {
  expect(accessLines(RECORD, 'warn')).toEqual([])
})

it('a timestamp is correct although its second is cached, also when the clock jumps', () => {
  const timestamp = createTimestamp()
  const instants = fc.array(fc.integer({ min: 0, max: 4_000_000_000_000 }))
  fc.assert(
    fc.property(instants, (times) => {
      for (const time of times.flatMap((at) => [at, at + 1, at + 999])) {
        expect(timestamp(time)).toBe(new Date(time).toISOString())
      }
    }),
  )
})

it('of the refusals of one kind, ten in ten seconds have a line each, and one line has the number of the others', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  closeLater(() => void vi.useRealTimers())
  const lines: string[] = []
  const log = createAccessLog(createLogOn('info', { write: (line) => lines.push(line) }), movableClock())
  const refuse = (times: number, kind: 'rate-limited' | 'wrong-passwords') => {
    for (let i = 0; i < times; i += 1) log.write(exchangeRecord({ refusal: { kind, retryAfter: 1 } }))
  }
  refuse(15, 'rate-limited')
  refuse(11, 'wrong-passwords')
  refuse(4, 'rate-limited')
  log.write(RECORD)
  expect(lines).toHaveLength(21)
  vi.advanceTimersByTime(10_000)
  const sums = () => lines.flatMap((line) => (line.includes('more refusals') ? [JSON.parse(line)] : []))
  expect(sums()).toMatchObject([
    { refusal: 'rate-limited', count: 9 },
    { refusal: 'wrong-passwords', count: 1 },
  ])
  refuse(12, 'rate-limited')
  log.close()
  expect(sums()).toHaveLength(3)
  expect(lines).toHaveLength(34)
})
