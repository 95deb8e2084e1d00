import { type AttackKind, startAttack } from '../load/attack.ts'
import { type SlowTest, startSlowAttack } from '../load/slowhttptest.ts'
import type { Metrics } from '../metrics.ts'

/** Connections that an attacker opens in a second. */
const RATE = 200

/** So many of them slowhttptest has to have open, also where it hardly gets its turn. */
const SLOW_AT_LEAST = 100

/** Connections of a flood, each opened again when it is closed. */
const FLOODERS = 50

/** Fewer than the places at the device: who takes nothing of a response may keep one of them for a while. */
const READERS = 48

/** What none of those readers takes (bytes): more than any buffer on the way holds. */
const UNREAD = 16 << 20

/** Under which the sidecar stands: what it lets in is as it comes, or as much as there is. */
export type Caps = 'lifted' | 'as they come'

/** Something that is done to the sidecar while somebody else is served. */
export interface Attack {
  readonly name: string
  readonly caps: Caps
  /** Whether it may take the good client no more than twice its time; otherwise what it takes is told. */
  readonly judged: boolean
  /** Connections that have to be open before anything is measured. */
  readonly crowd: number
  /** Whether the sidecar's own deadline (ms) ends all of it. */
  readonly deadline?: number
  start(target: Target): Promise<RunningAttack>
  /** What the sidecar has to have done against it, given its metrics before and while it goes on; undefined where it has. */
  missing(signs: Signs): string | undefined
}

interface Target {
  readonly url: string
  readonly token: string
  readonly core: number | undefined
  /** Where an attacker may leave a file. */
  readonly folder: string
  /** How long it goes on at the least. */
  readonly seconds: number
}

interface RunningAttack {
  stop(): Promise<unknown>
}

interface Signs {
  readonly before: Metrics
  readonly during: Metrics
}

/**
 * With the caps as they come everything from one address; what needs more connections than that, and what the caps keep
 * off, with the caps lifted from as many addresses as it takes.
 * @param part how many of the idle connections will do
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
      crowd: many,
      missing: unlessOpen(many),
    }),
    ownAttack('idle', { caps: 'as they come', connections: 5_000, missing: unlessRefused }),
    ...(withSlow ? (['-H', '-B', '-X'] as const).map((test) => slow(test, 'as they come')) : []),
    ...floods.map(([kind, reason]) => ownAttack(kind, { caps: 'as they come', missing: unlessCut(reason) })),
    ownAttack('zero windows', {
      caps: 'as they come',
      connections: READERS,
      crowd: READERS,
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
  readonly crowd?: number
  readonly missing: Attack['missing']
}

/** Of the attackers: what they did from one of them is held against it for a minute, and so each attack has its own. */
let networks = 0

function ownAttack(
  kind: AttackKind,
  {
    caps,
    judged = caps === 'as they come',
    connections = FLOODERS,
    rate = RATE,
    crowd = 0,
    missing,
  }: OwnAttack,
): Attack {
  return {
    name: named(kind === 'idle' ? `${connections} idle` : kind, caps),
    caps,
    judged,
    crowd,
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

/** How long the sidecar waits for a head, and for the body of a token request, as it comes (ms). */
const PATIENCE = 10_000

function slow(test: SlowTest, caps: Caps): Attack {
  // What is refused has no handshake, and so costs little.
  const rate = caps === 'lifted' ? RATE : 5 * RATE
  const most = caps === 'lifted' ? Number.POSITIVE_INFINITY : 4 * 250
  return {
    name: named(`slowhttptest ${test}`, caps),
    caps,
    judged: caps === 'as they come',
    crowd: 0,
    ...(test === '-X' ? {} : { deadline: PATIENCE }),
    start({ url, core, seconds }) {
      // The only body that the sidecar reads for somebody without a token.
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
    return open >= connections ? undefined : `was held by ${open} connections instead of ${connections}`
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
