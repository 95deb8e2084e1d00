import type { Config } from '../config/schema.ts'
import type { DeviceBounds } from '../forward/settings.ts'
import { LISTEN_BOUNDS, type ListenLimits } from '../listen/connection-caps.ts'

/** Bounds in place of those of the keys and of the constants: a test makes them small, to reach them. Times in ms. */
export interface SomeBounds {
  readonly listen?: Partial<ListenLimits> | undefined
  readonly bodyTimeout?: number | undefined
  readonly device?: Partial<DeviceBounds> | undefined
}

/**
 * The bounds of the public listener: those of the keys, and the constants. A client may reset all of its streams at once: a browser does when the
 * user leaves a page that is still loading.
 */
export function listenLimits({ listen }: Config, given: SomeBounds): ListenLimits {
  const maxResets = Math.max(LISTEN_BOUNDS.maxResets, listen.maxStreams)
  return { ...LISTEN_BOUNDS, maxResets, ...listen, ...given.listen }
}
