import { tokenHeaders } from '../../config/auth-fields.ts'
import { responseKeeps } from '../../config/dropped-fields.ts'
import { checkedByDevice } from '../../config/password-fields.ts'
import type { Config } from '../../config/schema.ts'
import { type ServiceConfig, servicesOf } from '../../config/upstream-fields.ts'
import type { Malformed } from '../../device/connections.ts'
import { canDiagnose, diagnose } from '../../device/diagnosis.ts'
import { failureOf } from '../../device/failure.ts'
import { isDelayed, type OwnResponse, probeDevice, sendOwnRequest } from '../../device/own-request.ts'
import type { UpstreamTarget } from '../../device/target.ts'
import { withCredentials } from '../../forward/request-fields.ts'
import { CHROMIUM, CURL, sampleFields, sampleSize } from '../../forward/sample-heads.ts'
import { readRequestFields, upstreamDeadlines, upstreamTarget } from '../../forward/settings.ts'
import { type Fields, namesIn } from '../../http/fields.ts'
import type { UpstreamFailure } from '../../http/refusal.ts'
import { KINDS } from '../../overview/alarm-kinds.ts'
import { httpLogin } from '../../sign-in/http-schemes.ts'
import { tokenPlace } from '../../sign-in/session-scheme.ts'
import { type Clock, systemClock } from '../../system/clock.ts'
import { explainPathError } from '../../system/named-file.ts'
import { isBug } from '../../system/setup-error.ts'
import { changesSession, openService, serviceAt, tryHeads } from './client-requests.ts'
import { COMPRESSED, tryCompression } from './compression-check.ts'
import { type Check, CheckFailure, type Finding } from './finding.ts'

/** Tries each service of the device: the files of its headers, its address, and how the sidecar signs in. */
export function deviceChecks(config: Config): readonly Check[] {
  const { upstream } = config
  return servicesOf(upstream).flatMap(({ path, service }) => {
    const [, , route] = path
    const of = route === undefined ? '' : ` of ${route}`
    const byGrant = service === upstream && checkedByDevice(config)
    return serviceChecks(path.join('.'), of, service, byGrant)
  })
}

/**
 * Requests a page that the operator names as a client would, signed in at the device. Throws `SetupError` if `path` is not that of one
 * service.
 */
export function namedPageCheck(config: Config, path: string): Check {
  const { service, key } = serviceAt(config, path, 'PATH')
  return {
    name: `page ${path}`,
    key: `${key}.url`,
    meaning: 'clients get an error for this page',
    remedy: 'name a page that clients use, or look at the log of the device',
    run: () => checkNamedPage(service, key, path),
  }
}

async function checkNamedPage(service: ServiceConfig, key: string, path: string): Promise<Finding> {
  const { connections, signIn, told, close } = await openService(service, key)
  const line = { method: 'GET', target: path }
  try {
    await signIn?.ready()
    const own = signIn?.credentialsFor(line)?.fields ?? []
    const ask = async (by: ServiceConfig): Promise<OwnResponse> => {
      const fields = sampleFields(COMPRESSED, await readRequestFields(by, key))
      return sendOwnRequest(connections, { ...line, fields: withCredentials(fields, own) }, true)
    }
    const response = await ask(service).catch((error: unknown) => {
      if (isBug(error)) throw error
      const failure = failureOf(error)
      throw new CheckFailure(`no usable answer (${failure})`, { remedy: failureHint(failure, key) })
    })
    const { status } = response
    const found = `answered ${status}${withoutText(response.fields, service)}`
    if (told.malformed !== undefined) return malformedFinding(found, told.malformed, key)
    if (status >= 400) return { warning: found }
    return (await tryCompression(service, key, found, ask, response)) ?? found
  } finally {
    await close()
  }
}

function malformedFinding(found: string, { fault, bytes }: Malformed, key: string): Finding {
  return {
    warning: `${found} with malformed HTTP: ${fault}: "${bytes}"`,
    meaning: KINDS.MalformedHttp.meaning,
    remedy: `set ${key}.parser: tolerant, which saves the first try, and look for a new firmware`,
  }
}

export function headerChecks({ upstream }: Config): readonly Check[] {
  return servicesOf(upstream).map(({ path, service }) => headerCheck(path.join('.'), '', service))
}

function headerCheck(key: string, of: string, service: ServiceConfig): Check {
  return {
    name: `upstream headers${of}`,
    key: `${key}.headers`,
    meaning: 'serve does not start',
    remedy: `correct the file, or ${key}.headers`,
    run: () => checkHeaders(service, key),
  }
}

function serviceChecks(key: string, of: string, service: ServiceConfig, byGrant: boolean): readonly Check[] {
  return [
    headerCheck(key, of, service),
    {
      name: `device${of}`,
      key: `${key}.url`,
      meaning: KINDS[key === 'upstream' ? 'PosternDeviceDown' : 'PosternRouteDown'].meaning,
      remedy: `correct ${key}`,
      run: () => checkDevice(service, key),
    },
    {
      name: `signing in${of}`,
      key: `${key}.auth`,
      meaning: 'the device refuses the requests that Postern forwards',
      remedy: `correct ${key}.auth: the kind, the user and the password file`,
      run: () =>
        byGrant
          ? Promise.resolve('with the password of the last password grant, once there is one')
          : checkSignIn(service, key),
    },
  ]
}

async function checkHeaders(service: ServiceConfig, key: string): Promise<string> {
  const settings = await readRequestFields(service, key)
  const { added } = settings
  const set = added.length === 0 ? 'none' : `${added.length / 2} set on every request`
  const [curl, browser] = [CURL, CHROMIUM].map((sample) => sampleSize(sample, settings, service))
  return `${set}; the head of a GET has ${curl} bytes from curl, ${browser} from Chromium`
}

async function checkDevice(service: ServiceConfig, key: string): Promise<Finding> {
  const target = await upstreamTarget(service, key)
  const page = pageOf(service)
  const found = await judgeDevice(target, service, key)
  const refused = await tryHeads(service, key, page)
  if (refused !== undefined || typeof found !== 'string') return refused ?? found
  const ask = async (by: ServiceConfig): Promise<OwnResponse> => {
    const fields = sampleFields(COMPRESSED, await readRequestFields(by, key))
    return probeDevice(target, upstreamDeadlines(service), page, systemClock, fields)
  }
  return (await tryCompression(service, key, found, ask)) ?? found
}

/** Requests a page of the device, and judges the response. Rejects with `CheckFailure` if there is none. */
export async function judgeDevice(
  target: UpstreamTarget,
  service: ServiceConfig,
  key: string,
  clock: Clock = systemClock,
): Promise<Finding> {
  const at = target.socketPath ?? target.origin
  const page = pageOf(service)
  let malformed: Malformed | undefined
  const onQuirk = (_quirk: unknown, shown?: Malformed): void => {
    malformed ??= shown
  }
  const response = await probeDevice(target, upstreamDeadlines(service), page, clock, [], {
    onQuirk,
  }).catch(async (error: unknown) => {
    if (isBug(error) || !(error instanceof Error)) throw error
    throw await explained(error, target, service, key)
  })
  const { status, fields } = response
  const found = `${at} answered ${status}${withoutText(fields, service)}`
  // A TLS server answers a cleartext request with 400.
  const secure = status === 400 ? await diagnose(target, key, service.connectTimeout, systemClock) : undefined
  if (secure !== undefined) return { warning: `${found}; ${secure.reason}`, remedy: secure.remedy }
  const location = fields[fields.findIndex((name, i) => i % 2 === 0 && /^location$/i.test(name)) + 1] ?? ''
  if (status >= 300 && status < 400 && target.origin.startsWith('http:') && /^https:/i.test(location)) {
    return {
      warning: `${found}, a redirect to https`,
      meaning: 'the redirect leads clients past Postern, or back to it in a loop',
      remedy: `set ${key}.url to the https address of the device`,
    }
  }
  if (status >= 500) {
    return {
      warning: found,
      meaning: `the device answers, but with an error: with ${key}.health.path: ${page} it counts as down`,
      remedy: `open ${page} on the device itself, or set ${key}.health.path to a page that works`,
    }
  }
  if (malformed !== undefined) return malformedFinding(found, malformed, key)
  const login = signsIn(service) ? undefined : httpLogin(response)
  if (login !== undefined) {
    return {
      warning: `${found}, which asks for a ${login === 'basic' ? 'Basic' : 'Digest'} login of its own`,
      meaning:
        'clients cannot answer it, as their Authorization field is for Postern: they get 401 for every such page',
      remedy: `set ${key}.auth: {kind: ${login}, user: NAME, password: {file: FILE}}, and Postern signs in for them; if only this page has a login, name another one in ${key}.health.path`,
      login,
    }
  }
  const deadlines = upstreamDeadlines(service)
  if (service.reuse !== 'shared' || !(await isDelayed(target, deadlines, page, clock))) return found
  return {
    warning: `${found}; a kept connection costs 40 ms a request`,
    meaning: 'the device sends head and body apart and waits for an acknowledgement between them',
    remedy: `set ${key}.reuse: never; without it, Postern finds out by itself after some requests`,
  }
}

/** Whether the requests that the device gets have credentials of the configuration. */
function signsIn({ auth, headers }: ServiceConfig): boolean {
  return auth !== 'off' || Object.keys(headers).some((name) => /^authorization$/i.test(name))
}

/** The fields of a response that clients do not get; empty if there are none. */
function withoutText(fields: Fields, { dropResponse, auth }: ServiceConfig): string {
  const passes = responseKeeps(dropResponse, tokenHeaders(auth))
  const dropped = new Set(
    namesIn(fields)
      .values()
      .filter((name) => !passes(name)),
  )
  return dropped.size === 0 ? '' : `; clients do not get ${[...dropped].join(', ')}`
}

function pageOf({ health }: ServiceConfig): string {
  return health.path ?? '/'
}

async function explained(
  error: Error,
  target: UpstreamTarget,
  service: ServiceConfig,
  key: string,
): Promise<CheckFailure> {
  const failure = failureOf(error.cause)
  const found = canDiagnose(failure, target)
    ? await diagnose(target, key, service.connectTimeout, systemClock)
    : undefined
  if (found !== undefined) {
    const { reason, remedy, tls } = found
    return new CheckFailure(`${error.message}: ${reason}`, { remedy, tls })
  }
  const better =
    failure === 'connection_terminated' ? await tryHeads(service, key, pageOf(service)) : undefined
  if (better !== undefined) return new CheckFailure(`${error.message}; ${better.warning}`, better)
  if (target.socketPath === undefined)
    return new CheckFailure(error.message, { remedy: failureHint(failure, key) })
  const { reason } = explainPathError(error.cause, target.socketPath)
  return new CheckFailure(`${error.message}: ${reason}`, {
    remedy: `start what listens on the socket, let the user that runs Postern write to it, or correct ${key}.url`,
  })
}

/** Signs in and asks for a page. `failure`: why the device did not respond to the login. `changes`: see `changesSession`. */
async function trySignIn(opened: Awaited<ReturnType<typeof openService>>, page: string) {
  const failure = await opened.signIn?.ready()
  return { failure, changes: await changesSession(opened, page) }
}

async function checkSignIn(service: ServiceConfig, key: string): Promise<Finding> {
  const { auth } = service
  if (auth === 'off') return 'off'
  const opened = await openService(service, key)
  const { told } = opened
  const page = (auth.kind === 'form' ? auth.checkPath : undefined) ?? pageOf(service)
  const { failure, changes } = await trySignIn(opened, page).finally(opened.close)
  if (failure !== undefined) {
    throw new CheckFailure(`the device did not respond (${failure})`, { remedy: failureHint(failure, key) })
  }
  if (told.problem !== undefined) throw new Error(told.problem)
  const accepted =
    auth.kind === 'session'
      ? `${auth.session.login.path} gave a token (${tokenPlace(auth.session)})`
      : 'the device accepts the credentials'
  if (changes) {
    const { kind } = auth
    const other =
      kind === 'form' && auth.form.sessionCookie === undefined
        ? `name the cookie of the session in ${key}.auth.form.session_cookie, if another one changes; else `
        : ''
    return {
      warning: `${accepted}; its response to GET ${page} sets another session`,
      meaning: 'Postern signs in again after such responses, and the device may refuse requests meanwhile',
      remedy: `${other}set ${key}.auth.${kind}.on_change: follow, if no client can sign in at the device as another user`,
    }
  }
  if (told.unended === undefined) return accepted
  return {
    warning: `${accepted}; ${told.unended}: the session stays until the device ends it`,
    meaning: 'a device that allows few sessions soon refuses to open another',
    remedy: `correct ${key}.auth.session.logout`,
  }
}

const CLOSES =
  'the device closes the connection instead of answering: correct KEY.url, or look at the log of the device'
const NOT_HTTP =
  'KEY.url leads to something other than a web server; for sloppy firmware see deploy/old-firmware.md'

/** What to do about a device that does not answer. `KEY` stands for the key of the service. */
const HINTS: Readonly<Partial<Record<UpstreamFailure, string>>> = {
  dns_error: 'the host name in KEY.url has no address: correct it, or write the IP address',
  dns_timeout:
    'the host name in KEY.url takes longer to resolve than KEY.connect_timeout: look at the DNS servers of this machine (/etc/resolv.conf), or write the IP address',
  connection_refused: 'nothing listens there: switch the device on, or correct host and port in KEY.url',
  destination_unavailable: 'no route to the device: check the network of this machine, or correct KEY.url',
  connection_timeout: 'switch the device on, correct KEY.url, or look for a firewall between the two',
  http_response_timeout:
    'raise KEY.response_timeout, or set KEY.health.path to a page that costs the device less',
  http_response_header_section_size: NOT_HTTP,
  http_protocol_error: NOT_HTTP,
  tls_protocol_error:
    'the TLS handshake fails: look at the TLS versions and ciphers that the device offers, or correct KEY.url',
  tls_certificate_error: 'compare the certificate of the device with KEY.tls',
}

function failureHint(failure: UpstreamFailure, key: string): string {
  return (HINTS[failure] ?? CLOSES).replaceAll('KEY', key)
}
