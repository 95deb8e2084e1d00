import { randomBytes } from 'node:crypto'
import { type FirstPassword, REVOCATION_PATH } from '../../config/first-configuration.ts'
import { loadConfig } from '../../config/load.ts'
import type { ServiceConfig } from '../../config/upstream-fields.ts'
import { parseYaml, type YamlMapping, type YamlValue } from '../../config/yaml.ts'
import type { OwnResponse } from '../../device/own-request.ts'
import { sendOwnRequest } from '../../device/own-request.ts'
import { abortAfter, type Clock } from '../../system/clock.ts'
import { isBug, SetupError } from '../../system/setup-error.ts'
import { NEW_DEVICE } from '../check/device.ts'
import type { CheckResult, DeviceLogin } from '../check/finding.ts'
import { openService } from '../check/open-service.ts'
import { lookBound, type Service } from '../check/services.ts'
import { findLoginForm } from './login-form.ts'

/** The URL of the device, the value of `upstream.tls` as YAML, and further lines of YAML for `upstream`. */
export interface DeviceAddress {
  readonly url: string
  readonly tls?: string | undefined
  readonly lines?: readonly string[] | undefined
}

/** A login that the device has of its own. */
export interface SeenLogin {
  /** What was seen, as the end of a sentence. */
  readonly words: string
  /** `upstream.auth` without the user. */
  readonly auth: YamlMapping
  /** Whether the login asks for a user. */
  readonly asksUser: boolean
}

/** An address that was tried. */
export interface TriedDevice extends DeviceAddress {
  /** The login of the device, if `upstream.auth` does not answer it. */
  readonly login?: SeenLogin | undefined
  /** Whether the device itself has the path at which clients log out of Postern. Undefined: it was not asked. */
  readonly hasRevocation?: boolean | undefined
}

/** What came of the attempts. */
interface Attempts {
  readonly device: TriedDevice
  readonly result: CheckResult
  /** The value of `upstream.tls` with which the device works. */
  readonly tls?: string | undefined
}

/** The most attempts, each with what the one before has found. */
const MOST_ATTEMPTS = 4

/**
 * Requests a page of the device as clients do. What it needs for them is found and added, and the device is tried again. Then it is asked for
 * a login of its own, and for the path at which clients log out.
 *
 * @param auth the value of `upstream.auth`, if it is known
 * @param told gets each result, and the line that is added because of it
 */
export async function tryDevice(
  address: DeviceAddress,
  auth: FirstPassword['auth'],
  told: (result: CheckResult, line: string | undefined) => void,
  clock: Clock,
): Promise<Attempts> {
  let device = address
  for (let attempt = 1; ; attempt += 1) {
    const service = serviceOf(device, auth, clock)
    const { result, tls, line, login } = await NEW_DEVICE.run(service)
    const isNew = line !== undefined && attempt < MOST_ATTEMPTS && device.lines?.includes(line) !== true
    told(result, isNew ? line : undefined)
    if (isNew) device = { ...device, lines: withLine(device.lines, line) }
    else if (result.result === 'failed') return { device, result, tls }
    else return { device: { ...device, ...(await look(service, login, auth)) }, result }
  }
}

/** The lines with another one, which takes the place of one with the same key. */
function withLine(lines: readonly string[] = [], line: string): readonly string[] {
  const [key] = line.split(':', 1)
  return [...lines.filter((each) => !each.startsWith(`${key}:`)), line]
}

function serviceOf(
  { url, tls, lines = [] }: DeviceAddress,
  auth: FirstPassword['auth'],
  clock: Clock,
): Service {
  const own = [...lines, ...(tls === undefined ? [] : [`tls: ${tls}`])].map(yaml)
  const upstream = Object.assign({ url, ...(auth && { auth }) }, ...own)
  const password = auth === undefined ? { file: 'none' } : { device: true }
  return { service: loadConfig({ object: { upstream, password } }).upstream, key: 'upstream', clock }
}

/** The value of a line that this program has made. */
function yaml(line: string): YamlValue {
  const parsed = parseYaml(line)
  if ('problem' in parsed) throw new SetupError(parsed.problem)
  return parsed.value
}

/** What else there is at a device that works. A device that stops answering meanwhile has none of it. */
async function look(
  tried: Service,
  login: DeviceLogin | undefined,
  auth: FirstPassword['auth'],
): Promise<Pick<TriedDevice, 'login' | 'hasRevocation'>> {
  using deadline = abortAfter(tried.clock, lookBound(tried).time)
  const service: ServiceConfig = { ...tried.service, auth: 'off' }
  await using opened = await openService({ ...tried, service }, deadline.signal)
  const { connections, settings } = opened
  const fields = settings.host === undefined ? [] : ['Host', settings.host]
  const get = (target: string): Promise<OwnResponse> =>
    sendOwnRequest(connections, { method: 'GET', target, fields, keepsBody: true }, true)
  try {
    const hasRevocation = await answersFor(REVOCATION_PATH, get)
    if (auth !== undefined) return { hasRevocation }
    if (login !== undefined) return { hasRevocation, login: httpLogin(login) }
    const form = await findLoginForm({ origin: service.url.origin, get }, '/')
    return { hasRevocation, login: form && formLogin(form) }
  } catch (error) {
    if (isBug(error)) throw error
    return {}
  }
}

/** Whether the device has a path: many answer every path in the same way, such as with their login. */
async function answersFor(path: string, get: (target: string) => Promise<OwnResponse>): Promise<boolean> {
  const { status } = await get(path)
  if (status === 404 || status === 410) return false
  return status !== (await get(`/oauth/${randomBytes(8).toString('hex')}`)).status
}

/** The names of the logins that HTTP defines. */
const NAMES: Readonly<Record<DeviceLogin, string>> = { basic: 'Basic', digest: 'Digest' }

export function httpLogin(kind: DeviceLogin): SeenLogin {
  return { words: `a ${NAMES[kind]} login of its own`, auth: { kind }, asksUser: true }
}

function formLogin({
  page,
  login,
  typed,
  checkPath,
}: NonNullable<Awaited<ReturnType<typeof findLoginForm>>>): SeenLogin {
  return {
    words: `a login form at ${page}, which sends ${typed.join(' and ')} to ${login.path}`,
    auth: { kind: 'session', ...(checkPath && { check_path: checkPath }), session: { login } },
    asksUser: typed.length > 1,
  }
}

/**
 * Tries an account at the device as Postern will.
 *
 * @param auth the value of `upstream.auth`
 * @returns why it does not work, as a clause; undefined if the device accepts it
 */
export async function tryAccount(
  device: DeviceAddress,
  auth: YamlMapping,
  password: string,
  clock: Clock,
): Promise<string | undefined> {
  const service = serviceOf(device, auth, clock)
  using deadline = abortAfter(clock, lookBound(service).time)
  await using opened = await openService(service, deadline.signal)
  const checked = await opened.signIn?.check(password)
  if (checked?.kind === 'right') checked.discard()
  if (checked?.kind === 'right') return undefined
  if (checked?.kind === 'failed')
    return opened.told.problem ?? `the device did not respond (${checked.failure})`
  return 'the device refuses it'
}
