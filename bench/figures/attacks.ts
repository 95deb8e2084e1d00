import { type AttackKind, startAttack } from '../load/attack.ts'
import { type SlowTest, startSlowAttack } from '../load/slowhttptest.ts'
import type { Metrics } from '../metrics.ts'

/** Connections that an attacker opens per second. */
const RATE = 200

/** slowhttptest must hold at least this many connections open, although it runs at idle priority. */
const SLOW_AT_LEAST = 100

/** Connections of a flood. Each is reopened when the sidecar closes it. */
const FLOODERS = 50

/** Fewer than `upstream.max_in_flight`: a client that reads nothing may hold a place at the device for a while. */
const READERS = 48

/** Size of the response that these clients do not read (bytes): more than all buffers on the path hold. */
const UNREAD = 16 << 20

/** Whether the sidecar has its default connection caps, or caps above the number of connections. */
export type Caps = 'lifted' | 'as they come'

/** An attack on the sidecar while a good client is served. */
export interface Attack {
  readonly name: string
  readonly caps: Caps
  /** Whether the p99 of the good client has a threshold during this attack; otherwise it is only reported. */
  readonly judged: boolean
  /** Connections that must be open before the measurement begins. */
  readonly heldOpen: number
  /** The deadline by which the sidecar closes all connections of the attack (ms), if it has one. */
  readonly deadline?: number
  start(target: Target): Promise<RunningAttack>
  /** The defence that the metrics before and during the attack do not show; undefined if they show it. */
  missing(metrics: MetricsPair): string | undefined
}

interface Target {
  readonly url: string
  readonly token: string
  readonly core: number | undefined
  /** Folder for the files of the attacker. */
  readonly folder: string
  /** Minimum duration of the attack. */
  readonly seconds: number
}

interface RunningAttack {
  stop(): Promise<unknown>
}

interface MetricsPair {
  readonly before: Metrics
  readonly during: Metrics
}

/**
 * With the default caps each attack comes from one address. With lifted caps it comes from many addresses: attacks with more
 * connections than the caps allow, and attacks that the caps stop.
 * @param part fraction of the idle connections to open
 */
export function attacks(part: number, withSlow: boolean): readonly Attack[] {
  const many = Math.round(5_000 * part)
  const floods: readonly (readonly [kind: AttackKind, reason: string])[] = [
    ['rapid reset', 'max_resets'],
    ['rapid reset with a token', 'max_resets'],
    ['CONTINUATION', 'protocol_error'],
    ['PING', 'max_control_frames'],
    ['SETTINGS', 'max_control_frames'],
  ]
  return [
    ownAttack('idle', {
      caps: 'lifted',
      judged: true,
      connections: many,
      rate: 5_000,
      heldOpen: many,
      missing: unlessOpen(many),
    }),
    ownAttack('idle', { caps: 'as they come', connections: 5_000, missing: unlessRefused }),
    ...(withSlow ? (['-H', '-B', '-X'] as const).map((test) => slow(test, 'as they come')) : []),
    ...floods.map(([kind, reason]) => ownAttack(kind, { caps: 'as they come', missing: unlessCut(reason) })),
    ownAttack('zero windows', {
      caps: 'as they come',
      connections: READERS,
      heldOpen: READERS,
      missing: unlessOpen(READERS),
    }),
    ...(withSlow ? [slow('-H', 'lifted')] : []),
    ...floods.map(([kind, reason]) => ownAttack(kind, { caps: 'lifted', missing: unlessCut(reason) })),
  ]
}

interface OwnAttack {
  readonly caps: Caps
  readonly judged?: boolean
  readonly connections?: number
  readonly rate?: number
  readonly heldOpen?: number
  readonly missing: Attack['missing']
}

/** Number of the last attacker network. Each attack has its own, because the sidecar counts offences per address for a minute. */
let networks = 0

function ownAttack(
  kind: AttackKind,
  {
    caps,
    judged = caps === 'as they come',
    connections = FLOODERS,
    rate = RATE,
    heldOpen = 0,
    missing,
  }: OwnAttack,
): Attack {
  return {
    name: named(kind === 'idle' ? `${connections} idle` : kind, caps),
    caps,
    judged,
    heldOpen,
    start({ url, token, folder, core }) {
      networks += 1
      const from = { network: networks, addresses: caps === 'lifted' ? 'many' : 'one' } as const
      const port = Number(new URL(url).port)
      const path = `/bytes/${UNREAD}`
      return startAttack({ kind, port, connections, rate, ...from, token, path }, folder, core)
    },
    missing,
  }
}

/** Default deadline of the sidecar for a request head, and for the body of a token request (ms). */
const HEAD_DEADLINE = 10_000

function slow(test: SlowTest, caps: Caps): Attack {
  // A refused connection has no TLS handshake, so it costs little: the attacker opens more of them.
  const rate = caps === 'lifted' ? RATE : 5 * RATE
  const most = caps === 'lifted' ? Number.POSITIVE_INFINITY : 4 * 250
  return {
    name: named(`slowhttptest ${test}`, caps),
    caps,
    judged: caps === 'as they come',
    heldOpen: 0,
    ...(test === '-X' ? {} : { deadline: HEAD_DEADLINE }),
    start({ url, core, seconds }) {
      // The token endpoint is the only one whose request body the sidecar reads without a token.
      const target = test === '-B' ? `${url}/oauth/token` : url
      const connections = Math.min(rate * seconds, most)
      return startSlowAttack({ test, url: target, connections, rate }, core)
    },
    missing: caps === 'lifted' ? unlessOpen(SLOW_AT_LEAST) : unlessRefused,
  }
}

function named(name: string, caps: Caps): string {
  return caps === 'lifted' ? `${name}, caps lifted` : name
}

function unlessOpen(connections: number): Attack['missing'] {
  return ({ during }) => {
    const open = during.sum('connections')
    return open >= connections ? undefined : `only ${open} of ${connections} connections were open`
  }
}

function unlessCut(reason: string): Attack['missing'] {
  return ({ before, during }) => {
    const count = (metrics: Metrics): number => metrics.sum('connections_cut_total', reason)
    return count(during) > count(before) ? undefined : `cut nothing for ${reason}`
  }
}

const unlessRefused: Attack['missing'] = ({ before, during }) => {
  const count = (metrics: Metrics): number =>
    metrics.sum('connections_refused_total', 'max_connections_per_client')
  return count(during) > count(before) ? undefined : 'refused no connection'
}
