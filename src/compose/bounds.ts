import { LISTEN_BOUNDS, type ListenBounds } from '../listen/connection-caps.ts'
import { BODY_TIMEOUT } from '../oauth/form-request.ts'

/** The bounds that no key sets, because one value fits every device and every network. */
export interface Bounds {
  readonly listen: ListenBounds
  /** How long (ms) a client may pause in a request body, and how long a form or a slowed login may take. */
  readonly bodyTimeout: number
}

/** Some of the bounds: a test makes them small, to reach them. */
export interface SomeBounds {
  readonly listen?: Partial<ListenBounds> | undefined
  readonly bodyTimeout?: number | undefined
}

/** The bounds of every sidecar. */
export const BOUNDS: Bounds = { listen: LISTEN_BOUNDS, bodyTimeout: BODY_TIMEOUT }

/** All bounds: those that are given, and the usual ones. */
export function boundsWith({ listen, bodyTimeout = BODY_TIMEOUT }: SomeBounds = {}): Bounds {
  return { listen: { ...LISTEN_BOUNDS, ...listen }, bodyTimeout }
}
