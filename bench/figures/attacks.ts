import type { AttackKind, AttackPlan } from '../../test/support/attack.ts'

/** Connections that an attacker opens per second. */
const RATE = 200

/** The default of `listen.max_connections_per_client`. */
const CAP = 250

/** Connections of a flood. Each is reopened when the sidecar closes it. */
const FLOODERS = 50

/** Fewer than `upstream.max_in_flight`: a client that reads nothing may hold a place at the device for a while. */
const READERS = 48

/** Whether the sidecar has its default connection caps, or caps above the number of connections. */
export type Caps = 'lifted' | 'as they come'

/** An attack on the sidecar while a good client is served. */
export interface Attack extends Pick<AttackPlan, 'kind' | 'connections' | 'rate'> {
  readonly name: string
  readonly caps: Caps
  /** Connections that must be open before the measurement begins. */
  readonly heldOpen: number
  /** The deadline by which the sidecar closes all connections of the attack (ms), if it has one. */
  readonly deadline?: number
  /** The counter, and its reason, that must grow meanwhile. Without one, the connections must be open at its end. */
  readonly counter?: readonly [name: string, reason: string]
}

/** Default deadline of the sidecar for a request head, and for the body of a token request (ms). */
const HEAD_DEADLINE = 10_000

const REFUSED = ['connections_refused_total', 'max_connections_per_client'] as const
const cutFor = (reason: string) => ['connections_cut_total', reason] as const

/**
 * With the default caps each attack comes from one address. With lifted caps the idle connections come from many.
 * @param part fraction of the idle connections to open
 */
export function attacks(part: number): readonly Attack[] {
  const many = Math.round(5_000 * part)
  const slow = { connections: 4 * CAP, rate: 5 * RATE, deadline: HEAD_DEADLINE, counter: REFUSED }
  return [
    attack('idle', { caps: 'lifted', connections: many, rate: 5_000, heldOpen: many }),
    attack('idle', { connections: 5_000, counter: REFUSED }),
    attack('slow head', slow),
    attack('slow body', slow),
    attack('rapid reset', { counter: cutFor('max_resets') }),
    attack('rapid reset with a token', { counter: cutFor('max_resets') }),
    attack('CONTINUATION', { counter: cutFor('protocol_error') }),
    attack('PING', { counter: cutFor('max_control_frames') }),
    attack('SETTINGS', { counter: cutFor('max_control_frames') }),
    attack('zero windows', { connections: READERS, heldOpen: READERS }),
  ]
}

function attack(kind: AttackKind, more: Partial<Attack>): Attack {
  const all = { kind, caps: 'as they come', connections: FLOODERS, rate: RATE, heldOpen: 0, ...more } as const
  const name = kind === 'idle' ? `${all.connections} idle` : kind
  return { ...all, name: all.caps === 'lifted' ? `${name}, caps lifted` : name }
}
