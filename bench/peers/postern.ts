import { VERSION } from '../../src/version.ts'
import type { Program } from '../program.ts'
import { askForToken, startSidecar } from '../sidecar.ts'
import type { Peer } from './peer.ts'

export interface PosternOptions {
  readonly tls?: boolean
  /** False to leave the limits as `set` or the defaults have them. */
  readonly lifted?: boolean
  /** `key=value` each. */
  readonly set?: readonly string[]
  /** The source where nothing else is given. */
  readonly program?: Program
}

/** More than any run sends. */
export const NO_LIMIT = 1_000_000_000

const LIFTED = [`limits.api.requests=${NO_LIMIT}`, `limits.oauth.requests=${NO_LIMIT}`]

/** The sidecar, with its limits lifted unless told otherwise, and everything else as it comes. */
export function posternPeer({ tls = false, lifted = true, set = [], program }: PosternOptions = {}): Peer {
  return {
    name: 'postern',
    does: 'token, window, header policy, metrics, log',
    fast: false,
    version: async () => VERSION,
    async start({ devicePort, core }) {
      const device = `http://127.0.0.1:${devicePort}`
      const sets = [...(lifted ? LIFTED : []), ...set]
      const { url, child } = await startSidecar({ device, tls, set: sets, core, program })
      const token = await askForToken(url)
      return { url, children: [child], headers: { Authorization: `Bearer ${token}` } }
    },
  }
}
