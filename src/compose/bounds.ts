import { DEVICE_BOUNDS, type DeviceBounds } from '../forward/settings.ts'
import { LISTEN_BOUNDS, type ListenBounds } from '../listen/connection-caps.ts'
import { BODY_TIMEOUT } from '../oauth/form-request.ts'

/** The bounds that no key sets, because one value fits every device and every network. */
export interface Bounds {
  readonly listen: ListenBounds
  /** How long (ms) a client may pause in a request body, and how long a form or a slowed login may take. */
  readonly bodyTimeout: number
  readonly device: DeviceBounds
}

/** Some of the bounds: a test makes them small, to reach them. */
export interface SomeBounds {
  readonly listen?: Partial<ListenBounds> | undefined
  readonly bodyTimeout?: number | undefined
  readonly device?: Partial<DeviceBounds> | undefined
}

/** The bounds of every sidecar. */
export const BOUNDS: Bounds = { listen: LISTEN_BOUNDS, bodyTimeout: BODY_TIMEOUT, device: DEVICE_BOUNDS }

/** All bounds: those that are given, and the usual ones. */
export function boundsWith({ listen, bodyTimeout = BODY_TIMEOUT, device }: SomeBounds = {}): Bounds {
  return { listen: { ...LISTEN_BOUNDS, ...listen }, bodyTimeout, device: { ...DEVICE_BOUNDS, ...device } }
}
