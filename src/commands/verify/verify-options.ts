import { isAmbiguousPath, pathOf } from '../../http/request-path.ts'
import { readOnlyLine } from '../../password/read-source.ts'
import { isHash } from '../../password/stored-line.ts'
import { readAuthorities } from '../../system/named-file.ts'
import { SetupError } from '../../system/setup-error.ts'
import { BOUNDS, DEFAULTS, DOCUMENTED_LIMITS, type VerifyOptions } from '../../verify/options.ts'
import { OUTSIDE, type OutsideId } from '../../verify/promises.ts'
import type { Limit } from '../../verify/stated-limits.ts'

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
    Promise.try(parseServerUrl, url),
    readPlainPassword(flags.passwordFile),
    Promise.try(parseTarget, '--path', flags.path ?? root),
    authoritiesFor(url, flags),
    Promise.try(parseLimit, '--api-limit', flags.apiLimit, DOCUMENTED_LIMITS.api),
    Promise.try(parseLimit, '--oauth-limit', flags.oauthLimit, DOCUMENTED_LIMITS.oauth),
    Promise.try(parseIds, flags.only),
    Promise.try(parseNumber, '--flood', flags.flood, flood.seconds, BOUNDS.floodSeconds),
    Promise.try(parseNumber, '--connections', flags.connections, flood.connections, BOUNDS.floodConnections),
    Promise.try(parseRevocationPath, flags),
  ] as const
  const problems = (await Promise.allSettled(parts)).flatMap((part) => {
    if (part.status === 'fulfilled') return []
    if (!(part.reason instanceof SetupError)) throw part.reason
    return part.reason.problems
  })
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
  if (!isSamePath(parsed, path)) return parsed
  throw new SetupError(`must not be ${parsed}, at which the run revokes its tokens; see --revocation-path`, {
    key: '--path',
  })
}

/** The password in a file of one line. Rejects with `SetupError` if the file is missing or contains anything else. */
async function readPlainPassword(file: string | undefined): Promise<string> {
  if (file === undefined) {
    throw new SetupError('--password-file is missing: name a file with one line, the password of the device')
  }
  if (file === '') throw new SetupError('--password-file: the name of the file is empty')
  const line = await readOnlyLine(file)
  const fault = typeof line === 'string' ? passwordFault(line) : line.reason
  if (typeof line !== 'string' || fault !== undefined)
    throw new SetupError(`${file}: ${fault}`, { key: '--password-file' })
  return line
}

function passwordFault(line: string): string | undefined {
  if (line === '') return 'it is empty, and an empty password is never accepted'
  if (line.includes('\0')) return 'it contains a NUL byte'
  return isHash(line) ? 'it holds a hash, and verify has to send the password itself' : undefined
}

type Bounds = readonly [least: number, most: number]

function parseNumber(flag: string, text: string | undefined, absent: number, bounds: Bounds): number {
  if (text === undefined) return absent
  const number = wholeNumber(text, bounds)
  if (number === undefined) throw new SetupError(`${flag}: must be a whole number, ${range(bounds)}`)
  return number
}

/** A limit as `60/60`: requests, and seconds of the window. Throws `SetupError`. */
function parseLimit(flag: string, text: string | undefined, absent: Limit): Limit {
  if (text === undefined) return absent
  const [first = '', second = '', ...others] = text.split('/')
  const requests = wholeNumber(first, BOUNDS.limitRequests)
  const window = wholeNumber(second, BOUNDS.limitWindow)
  if (requests === undefined || window === undefined || others.length > 0) {
    const bounds = `${range(BOUNDS.limitRequests)} requests in ${range(BOUNDS.limitWindow)} seconds`
    throw new SetupError(
      `${flag}: must be requests/seconds, such as ${absent.requests}/${absent.window}: ${bounds}`,
    )
  }
  return { requests, window }
}

/** Ids of promises, separated by commas, in either case; all if there is no text. Throws `SetupError`. */
function parseIds(text: string | undefined): readonly OutsideId[] {
  if (text === undefined) return []
  const ids = new Set(text.split(',').map((id) => id.trim().toUpperCase()))
  const known = [...OUTSIDE.keys()]
  const others = [...ids.difference(OUTSIDE)].map(
    (id) => `${JSON.stringify(id)} cannot be checked from outside`,
  )
  if (others.length === 0) return known.filter((id) => ids.has(id))
  throw new SetupError(others, { key: '--only', remedy: `these can be checked: ${known.join(', ')}` })
}

function wholeNumber(text: string, [least, most]: Bounds): number | undefined {
  const number = Number(text)
  return /^\d{1,6}$/.test(text) && number >= least && number <= most ? number : undefined
}

function range([least, most]: Bounds): string {
  return `${least} to ${most}`
}

/** The address of the server under test. Throws `SetupError` for anything but http or https, host and port. */
function parseServerUrl(text: string): URL {
  // `URL.parse` is too lenient: it drops tabs, spaces and line ends, and takes https:host for https://host.
  const url = /^https?:\/\/[^\s/\\]/i.test(text) && !/[\s\\]/.test(text) ? URL.parse(text) : null
  const problem = url === null ? '' : urlProblem(text, url)
  if (url !== null && problem === undefined) return url
  throw new SetupError(
    `the URL must ${problem || 'be the address of the server, such as https://device.example or https://192.0.2.7:8443'}`,
  )
}

function urlProblem(text: string, { origin, pathname, port }: URL): string | undefined {
  // The message must not repeat the URL: the text before the @ may be a password.
  if (/^\w+:\/\/[^/?#]*@/.test(text))
    return 'not contain a user or password; the password belongs in the file of --password-file'
  if (/[?#]/.test(text))
    return 'have neither query nor fragment; a query belongs to --path, such as --path /status?x=1'
  if (pathname !== '/') return `end after the port; write ${origin} --path ${pathname}`
  return port === '0' ? 'have a port from 1 to 65535' : undefined
}

/** RFC 3986 §3.3 and §3.4: a path and a query, with every other character encoded. */
const TARGET = /^\/(?:[\w.~!$&'()*+,;=:@/?-]|%[\dA-F]{2})*$/i

/** A request target in the form in which it is sent. Throws `SetupError`. */
function parseTarget(flag: string, text: string): string {
  const problem = askedPathProblem(text)
  if (problem === undefined) return text
  throw new SetupError(problem, { key: flag })
}

/** Why a text cannot be the path: it is no path, two servers may read it differently, or it is the token endpoint. Otherwise undefined. */
function askedPathProblem(text: string): string | undefined {
  if (!text.startsWith('/')) return 'must begin with /, such as /status'
  if (text.includes('#')) return 'must not have a fragment (#): no client sends it'
  if (!TARGET.test(text))
    return 'must be sent as it stands, so write other characters encoded, such as %20 for a space'
  if (isAmbiguousPath(pathOf(text)))
    return 'must not have ., .., // or an encoded delimiter: a server may read it as another path'
  if (isSamePath(text, '/oauth/token')) return 'must not be the token endpoint, which the run checks anyway'
  return undefined
}

/** Whether two targets have the same path, ignoring the query, percent-encoding and a slash at the end. */
function isSamePath(one: string, other: string): boolean {
  return resourceOf(one) === resourceOf(other)
}

function resourceOf(target: string): string {
  const decoded = pathOf(target).replaceAll(/%[2-7][\dA-F]/gi, (code) =>
    String.fromCharCode(Number.parseInt(code.slice(1), 16)),
  )
  return decoded.replace(/\/$/, '')
}
