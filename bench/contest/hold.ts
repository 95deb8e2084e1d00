import { systemClock } from '../../src/system/clock.ts'
import { timeOn } from '../../src/verify/conversation.ts'
import { DEFAULTS, DOCUMENTED_LIMITS, type VerifyOptions } from '../../src/verify/options.ts'
import { OUTSIDE } from '../../src/verify/promises.ts'
import { verify } from '../../src/verify/run.ts'
import type { Verdict } from '../../src/verify/verdict.ts'
import { temporaryFolder } from '../child.ts'
import type { CertificatePaths } from '../peers/certificate.ts'
import type { Job } from '../peers/job.ts'
import type { Place } from '../peers/peer.ts'
import { cleaningUp } from '../run-program.ts'
import { PASSWORD } from '../sidecar.ts'

/** The documented numbers of requests, in windows that a run can wait for (s). */
const WINDOW = 5
const LIMITS: VerifyOptions['limits'] = {
  api: { ...DOCUMENTED_LIMITS.api, window: WINDOW },
  oauth: { ...DOCUMENTED_LIMITS.oauth, window: WINDOW },
}

const FLOOD = { seconds: 2, connections: 20 }

/** What `postern verify` says of each promise that a run can test, over TLS, HTTP/1.1 and HTTP/2. The program ends with the run. */
export function hold(
  job: Job,
  place: Place,
  pair: CertificatePaths,
  { quick = false }: { readonly quick?: boolean } = {},
): Promise<readonly Verdict[]> {
  return cleaningUp(async () => {
    const { url } = await job.start(place, { limits: LIMITS, pair, state: await temporaryFolder() })
    const options: VerifyOptions = {
      url: new URL(url),
      password: PASSWORD,
      path: DEFAULTS.path,
      // It signs its own certificate, and the connection stays on loopback.
      tls: { ca: undefined, insecure: true },
      limits: LIMITS,
      quick,
      only: [],
      flood: FLOOD,
      revocationPath: undefined,
    }
    const { promises } = await verify(options, SILENT, timeOn(systemClock))
    return promises.filter(({ id }) => OUTSIDE.get(id)?.untestable !== true)
  })
}

const SILENT = { announce() {}, progress() {}, decided() {}, finished() {} }

/** `19 kept`, or `18 kept; C16 broken`. */
export function heldText(verdicts: readonly Verdict[]): string {
  const others = verdicts.filter(({ result }) => result !== 'kept')
  return [
    `${verdicts.length - others.length} kept`,
    ...others.map(({ id, result }) => `${id} ${result}`),
  ].join('; ')
}
