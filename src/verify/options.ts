import type { Endpoint } from '../http/admission.ts'
import type { Limit } from './limit-fields.ts'
import type { OutsideId } from './promises.ts'

/** What a run is to check, and how. The values are within `BOUNDS`. */
export interface VerifyOptions {
  /** Origin of the server: http or https, without user, path or query. */
  readonly url: URL
  /** Reaches no line, report or error. */
  readonly password: string
  /** The target of every request to the API, such as `/` or `/status?verbose=1`. */
  readonly path: string
  readonly tls: {
    /** PEM: only these authorities are trusted. Undefined: those of Node and of the system. */
    readonly ca: string | undefined
    readonly insecure: boolean
  }
  /** What the server is set to. */
  readonly limits: Readonly<Record<Endpoint, Limit>>
  /** Leaves out what has to wait for a window to end. */
  readonly quick: boolean
  /** Empty: all promises. */
  readonly only: readonly OutsideId[]
  readonly flood: { readonly seconds: number; readonly connections: number }
  /** The path at which the run revokes its tokens at the end; undefined: it does not try. */
  readonly revocationPath: string | undefined
}

/** The limits of device API §8. */
export const DOCUMENTED_LIMITS: VerifyOptions['limits'] = {
  api: { requests: 60, window: 60 },
  oauth: { requests: 30, window: 60 },
}

/** The other defaults of the command. */
export const DEFAULTS = {
  path: '/',
  flood: { seconds: 10, connections: 20 },
  revocationPath: '/oauth/revoke',
} as const satisfies Partial<VerifyOptions>

/** The least and the greatest value that a run takes: it stays within what a server has to stand anyway. */
export const BOUNDS = {
  floodSeconds: [1, 300],
  floodConnections: [1, 200],
  /** A limit below 5 leaves too few requests for the checks; a greater one than 10000 is no longer one to count through. */
  limitRequests: [5, 10_000],
  limitWindow: [1, 3600],
} as const satisfies Readonly<Record<string, readonly [number, number]>>
