import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadPageFiles } from '../../src/admin/page-files.ts'
import { control } from '../../src/commands/control.ts'
import { share } from '../../src/overview/alarm.ts'
import { KINDS } from '../../src/overview/alarm-kinds.ts'
import { alarmsOf } from '../../src/overview/alarms.ts'
import type { Condition, Point } from '../../src/overview/model.ts'
import { calm, secondOf } from '../page/calm.ts'
import { stillClock } from '../support/clock.ts'
import { startSidecar } from '../support/sidecar.ts'

const NOW = Date.UTC(2026, 10, 22, 12)
const DAY = 86_400_000
const ALERTS = loadPageFiles().get('alerts')?.body.toString()
const CALM = calm(NOW)
const [MAIN = expect.fail(), VIDEO = expect.fail()] = CALM.services

const point = (more: Partial<Point>): Point =>
  secondOf({ time: NOW, requests: 10, inFlight: 1, connections: 1, ...more })

/** One point a second, the last one now. */
const lasting = (seconds: number, more: Partial<Point>): Point[] =>
  Array.from({ length: seconds }, (_, i) => point({ ...more, time: NOW - (seconds - 1 - i) * 1_000 }))

const main = (more: object): Partial<Condition> => ({
  services: [{ ...calm(NOW).services[0], ...more }] as never,
})
const found = (condition: Partial<Condition>, points: readonly Point[] = []) =>
  alarmsOf({ ...CALM, ...condition }, points, NOW)

/** Each alarm: its condition, its points, and what it must say. */
const CASES: readonly [string, Partial<Condition>, readonly Point[], RegExp][] = [
  [
    'not ready',
    { ready: false, reasons: ['the device does not respond'] },
    [],
    /^critical Not ready: the device .*postern check/,
  ],
  [
    'a device that is down',
    main({ up: false, since: NOW - 5_000, failure: 'connection_refused' }),
    [],
    /^critical The device is down: connection refused .*upstream\.url.*192\.0\.2\.7/,
  ],
  [
    'an open breaker',
    main({ up: false, breaker: 'open' }),
    [],
    /^critical The device cannot be reached.*upstream\.url/,
  ],
  [
    'a device that answers with garbage',
    main({ up: false, since: NOW - 5_000, failure: 'http_protocol_error' }),
    lasting(60, { requests: 1, serverErrors: 1, refusals: { upstream: 1 } }),
    /^critical The device fails its requests: http protocol error .*can be reached.*upstream\.url/,
  ],
  [
    'a device that fails part of the requests',
    {},
    lasting(60, { requests: 10, serverErrors: 8, refusals: { upstream: 7 } }),
    /^warning 80 % of the requests in the last minute ended in a server error \(5xx\), most because the device failed/,
  ],
  [
    'a device that answers with errors of its own',
    {},
    lasting(60, { requests: 10, serverErrors: 1 }),
    /^warning 10 % of the requests .*\(5xx\) .*the device's own/,
  ],
  [
    'clients that hold much',
    { memory: { held: 90, limit: 100, stage: 'shares', shed: 3 } },
    [],
    /^warning Clients hold 90 % of the memory for them.*listen\.memory/,
  ],
  [
    'most requests over the limit',
    {},
    lasting(60, { requests: 6, refusals: { rate_limited: 4, unauthorized: 1 } }),
    /^warning 83 % of the requests in the last minute were refused, most of them as rate limited .*limits\.api\.requests/,
  ],
  [
    'most requests without a token',
    {},
    lasting(60, { refusals: { unauthorized: 10 } }),
    /^warning 100 % of .* refused, as unauthorized .*Let them log in again/,
  ],
  [
    'a sidecar that is not ready because its device is down: one alarm',
    {
      ready: false,
      reasons: ['the device does not respond'],
      ...main({ up: false, since: NOW, failure: 'status 503' }),
    },
    lasting(60, { serverErrors: 10, refusals: { upstream: 9, overloaded: 1 } }),
    /^critical The device is down: status 503/,
  ],
  [
    'a sidecar that is not ready because a service of its device is down: one alarm',
    {
      ready: false,
      reasons: ['the device does not respond'],
      services: [MAIN, { ...VIDEO, checked: true, up: false, failure: null }],
    },
    [],
    /^critical The service \/video of the device is down/,
  ],
  [
    'a sidecar that is not ready because its shared store is down: one alarm',
    {
      ready: false,
      reasons: ['the shared store does not respond'],
      store: { up: false, address: '192.0.2.7:6379', reason: 'connect ECONNREFUSED' },
    },
    lasting(60, { requests: 10, serverErrors: 8, refusals: { store_unavailable: 8 } }),
    /^critical The shared store/,
  ],
  [
    'the tolerant parser',
    main({
      tolerant: true,
      quirks: [
        {
          kind: 'tolerant',
          since: NOW - 60_000,
          malformed: { request: 'GET /a', fault: 'a folded line', bytes: ' x\\r\\n' },
        },
      ],
    }),
    [],
    /^note The device sends malformed HTTP.*: GET \/a had a folded line \( x\\r\\n\).*upstream\.reuse/,
  ],
  [
    'one more request than the device has room for',
    main({ ceiling: { kind: 'guess', limit: 8 } }),
    [],
    /^note The device has no room for more than 8 /,
  ],
  [
    'a wall',
    main({ ceiling: { kind: 'broke', limit: 8 } }),
    [],
    /^warning The device went away when more than 8 requests.*postern retry/,
  ],
  [
    'a slow device',
    {},
    lasting(20, { device: { p50: 900, p99: 6_000 } }),
    /^warning The device is slow: 6\.00 s at p99.*upstream\.max_in_flight/,
  ],
  [
    'overload',
    {},
    [point({ refusals: { overloaded: 3 } })],
    /^warning 3 requests were refused as overloaded.*upstream\.max_in_flight/,
  ],
  [
    'logins that wait for each other, with the queue for the device empty',
    {},
    [point({ refusals: { logins_overloaded: 3 } })],
    /^warning 3 logins were refused as overloaded(?!.*max_in_flight).*logged in before go first/,
  ],
  [
    'guessed passwords, which explain refused logins',
    {
      wrongPasswords: { wrong: 52, addresses: 16, from: ['192.0.2.1', '2001:db8::/48', '192.0.2.3', 'unix'] },
    },
    [point({ refusals: { logins_overloaded: 3 } })],
    /^warning 52 wrong passwords from 16 addresses \(most from 192\.0\.2\.1, 2001:db8::\/48, 192\.0\.2\.3\).*listen\.allow, or block the addresses in a firewall\.$/,
  ],
  [
    'a client with an old password',
    { wrongPasswords: { wrong: 21, addresses: 1, from: ['192.0.2.1'] } },
    [],
    /^warning 21 wrong passwords from 192\.0\.2\.1 within ten minutes/,
  ],
  [
    'a queue that fills',
    main({ queue: { queued: 32, size: 64, maxInFlight: 8 } }),
    [],
    /^warning The queue fills: 32 of 64 .*upstream\.max_in_flight \(8\)/,
  ],
  [
    'the queue of a route, although others are empty',
    { services: [MAIN, { ...VIDEO, queue: { queued: 9, size: 16, maxInFlight: 2 } }] },
    [],
    /^warning The queue of \/video fills: 9 of 16 .*max_in_flight of \/video in upstream\.routes \(2\)/,
  ],
  [
    'requests that wait',
    {},
    lasting(40, { queued: 2 }),
    /^warning Requests wait for the device.*upstream\.max_in_flight/,
  ],
  [
    'a certificate that ends',
    { certificate: { from: 0, until: NOW + 28 * DAY, selfSigned: false } },
    [],
    /^warning The certificate expires in 28 d, on 2026-12-20 UTC.*listen\.tls/,
  ],
  [
    'a certificate of a short life in its last third',
    { certificate: { from: NOW - 5 * DAY, until: NOW + 2 * DAY, selfSigned: false } },
    [],
    /^warning The certificate expires in 2 d/,
  ],
  [
    'a certificate that ended',
    { certificate: { from: 0, until: NOW - DAY, selfSigned: true } },
    [],
    /^critical The certificate expired on 2026-11-21 UTC.*cert\.pem/,
  ],
  [
    'a certificate of the future',
    { certificate: { from: NOW + DAY, until: NOW + 90 * DAY, selfSigned: true } },
    [],
    /^critical The certificate is not valid before 2026-11-23.*clock/,
  ],
  [
    'an unusable password source',
    { password: { ...CALM.password, problem: 'it is empty' } },
    [],
    /^warning The password source cannot be used: it is empty.*password\.file/,
  ],
  [
    'a locked account',
    { password: { ...CALM.password, absent: 'admin: password file /f: the account is locked' } },
    [],
    /^critical No password: admin: password file \/f: the account is locked.*usermod -U/,
  ],
  [
    'unsaved tokens',
    { tokens: { ...CALM.tokens, unsaved: 1 } },
    [],
    /^warning A restart would lose 1 token:.*state_dir/,
  ],
  [
    'a token file that was set aside within a day',
    { tokens: { ...CALM.tokens, setAsideAt: NOW - DAY + 1 } },
    [],
    /^warning The token file could not be used, and was set aside Its tokens are void.*state_dir/,
  ],
  [
    'a token file that is a copy',
    { tokens: { ...CALM.tokens, copiedAt: NOW - DAY } },
    [],
    /^warning The token file is a copy, such as a restored backup.*revoked.*valid again.*postern revoke --all/,
  ],
  [
    'issued tokens that end within a week',
    {
      tokens: {
        ...CALM.tokens,
        unreplaced: [
          { id: 'monitor.0123456789abcdef', label: 'probe', expiresAt: NOW + 3 * DAY },
          { id: '0123456789abcdef', label: '', expiresAt: NOW + 6 * DAY },
          { id: '0123456789abcde0', label: '', expiresAt: NOW + 7 * DAY },
        ],
      },
    },
    [],
    /^warning The issued token "probe", monitor\.0123456789abcdef, ends in 3 d, on 2026-11-25 UTC; 1 more within a week .*401.*same label/,
  ],
  [
    'tokens near the maximum',
    { tokens: { ...CALM.tokens, access: 9_000 } },
    [],
    /^warning 9,012 tokens of at most 10,000 are live.*tokens\.capacity/,
  ],
  [
    'a shared store that is down',
    { store: { up: false, address: '192.0.2.7:6379', reason: 'connect ECONNREFUSED' } },
    [],
    /^critical The shared store at 192\.0\.2\.7:6379 does not respond, or refuses commands: connect ECONNREFUSED.*tokens\.offline_grace/,
  ],
  [
    'a reload that was refused',
    {
      refusedReload: {
        at: NOW - 60_000,
        problems: ['/etc/postern/postern.yaml:7: limits.api.requests: must be a number', 'b'],
      },
    },
    [],
    /^warning A new configuration or certificate was refused, and the former one is in use: \/etc\/postern\/postern\.yaml:7: limits\.api\.requests: must be a number; 1 more .*the next start would fail.*postern check --quiet/,
  ],
  [
    'a gate that only observes',
    { enforce: false },
    [],
    /^warning Observing only \(enforce: false\) Requests without a token .*would_refuse\.$/,
  ],
  [
    'an allow on trial',
    { trials: [{ name: 'monitor', wouldRefuse: 1_234 }] },
    [],
    /^warning The allow of monitor is on trial \(enforce: false\): it would have refused 1,234 requests .*would_refuse of it\.$/,
  ],
]

describe('H158 the sidecar raises an alarm, with what it means and what to do, for', () => {
  it.each(CASES)('%s', (_, condition, points, expected) => {
    const alarmed = found(condition, points)
    const texts = alarmed.map(({ level, what, meaning, remedy }) => `${level} ${what} ${meaning} ${remedy}`)
    expect(texts).toEqual([expect.stringMatching(expected)])
    for (const { name, meaning, remedy } of alarmed) {
      expect(ALERTS).toContain(`<h3 id="${name.toLowerCase()}">`)
      expect([meaning, remedy]).toEqual(Array(2).fill(expect.stringMatching(/^[^a-z].*[.?]$/)))
    }
  })

  it('each of its kinds', () => {
    const raised = CASES.flatMap(([, condition, points]) => found(condition, points).map(({ name }) => name))
    expect([...new Set(raised)].sort()).toEqual(Object.keys(KINDS).sort())
  })
})

describe('H158 the sidecar', () => {
  it('raises no alarm for a calm sidecar under traffic', () => {
    expect(found({}, lasting(60, { device: { p50: 9, p99: 40 }, refusals: { rate_limited: 2 } }))).toEqual([])
  })

  it('counts errors and refusals as the alerts do: past ten errors and 5 %, from ten requests and half of them refused on', () => {
    const of = (more: Partial<Point>) => found({}, [point(more)]).map(({ name }) => name)
    expect(of({ requests: 20, serverErrors: 10 })).toEqual([])
    expect(of({ requests: 20, serverErrors: 11 })).toEqual(['PosternServerErrors'])
    expect(of({ requests: 200, serverErrors: 11 })).toEqual(['PosternServerErrors'])
    expect(of({ requests: 220, serverErrors: 11 })).toEqual([])
    expect(of({ requests: 219, serverErrors: 11 })).toEqual(['PosternServerErrors'])
    expect(of({ requests: 9, refusals: { unauthorized: 9 } })).toEqual([])
    expect(of({ requests: 10, refusals: { unauthorized: 5 } })).toEqual(['ManyRefusals'])
    expect(of({ requests: 11, refusals: { unauthorized: 5 } })).toEqual([])
  })

  it('tells for a day that a token file was set aside', () => {
    const of = (ago: number) => found({ tokens: { ...CALM.tokens, setAsideAt: NOW - ago } }).length
    expect([DAY - 1, DAY].map(of)).toEqual([1, 0])
  })

  it('counts wrong passwords as the alert does: past twenty', () => {
    const of = (wrong: number) =>
      found({ wrongPasswords: { wrong, addresses: 1, from: ['192.0.2.1'] } }).map(({ name }) => name)
    expect([20, 21].map(of)).toEqual([[], ['PosternPasswordGuessing']])
  })

  it.each([
    ['0 %', 0, 100],
    ['0.1 %', 1, 1_000],
    ['9.9 %', 99, 1_000],
    ['10 %', 104, 1_000],
    ['100 %', 999, 1_000],
  ])('says %s for %d of %d', (said, part, whole) => {
    expect(share(part, whole)).toBe(said)
  })

  it('names the device as the cause of errors when it has failed in most of them', () => {
    const cause = (upstream: number) =>
      found({}, [point({ requests: 20, serverErrors: 20, refusals: { upstream } })])[0]?.what.split(', ')[1]
    expect([10, 11].map(cause)).toEqual([undefined, 'most because the device failed'])
  })

  it('says that the device is slow from 5 s at p99 on, told by ten seconds; that memory is short from 80 % on; that requests wait after 30 s', () => {
    const of = (condition: Partial<Condition>, points: Point[]) =>
      found(condition, points).map(({ name }) => name)
    const slow = (seconds: number, p99: number) => of({}, lasting(seconds, { device: { p50: 9, p99 } }))
    expect([slow(9, 5_000), slow(10, 4_999), slow(10, 5_000)]).toEqual([[], [], ['PosternDeviceSlow']])
    const held = (held: number) => of({ memory: { held, limit: 100, stage: 'shares', shed: 3 } }, [])
    expect([held(79), held(80)]).toEqual([[], ['PosternMemoryShort']])
    const waiting = (seconds: number) => of({}, lasting(seconds, { queued: 1 }))
    expect([waiting(30), waiting(31)]).toEqual([[], ['PosternQueueing']])
  })

  it('says since when: of the device, of the waiting, of the end of the certificate', () => {
    const since = (condition: Partial<Condition>, points: readonly Point[] = []) =>
      found(condition, points)[0]?.since
    expect(since(main({ up: false, since: NOW - 5_000 }))).toBe(NOW - 5_000)
    expect(since({}, [...lasting(1, { time: NOW - 90_000 }), ...lasting(40, { queued: 1 })])).toBe(
      NOW - 39_000,
    )
    expect(since({ certificate: { from: 0, until: NOW - 7, selfSigned: false } })).toBe(NOW - 7)
  })

  it('names the most urgent alarm first, and names the service that failed', () => {
    const services = [
      { ...MAIN, route: null, up: false },
      { ...VIDEO, up: false },
    ].map((service) => ({ ...service, failure: null }))
    const levels = found({ services, enforce: false, ...{ tokens: { ...CALM.tokens, unsaved: 4 } } })
    expect(levels.map(({ level }) => level)).toEqual(['critical', 'warning', 'warning', 'warning'])
    expect(levels.map(({ what }) => what).join()).toMatch(
      /^The service at \/ of the device is down,The service \/video of the device is down/,
    )
  })
})

it('H291 the live page and `postern status` get the same alarms from the sidecar', async () => {
  const sidecar = await startSidecar({ config: { enforce: false } })
  await sidecar.device.stop()
  for (let i = 0; i < 3; i += 1) await sidecar.request({})
  const { alarms } = sidecar.overview.condition()
  expect(alarms).toMatchObject([
    { name: 'PosternDeviceDown', level: 'critical', since: expect.any(Number) },
    { name: 'ObservingOnly', level: 'warning', since: null },
  ])
  const stateDir = join(sidecar.directory, 'state')
  expect(await control(stateDir, { method: 'GET', path: '/status' })).toMatchObject({ alarms })
})

it('H291 an alarm of the last minute needs no open page: the sidecar keeps the seconds itself', async () => {
  const sidecar = await startSidecar({ clock: stillClock() })
  const { overview, clock } = sidecar
  for (let i = 0; i < 12; i += 1) await sidecar.request({})
  const names = () => overview.condition().alarms.map(({ name, what }) => `${name}: ${what}`)
  const expected = 'ManyRefusals: 100 % of the requests in the last minute were refused, as unauthorized'
  await clock.advance(1_000)
  expect(names()).toEqual([expected])
  await clock.advance(120_000)
  expect(names()).toEqual([])
})
