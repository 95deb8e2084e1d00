import { type AttackKind, type Attack as RunningAttack, startAttack } from '../../test/support/attack.ts'
import type { Metrics } from '../metrics.ts'

/** Connections that an attacker opens per second. */
const RATE = 200

/** The default of `listen.max_connections_per_client`. */
const CAP = 250

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
  /** Connections that must be open before the measurement begins. */
  readonly heldOpen: number
  /** The deadline by which the sidecar closes all connections of the attack (ms), if it has one. */
  readonly deadline: number | undefined
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
}

interface MetricsPair {
  readonly before: Metrics
  readonly during: Metrics
}

/** Default deadline of the sidecar for a request head, and for the body of a token request (ms). */
const HEAD_DEADLINE = 10_000

/**
 * With the default caps each attack comes from one address. With lifted caps the idle connections come from many.
 * @param part fraction of the idle connections to open
 */
export function attacks(part: number): readonly Attack[] {
  const many = Math.round(5_000 * part)
  const slow = { connections: 4 * CAP, rate: 5 * RATE, missing: unlessRefused }
  return [
    attack('idle', {
      caps: 'lifted',
      connections: many,
      rate: 5_000,
      heldOpen: many,
      missing: unlessOpen(many),
    }),
    attack('idle', { connections: 5_000, missing: unlessRefused }),
    attack('slow head', { ...slow, deadline: HEAD_DEADLINE }),
    attack('slow body', { ...slow, deadline: HEAD_DEADLINE }),
    attack('rapid reset', { missing: unlessCut('max_resets') }),
    attack('rapid reset with a token', { missing: unlessCut('max_resets') }),
    attack('CONTINUATION', { missing: unlessCut('protocol_error') }),
    attack('PING', { missing: unlessCut('max_control_frames') }),
    attack('SETTINGS', { missing: unlessCut('max_control_frames') }),
    attack('zero windows', { connections: READERS, heldOpen: READERS, missing: unlessOpen(READERS) }),
  ]
}

interface Settings extends Pick<Attack, 'missing'>, Partial<Pick<Attack, 'caps' | 'heldOpen' | 'deadline'>> {
  readonly connections?: number
  readonly rate?: number
}

/** Number of the last attacker network. Each attack has its own, because the sidecar counts offences per address for a minute. */
let networks = 0

function attack(
  kind: AttackKind,
  { caps = 'as they come', connections = FLOODERS, rate = RATE, heldOpen = 0, deadline, missing }: Settings,
): Attack {
  const name = kind === 'idle' ? `${connections} idle` : kind
  return {
    name: caps === 'lifted' ? `${name}, caps lifted` : name,
    caps,
    heldOpen,
    deadline,
    start({ url, token, folder, core }) {
      networks += 1
      const addresses = caps === 'lifted' ? 'many' : 'one'
      const path = `/bytes/${UNREAD}`
      const plan = {
        kind,
        port: Number(new URL(url).port),
        connections,
        rate,
        addresses,
        token,
        path,
      } as const
      return startAttack({ ...plan, network: networks }, folder, core)
    },
    missing,
  }
}

function unlessOpen(connections: number): Attack['missing'] {
  return ({ during }) => {
    const open = during.sum('connections')
    return open >= connections ? undefined : `only ${open} of ${connections} connections were open`
  }
}

function unlessCut(reason: string): Attack['missing'] {
  return unlessGrown('connections_cut_total', reason, `cut nothing for ${reason}`)
}

const unlessRefused: Attack['missing'] = unlessGrown(
  'connections_refused_total',
  'max_connections_per_client',
  'refused no connection',
)

function unlessGrown(name: string, reason: string, missing: string): Attack['missing'] {
  return ({ before, during }) => (during.sum(name, reason) > before.sum(name, reason) ? undefined : missing)
}
