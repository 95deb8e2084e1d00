import type { Served, Site } from '../process/serve.ts'
import type { SoakDevice } from './device.ts'
import type { DisturbanceLog } from './disturbance-log.ts'
import type { Ledger } from './ledger.ts'

/** What all visitors of a run share. */
export interface SoakContext {
  readonly site: Site
  readonly served: Served
  readonly device: SoakDevice
  readonly disturbanceLog: DisturbanceLog
  readonly ledger: Ledger
  /** The current device password, the previous one, and how often it has changed. */
  readonly password: { readonly now: string; readonly before: string; readonly changes: number }
  readonly now: () => number
}

/** The configured rate limits: those of the contract. */
export const LIMITS = { api: 60, oauth: 30 } as const

/**
 * How long (ms) the effects of a disturbance may last on a busy machine. The sidecar tries a device that was down with
 * one request per second; an upload, or a request whose client leaves, may not show yet that the device is back.
 */
export const EFFECTS = { device: 4000, password: 2500, configuration: 2500 } as const
