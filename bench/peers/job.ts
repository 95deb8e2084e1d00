import type { VerifyOptions } from '../../src/verify/options.ts'
import { temporaryFolder } from '../child.ts'
import { askForToken } from '../sidecar.ts'
import type { CertificatePaths } from './certificate.ts'
import type { Peer, Place, RunningPeer } from './peer.ts'

/**
 * A program that does the whole job in place of Postern: logins, tokens that end, exact windows, the errors and the fields of the documented
 * API, the header policy, a line of log for each request. Its password is `PASSWORD`.
 */
export interface Job extends Pick<Peer, 'name' | 'does' | 'version'> {
  start(place: Place, settings: JobSettings): Promise<Omit<RunningPeer, 'headers'>>
}

export interface JobSettings {
  readonly limits: VerifyOptions['limits']
  /** Undefined: without TLS. With it, HTTP/2 is offered. */
  readonly pair: CertificatePaths | undefined
  /** A folder of its own for its tokens and its log. Tokens of an earlier start in it are still valid. */
  readonly state: string
}

/** More than any run sends. */
const NO_LIMITS: VerifyOptions['limits'] = {
  api: { requests: 1_000_000_000, window: 60 },
  oauth: { requests: 1_000_000_000, window: 60 },
}

/** The job as a peer that is loaded: without limits, and with the token of a login. */
export function loadedPeer(job: Job, pair: CertificatePaths | undefined): Peer {
  return {
    name: job.name,
    does: job.does,
    version: job.version,
    async start(place) {
      const running = await job.start(place, { limits: NO_LIMITS, pair, state: await temporaryFolder() })
      return { ...running, headers: { Authorization: `Bearer ${await askForToken(running.url)}` } }
    },
  }
}
