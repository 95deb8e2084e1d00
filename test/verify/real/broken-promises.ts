import { systemClock } from '../../../src/system/clock.ts'
import { DEFAULTS, type VerifyOptions } from '../../../src/verify/options.ts'
import type { Reporter, Verdict } from '../../../src/verify/verdict.ts'
import { verify } from '../../../src/verify/verify.ts'
import type { Limits, RealServer } from './real-server.ts'

const SILENT: Reporter = { announce() {}, progress() {}, decided() {}, finished() {} }

/** Shorter than every window here: where no response states a reset, a flood over two windows looks like one. */
const FLOOD: VerifyOptions['flood'] = { seconds: 1.5, connections: 10 }

/** Runs `postern verify` against a server. Resolves with the broken promises, in the order of their ids. */
export async function brokenPromises(
  { url, password, path }: RealServer,
  limits: Limits,
  change: Partial<VerifyOptions> = {},
): Promise<readonly Verdict[]> {
  const options: VerifyOptions = {
    ...DEFAULTS,
    url: new URL(url),
    password,
    path,
    tls: { ca: undefined, insecure: false },
    limits,
    quick: false,
    only: [],
    flood: FLOOD,
    ...change,
  }
  const { promises } = await verify(options, SILENT, systemClock)
  return promises.filter(({ result }) => result === 'broken')
}
