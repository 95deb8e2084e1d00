import type { Config } from '../config/schema.ts'
import type { DeviceBounds } from '../forward/settings.ts'
import { LISTEN_BOUNDS, type ListenLimits } from '../listen/connection-caps.ts'

/** Bounds in place of those of the keys and of the constants: a test makes them small, to reach them. Times in ms. */
export interface SomeBounds {
  readonly listen?: Partial<ListenLimits> | undefined
  readonly bodyTimeout?: number | undefined
  readonly device?: Partial<DeviceBounds> | undefined
}

/** The bounds of the public listener: those of the keys, and the constants. */
export function listenLimits({ listen }: Config, given: SomeBounds): ListenLimits {
  return { ...LISTEN_BOUNDS, ...listen, ...given.listen }
}
