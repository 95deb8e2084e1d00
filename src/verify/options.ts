import type { Endpoint } from '../http/admission.ts'
import type { OutsideId } from './promises.ts'
import type { Limit } from './stated-limits.ts'

/** The options of a run. The values are within `BOUNDS`. */
export interface VerifyOptions {
  /** The origin of the server: http or https, without user, path or query. */
  readonly url: URL
  /** Never appears in a line, report or error. */
  readonly password: string
  /** The target of every request to the API, such as `/` or `/status?verbose=1`. */
  readonly path: string
  readonly tls: {
    /** PEM: only these authorities are trusted. Undefined: those of Node and of the system. */
    readonly ca: string | undefined
    readonly insecure: boolean
  }
  /** The limits that the server is configured with. */
  readonly limits: Readonly<Record<Endpoint, Limit>>
  /** Leaves out the checks that wait for the end of a window. */
  readonly quick: boolean
  /** The promises to check; empty: all. */
  readonly only: readonly OutsideId[]
  readonly flood: { readonly seconds: number; readonly connections: number }
  /** The path at which the run revokes its tokens at the end; undefined: it revokes none. */
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

/** The least and the greatest value of each option. They keep a run within the load that any server must bear. */
export const BOUNDS = {
  floodSeconds: [1, 300],
  floodConnections: [1, 200],
  /** A limit below 5 leaves too few requests for the checks; one above 10000 takes too long to count through. */
  limitRequests: [5, 10_000],
  limitWindow: [1, 3600],
} as const satisfies Readonly<Record<string, readonly [number, number]>>
