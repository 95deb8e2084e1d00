import { VERSION } from '../../src/version.ts'
import type { Program } from '../program.ts'
import { requestOnce } from '../request.ts'
import { askForToken, startSidecar } from '../sidecar.ts'
import type { Job, JobSettings } from './job.ts'
import type { Peer } from './peer.ts'

export interface PosternOptions {
  readonly tls?: boolean
  /** Whether to lift the limits; otherwise `set` or the defaults apply. */
  readonly lifted?: boolean
  /** Arguments of `--set`, each `key=value`. */
  readonly set?: readonly string[]
  /** Default: the source. */
  readonly program?: Program
}

/** More than any run sends. */
export const NO_LIMIT = 1_000_000_000

export const LIFTED: readonly string[] = [
  `limits.api.requests=${NO_LIMIT}`,
  `limits.oauth.requests=${NO_LIMIT}`,
]

/** The devices of most figures take all that a load sends. A later `--set` counts. */
const PLACES = 'upstream.max_in_flight=64'

/** The sidecar, with 64 places, lifted limits unless `lifted` is false, and defaults otherwise. */
export function posternPeer({ tls = false, lifted = true, set = [], program }: PosternOptions = {}): Peer {
  return {
    name: 'postern',
    does: 'token, window, header policy, metrics, log',
    version: async () => VERSION,
    async start({ devicePort, core }) {
      const device = `http://127.0.0.1:${devicePort}`
      const sets = [PLACES, ...(lifted ? LIFTED : []), ...set]
      const { url, admin, child } = await startSidecar({ device, tls, set: sets, core, program })
      const token = await askForToken(url)
      const headers = { Authorization: `Bearer ${token}` }
      // From now on TLS itself reads what the client sends, as it does for most clients.
      if (tls) await requestOnce(url, { headers })
      return { url, admin, children: [child], headers }
    },
  }
}

/** As many as a load over HTTP/2 sends at once: the queue refuses none of them. */
const QUEUE = 'upstream.queue.size=256'

/** The sidecar with 64 places, the given limits, and defaults otherwise. Its certificate is its own. */
export function posternJob(program: Program): Job {
  return {
    name: 'postern',
    does: 'token, window, header policy, metrics, log',
    version: async () => VERSION,
    async start({ devicePort, core }, { limits, pair }) {
      const device = `http://127.0.0.1:${devicePort}`
      const options = { device, tls: pair !== undefined, set: [PLACES, QUEUE], core, program }
      const { api, oauth } = limits
      const { url, admin, child } = await startSidecar({
        ...options,
        limits: { api: windowed(api), oauth: windowed(oauth) },
      })
      return { url, admin, children: [child] }
    },
  }
}

function windowed({ requests, window }: JobSettings['limits']['api']) {
  return { requests, window: `${window}s` }
}
