import type { Alarm, Condition, Point } from '../../src/overview/model.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE

/** A condition without alarms. */
export function calm(now: number): Condition {
  return {
    alarms: [],
    ready: true,
    reasons: [],
    enforce: true,
    trials: [],
    totals: { requests: 1_234_567, refused: 4_321, serverErrors: 17 },
    services: [
      {
        route: null,
        url: 'http://192.0.2.7',
        up: true,
        since: now - 3 * DAY,
        checked: true,
        breaker: 'closed',
        failure: 'connection_timeout',
        failedAt: now - 5 * 60 * MINUTE,
        tolerant: false,
        quirks: [],
        queue: { queued: 0, size: 64, maxInFlight: 8 },
        ceiling: null,
      },
      {
        route: '/video',
        url: 'http://192.0.2.7:8081',
        up: true,
        since: now - DAY,
        checked: false,
        breaker: 'closed',
        failure: null,
        failedAt: null,
        tolerant: false,
        quirks: [],
        queue: { queued: 0, size: 16, maxInFlight: 2 },
        ceiling: null,
      },
    ],
    load: { inFlight: 3, maxInFlight: 8, queued: 0, queueSize: 64, tunnels: 2, maxTunnels: 16 },
    memory: { held: 3_000_000, limit: 200_000_000, stage: null, shed: 0 },
    limits: {
      api: {
        requests: 60,
        window: MINUTE,
        per: 'client',
        names: [],
        usedUp: [
          { key: '198.51.100.23', until: now + 41 * SECOND, refused: 118 },
          { key: '2001:db8:7::/64', until: now + 12 * SECOND, refused: 4 },
        ],
        usedUpCount: 2,
      },
      oauth: { requests: 30, window: MINUTE, per: 'client', names: [], usedUp: [], usedUpCount: 0 },
    },
    tokens: {
      access: 31,
      refresh: 12,
      capacity: 10_000,
      unsaved: 0,
      setAsideAt: null,
      copiedAt: null,
      unreplaced: [],
    },
    certificate: { from: now - 30 * DAY, until: now + 61 * DAY, selfSigned: true },
    password: { source: 'file', changedAt: now - 19 * DAY, problem: null, absent: null },
    wrongPasswords: { wrong: 3, addresses: 2, from: ['198.51.100.23', '2001:db8:7::/48'] },
    store: null,
    refusedReload: null,
  }
}

/** A second in which nothing happened, but for what is given. */
export function secondOf(more: Partial<Point> = {}): Point {
  return {
    time: Date.now(),
    requests: 0,
    refusals: {},
    serverErrors: 0,
    client: null,
    device: null,
    inFlight: 0,
    queued: 0,
    connections: 0,
    tunnels: 0,
    ...more,
  }
}

/** An alarm of a kind that every sidecar can have. */
export function alarmOf(level: Alarm['level'], more: Partial<Alarm> = {}): Alarm {
  return {
    ...{ name: 'NotReady', key: level, level, what: 'Not ready: why', since: null },
    ...{ meaning: 'Clients wait.', remedy: 'Mend it.' },
    ...more,
  }
}
