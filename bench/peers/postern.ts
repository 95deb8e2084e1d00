import { VERSION } from '../../src/version.ts'
import { PASSWORD, startSidecar } from '../sidecar.ts'
import type { Peer } from './peer.ts'

/** More than any run sends. */
const NO_LIMIT = 1_000_000_000

/** The sidecar with its limits lifted and everything else as it comes: token check, windows, metrics, JSON log to a file. */
export function posternPeer(nodeFlags: readonly string[] = []): Peer {
  return {
    name: 'postern',
    does: 'token, window, header policy, metrics, log',
    version: async () => VERSION,
    async start({ devicePort, core }) {
      const { url, child } = await startSidecar({
        device: `http://127.0.0.1:${devicePort}`,
        tls: false,
        limits: { api: { requests: NO_LIMIT }, oauth: { requests: NO_LIMIT } },
        core,
        nodeFlags,
      })
      const answer = await fetch(`${url}/oauth/token`, {
        method: 'POST',
        body: new URLSearchParams({ grant_type: 'password', password: PASSWORD }),
      })
      const { access_token: token } = (await answer.json()) as { access_token: string } // C4
      return { url, child, headers: { Authorization: `Bearer ${token}` } }
    },
  }
}
