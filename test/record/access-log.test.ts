import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Exchange } from '../../src/http/exchange.ts'
import {
  type AccessLogRules,
  createAccessLog,
  createTimestamp,
  refusedConnections,
} from '../../src/record/access-log.ts'
import { openLogOn } from '../../src/record/log.ts'
import { exchangeRecord } from '../support/admitted.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { requestHead } from '../support/exchange.ts'
import { anyCodePoint } from '../support/random.ts'

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

const EVERYTHING: AccessLogRules = { access: true }

function accessLines(exchange: Exchange, level = 'info', rules: AccessLogRules = EVERYTHING): string[] {
  const clock = stillClock()
  const lines: string[] = []
  const log = createAccessLog(openLogOn(level, { write: (line) => lines.push(line) }), clock, {
    config: { log: rules },
  })
  closeLater(log.close)
  log.write(exchange, clock.wall())
  return lines
}

it('H354 a request is logged as one line of JSON in the format of pino, without its query', () => {
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

it('H354 the line of a request has its end, its refusal and the refusal that was not enforced', () => {
  const refusal = { kind: 'unauthorized', cause: 'expired' } as const
  const wouldRefuse = { kind: 'rate-limited', retryAfter: 3 } as const
  const [line = ''] = accessLines(exchangeRecord({ outcome: 'cut', refusal, wouldRefuse }))
  expect(JSON.parse(line)).toMatchObject({
    end: 'cut',
    refusal: 'unauthorized: expired',
    would_refuse: 'rate-limited',
  })
})

it('the line of a request that was admitted and then ended says why, unless it was refused', () => {
  const endedFor = { kind: 'unauthorized', cause: 'revoked' } as const
  const refusal = { kind: 'overloaded', retryAfter: 1 } as const
  const [ended = ''] = accessLines(exchangeRecord({ outcome: 'cut', endedFor }))
  expect(JSON.parse(ended)).toMatchObject({ end: 'cut', ended_for: 'unauthorized: revoked' })
  const [idle = ''] = accessLines(exchangeRecord({ outcome: 'cut', idle: true }))
  expect(JSON.parse(idle)).toMatchObject({ end: 'cut', ended_for: 'idle' })
  const [refused = ''] = accessLines(exchangeRecord({ endedFor, refusal }))
  expect(JSON.parse(refused)).toMatchObject({ refusal: 'overloaded' })
  for (const line of [refused, ...accessLines(RECORD)]) expect(line).not.toContain('ended_for')
})

it('of a head that repeats, each line has the client, the grant and the endpoint of its own request', () => {
  const head = requestHead({ target: '/status' })
  const [one, other] = ['192.0.2.1', '192.0.2.2'].map((client) => exchangeRecord({ client }).client)
  for (const [client, grant, endpoint] of [
    [one, 'c0ffee', 'api'],
    [one, 'c0ffee', 'api'],
    [other, 'c0ffee', 'api'],
    [other, 'monitor.f00d', 'api'],
    [other, 'monitor.f00d', 'oauth'],
    [other, undefined, 'oauth'],
  ] as const) {
    const exchange = Object.assign(exchangeRecord({ head, grant }), { client, endpoint })
    const [line = ''] = accessLines(exchange)
    const { client: address, grant: logged, name, endpoint: type } = JSON.parse(line)
    expect([address, logged, name, type]).toEqual([
      client?.address,
      grant,
      grant?.includes('.') ? 'monitor' : undefined,
      endpoint,
    ])
  }
})

it('a value is cut where it is too long: a path at 256 characters, a method at 32, a grant at 64; an address never', () => {
  const client = '2001:db8:1234:5678:9abc:def0:1234:5678'
  for (const [more, end] of [
    [0, ''],
    [1, '...'],
  ] as const) {
    const [path, method, grant] = [256, 32, 64].map((most) => '/'.repeat(most)) as [string, string, string] // three
    const head = requestHead({ target: path + 'x'.repeat(more), method: method + 'x'.repeat(more) })
    const [line = ''] = accessLines(exchangeRecord({ head, client, grant: grant + 'x'.repeat(more) }))
    expect(JSON.parse(line)).toMatchObject({
      client,
      path: path + end,
      method: method + end,
      grant: grant + end,
    })
  }
})

it('a duration has tenths of a millisecond, if it has any', () => {
  const ms = (duration: number): string | undefined =>
    /"ms":([^,]*),/.exec(accessLines(exchangeRecord({ duration }))[0] ?? '')?.[1]
  expect([0, 0.04, 0.05, 7, 12.1, 12.96, 1234.56].map(ms)).toEqual([
    ...['0', '0', '0.1', '7', '12.1', '13', '1234.6'],
  ])
})

it('C9 user info of a target in absolute form is not logged', () => {
  for (const [target, path] of [
    ['http://user:secret@host/path?secret', 'http://host/path'],
    ['user:secret@host:443', 'host:443'],
    ['HTTP:///user:secret@@host/a@b', 'HTTP:///host/a@b'],
    ['/a@b', '/a@b'],
    ['http://user:a?secret@host/path', 'http://'],
    ['http://user:a#secret@host/path', 'http://'],
    ['http://user:a/secret@host/path', 'http://'],
    ['http://name?secret@host', 'http://'],
    ['user:a?secret@host:443', ''],
    ['http://host:80/a@b?c@d', 'http://host:80/a@b'],
    ['http://[::1]:80/a@b', 'http://[::1]:80/a@b'],
    ['http://host/path?mail=a@b', 'http://host/path'],
    ['http://host?mail=a', 'http://host'],
  ] as const) {
    const [line = ''] = accessLines(exchangeRecord({ head: requestHead({ target }) }))
    expect(JSON.parse(line)).toMatchObject({ path })
  }
})

it('C9 a fragment, which may hold a token, is not logged, and nothing behind it', () => {
  for (const [target, path] of [
    ['/a#access_token=secret', '/a'],
    ['/a?x=secret#access_token=secret', '/a'],
    ['/a#secret?x=secret', '/a'],
    ['/a?x=#secret&x=2', '/a'],
    ['/#secret', '/'],
    ['#secret', ''],
    ['*#secret', '*'],
    ['host:443#secret', 'host:443'],
    ['http://host/path#secret', 'http://host/path'],
    ['http://host#secret', 'http://host'],
    ['http://host?x=secret#secret', 'http://host'],
  ] as const) {
    const [line = ''] = accessLines(exchangeRecord({ head: requestHead({ target }) }))
    expect(JSON.parse(line)).toMatchObject({ path })
    expect(line).not.toContain('secret')
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
      fc.pre(path.startsWith('/') || !path.includes('@'))
      const [plain = ''] = path.split(/[?#]/, 1)
      expect(JSON.parse(line)).toMatchObject({ method: shown(method, 32), path: shown(plain, 256) })
    }),
  )
})

it('a log level above `info` omits requests', () => {
  expect(accessLines(RECORD, 'warn')).toEqual([])
})

it('H354 a timestamp is correct although its second is cached, also when the clock jumps', () => {
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

type Kind = 'rate-limited' | 'wrong-passwords' | 'address-denied' | 'overloaded'

/** An access log whose periods the test ends. */
function refusing() {
  const clock = stillClock()
  const lines: string[] = []
  const log = createAccessLog(openLogOn('info', { write: (line) => lines.push(line) }), clock, {
    config: { log: EVERYTHING },
  })
  closeLater(log.close)
  const parsed = (): Record<string, unknown>[] => lines.map((line) => JSON.parse(line))
  return {
    log,
    refuse(client: string, times: number, kind: Kind = 'wrong-passwords'): void {
      for (let i = 0; i < times; i += 1)
        log.write(exchangeRecord({ client, refusal: { kind, retryAfter: 1 } }), clock.wall())
    },
    pass: clock.advance,
    endPeriod: () => clock.advance(10_000),
    clients: () => parsed().flatMap(({ msg, client }) => (msg === 'request' ? [client] : [])),
    connections: () => parsed().filter(({ msg }) => `${msg}`.startsWith('connection refused')),
    sums: () => parsed().filter(({ msg }) => msg === 'more refusals'),
  }
}

const times = (text: string, count: number): string[] => Array<string>(count).fill(text)

it('H221 of the refusals of a client, ten in ten seconds have a line each, and those of another client, too', async () => {
  const { log, refuse, endPeriod, clients, sums } = refusing()
  refuse('192.0.2.1', 12)
  refuse('192.0.2.2', 3)
  expect(clients()).toEqual([...times('192.0.2.1', 10), ...times('192.0.2.2', 3)])
  refuse('192.0.2.1', 12, 'rate-limited')
  log.write(RECORD, 0)
  expect(clients()).toHaveLength(24)
  await endPeriod()
  expect(sums()).toMatchObject([
    { refusal: 'wrong-passwords', count: 2, clients: 1, most: { '192.0.2.1': 2 } },
    { refusal: 'rate-limited', count: 2, clients: 1, most: { '192.0.2.1': 2 } },
  ])
  refuse('192.0.2.1', 11)
  log.close()
  expect(sums()).toHaveLength(3)
  expect(clients()).toHaveLength(34)
})

it.each<readonly [string, string, number, number]>([
  ['a change that the device had got has', 'POST', 1, 20],
  ['a change that it had not got has no', 'POST', 0, 10],
  ['a read that it had got has no', 'GET', 1, 10],
])('H312 %s line of its own beyond those of a flood', (_what, method, attempts, lines) => {
  const { log, clients } = refusing()
  const refusal = { kind: 'upstream', failure: 'connection_terminated' } as const
  for (let i = 0; i < 20; i += 1)
    log.write(exchangeRecord({ head: requestHead({ method }), client: '192.0.2.1', attempts, refusal }), 0)
  expect(clients()).toHaveLength(lines)
})

it('H221 an IPv6 client has one budget for its /64', async () => {
  const { refuse, endPeriod, clients, sums } = refusing()
  for (let i = 0; i < 20; i += 1) refuse(`2001:db8:0:1::${i}`, 1)
  refuse('2001:db8:0:2::1', 1)
  expect(clients()).toHaveLength(11)
  expect(clients().at(-1)).toBe('2001:db8:0:2::1')
  await endPeriod()
  expect(sums()).toMatchObject([{ count: 10, clients: 1, most: { '2001:db8:0:1::/64': 10 } }])
})

it('H221 few clients cannot use up the lines of the others', () => {
  const { refuse, clients } = refusing()
  for (let i = 1; i <= 20; i += 1) refuse(`192.0.2.${i}`, 15)
  const honest = '198.51.100.1'
  refuse(honest, 5)
  expect(clients().filter((client) => client === honest)).toHaveLength(1)
  // Thirty of the first three clients, and one of each other.
  expect(clients()).toHaveLength(48)
})

it('H221 sprayed addresses get 60 lines of a kind, 200 in all, and the sum names the clients with most', async () => {
  const { refuse, endPeriod, clients, sums } = refusing()
  for (let i = 0; i < 5_000; i += 1) {
    refuse(`10.0.${i >> 8}.${i & 255}`, 1)
    if (i % 10 === 0) refuse('192.0.2.1', 1)
  }
  expect(clients()).toHaveLength(60)
  for (const kind of ['rate-limited', 'address-denied', 'overloaded'] as const)
    for (let i = 0; i < 500; i += 1) refuse(`10.1.${i >> 8}.${i & 255}`, 1, kind)
  expect(clients()).toHaveLength(200)
  await endPeriod()
  const [sum] = sums()
  expect(sum).toMatchObject({ count: 5_440, clients: 1_000 })
  const [[first, count] = []] = Object.entries(sum?.most ?? {})
  expect(first).toBe('192.0.2.1')
  // Never too high, and at most by a share of 1/200 of all too low.
  expect(count).toBeLessThanOrEqual(490)
  expect(count).toBeGreaterThan(430)
})

it('H221 the sum comes ten seconds after the first refusal, and names the five clients with most, these first', async () => {
  const { refuse, sums, pass } = refusing()
  for (let i = 1; i <= 7; i += 1) refuse(`192.0.2.${i}`, 10 + i)
  await pass(9_999)
  expect(sums()).toEqual([])
  await pass(1)
  const [sum] = sums()
  const most = Object.entries(sum?.most ?? {})
  expect(most.map(([client]) => client)).toEqual([7, 6, 5, 4, 3].map((i) => `192.0.2.${i}`))
  expect(sum).toMatchObject({ clients: 7, count: 7 * 10 + 28 - 34 })
  await pass(20_000)
  expect(sums()).toHaveLength(1)
})

it('H221 refused connections are bounded like refused requests', async () => {
  const { log, sums, connections, endPeriod } = refusing()
  for (let i = 0; i < 15; i += 1) log.refusedConnection('not_allowed', '::ffff:192.0.2.1')
  expect(connections()).toHaveLength(10)
  await endPeriod()
  expect(sums()).toMatchObject([{ refusal: 'not_allowed', count: 5, clients: 1 }])
})

it('H182 a refused connection is counted, and logged if it has a peer', () => {
  const told: unknown[] = []
  const refused = refusedConnections(
    { connections: { refused: (reason) => told.push(reason) } },
    { refusedConnection: (...what) => told.push(what) },
  )
  refused('memory')
  refused('not_allowed', '192.0.2.1')
  expect(told).toEqual(['memory', 'not_allowed', ['not_allowed', '192.0.2.1']])
})

const CHANGES: AccessLogRules = { access: 'changes' }

it.each<readonly [string, Partial<Parameters<typeof requestHead>[0]>, number]>([
  ['GET', {}, 0],
  ['HEAD', { method: 'HEAD' }, 0],
  ['OPTIONS', { method: 'OPTIONS' }, 0],
  ['POST', { method: 'POST' }, 1],
  ['PROPFIND', { method: 'PROPFIND' }, 1],
  ['GET with another method', { fields: ['X-HTTP-Method-Override', 'DELETE'] }, 1],
  ['GET with another method, as CGI reads it', { fields: ['X_Http.Method-Override', 'DELETE'] }, 1],
  ['GET with another path', { fields: ['X-Original-URL', '/reboot'] }, 1],
  ['GET with a Destination', { fields: ['Destination', '/b'] }, 1],
  ['WebSocket', { upgrade: true }, 1],
])('H312 with log.access: changes, %s', (_, head, lines) => {
  expect(accessLines(exchangeRecord({ head: requestHead(head) }), 'info', CHANGES)).toHaveLength(lines)
  expect(accessLines(exchangeRecord({ head: requestHead(head) }), 'info', EVERYTHING)).toHaveLength(1)
  expect(accessLines(exchangeRecord({ head: requestHead(head) }), 'info', { access: false })).toEqual([])
})

it.each([
  '/do?action=secret&token=secret',
  '/do?token=x;action=secret',
  '/do?%61ction=secret',
  '/do?secret',
  '/do?action=a?secret',
  '/do?action="secret\\',
  `/do?action=${'secret'.repeat(500)}`,
])('H313 of the query of %.40s, the line has nothing', (target) => {
  const [line = ''] = accessLines(exchangeRecord({ head: requestHead({ target }) }))
  expect(JSON.parse(line)).toMatchObject({ path: '/do' })
  expect(line).not.toMatch(/secret|query/)
})
