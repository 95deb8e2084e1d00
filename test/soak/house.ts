import type { Served, Site } from '../process/serve.ts'
import type { SoakDevice } from './device.ts'
import type { Ledger } from './ledger.ts'
import type { Weather } from './weather.ts'

/** What all visitors share. */
export interface House {
  readonly site: Site
  readonly served: Served
  readonly device: SoakDevice
  readonly weather: Weather
  readonly ledger: Ledger
  /** The device password now, the one before it, and how often it has changed. */
  readonly password: { readonly now: string; readonly before: string; readonly changes: number }
  readonly now: () => number
}

/** The limits that the sidecar is configured with: the documented ones. */
export const LIMITS = { api: 60, oauth: 30 } as const

/**
 * How long the effects of a disturbance may last on a machine that does other things too (ms). A device that was down is
 * tried once a second, with whatever comes first: an upload, or a request whose client leaves, may not tell yet.
 */
export const EFFECTS = { device: 4000, password: 2500, configuration: 2500 } as const
