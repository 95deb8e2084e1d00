import { readAuthorities } from '../../system/named-file.ts'
import { SetupError } from '../../system/setup-error.ts'
import { BOUNDS, DEFAULTS, DOCUMENTED_LIMITS, type VerifyOptions } from '../../verify/options.ts'
import { readPlainPassword } from './plain-password.ts'
import { isSamePath, parseServerUrl, parseTarget } from './server-address.ts'
import { parseIds, parseLimit, parseNumber } from './values.ts'

/** The flags of `postern verify`, as they are typed. */
export interface VerifyFlags {
  readonly passwordFile?: string
  readonly path?: string
  readonly quick?: boolean
  readonly only?: string
  readonly insecure?: boolean
  readonly ca?: string
  readonly apiLimit?: string
  readonly oauthLimit?: string
  readonly flood?: string
  readonly connections?: string
  readonly revocationPath?: string
}

/** The options of a run, from the command line and the files that it names. Rejects with a `SetupError` that has every problem. */
export async function verifyOptionsOf(url: string, flags: VerifyFlags): Promise<VerifyOptions> {
  const { flood, path: root } = DEFAULTS
  const parts = [
    given(() => parseServerUrl(url)),
    given(() => readPlainPassword(flags.passwordFile)),
    given(() => parseTarget('--path', flags.path ?? root)),
    given(() => authoritiesFor(url, flags)),
    given(() => parseLimit('--api-limit', flags.apiLimit, DOCUMENTED_LIMITS.api)),
    given(() => parseLimit('--oauth-limit', flags.oauthLimit, DOCUMENTED_LIMITS.oauth)),
    given(() => parseIds(flags.only)),
    given(() => parseNumber('--flood', flags.flood, flood.seconds, BOUNDS.floodSeconds)),
    given(() => parseNumber('--connections', flags.connections, flood.connections, BOUNDS.floodConnections)),
    given(() => parseRevocationPath(flags)),
  ] as const
  const problems = (await Promise.allSettled(parts)).flatMap((part) =>
    part.status === 'rejected' ? problemsOf(part.reason) : [],
  )
  if (problems.length > 0) throw new SetupError(problems)
  const [server, password, path, ca, api, oauth, only, seconds, connections, revocationPath] =
    await Promise.all(parts)
  return {
    url: server,
    password,
    path,
    tls: { ca, insecure: flags.insecure === true },
    limits: { api, oauth },
    quick: flags.quick === true,
    only,
    flood: { seconds, connections },
    revocationPath,
  }
}

/** A parser that throws becomes a promise that rejects. */
async function given<T>(parse: () => T | Promise<T>): Promise<T> {
  return parse()
}

function problemsOf(error: unknown): readonly string[] {
  if (!(error instanceof SetupError)) throw error
  return error.problems
}

async function authoritiesFor(
  url: string,
  { ca, insecure }: Pick<VerifyFlags, 'ca' | 'insecure'>,
): Promise<string | undefined> {
  if (/^http:/i.test(url) && (ca !== undefined || insecure === true)) {
    throw new SetupError(
      '--ca and --insecure belong to an https URL: a connection over http has no certificate',
    )
  }
  if (ca === undefined) return undefined
  if (ca === '') throw new SetupError('--ca: the name of the file is empty')
  if (insecure === true) {
    throw new SetupError('--insecure accepts any certificate, so --ca would have no effect; name one of them')
  }
  return readAuthorities('--ca', ca)
}

function parseRevocationPath({ revocationPath, path = DEFAULTS.path }: VerifyFlags): string | undefined {
  if (revocationPath === 'off') return undefined
  const parsed = parseTarget('--revocation-path', revocationPath ?? DEFAULTS.revocationPath)
  if (isSamePath(parsed, path)) {
    throw new SetupError(
      revocationPath === undefined
        ? `--path: must not be ${parsed}, at which the run revokes its tokens; see --revocation-path`
        : `--revocation-path: must not be ${parsed}, the path of the API, to which the run never sends a POST`,
    )
  }
  return parsed
}
