import type { ServiceConfig } from '../../config/upstream-fields.ts'
import type { Malformed } from '../../device/connections.ts'
import { canDiagnose, diagnose } from '../../device/diagnosis.ts'
import { failureOf } from '../../device/failure.ts'
import { isDelayed, type OwnResponse, probeDevice } from '../../device/own-request.ts'
import type { UpstreamTarget } from '../../device/target.ts'
import { sampleFields } from '../../forward/sample-heads.ts'
import { readRequestFields, upstreamDeadlines, upstreamTarget } from '../../forward/service-settings.ts'
import { fieldValues } from '../../http/fields.ts'
import type { UpstreamFailure } from '../../http/refusal.ts'
import { KINDS } from '../../overview/alarm-kinds.ts'
import { httpLogin } from '../../sign-in/http-schemes.ts'
import { type Clock, systemClock } from '../../system/clock.ts'
import { explainPathError } from '../../system/named-file.ts'
import { isBug } from '../../system/setup-error.ts'
import { COMPRESSED, tryCompression } from './compression.ts'
import { tryHeads } from './heads.ts'
import { check } from './part.ts'
import { allServices, failureHint, malformedWarning, pageOf, type Service, withoutText } from './services.ts'

interface Tried extends Service {
  /** The clock for the times of responses. */
  readonly clock: Clock
  readonly target: UpstreamTarget
  readonly page: string
  /** The response or the failure, as a clause. */
  readonly found: string
  /** Status 0: the device did not respond, and `failure` and `cause` have the reason. */
  readonly response: OwnResponse
  readonly failure?: UpstreamFailure
  readonly cause?: unknown
  readonly malformed?: Malformed | undefined
}

/** The rows for a device that did not respond. */
const SILENCE = {
  'TLS fails': async ({ failure, target, service, key, found }: Tried) => {
    if (failure === undefined || !canDiagnose(failure, target)) return undefined
    const fault = await diagnose(target, key, service.connectTimeout, systemClock)
    return fault && { failed: `${found}: ${fault.reason}`, remedy: fault.remedy, tls: fault.tls }
  },
  'head unanswered': async ({ failure, service, key, page, found }: Tried) => {
    const refused = failure === 'connection_terminated' ? await tryHeads(service, key, page) : undefined
    if (refused === undefined) return undefined
    const { warning, ...hints } = refused
    return { failed: `${found}; ${warning}`, ...hints }
  },
  'no socket': ({ failure, cause, target: { socketPath }, key, found }: Tried) =>
    failure !== undefined &&
    socketPath !== undefined && {
      failed: `${found}: ${explainPathError(cause, socketPath).reason}`,
      remedy: `start what listens on the socket, let the user that runs Postern write to it, or correct ${key}.url`,
    },
  'no response': ({ failure, key, found }: Tried) =>
    failure !== undefined && { failed: found, remedy: failureHint(failure, key) },
}

/** The rows for problems with a response. */
const FAULTS = {
  'cleartext to TLS': async ({ response, target, service, key, found }: Tried) => {
    // A TLS server answers a cleartext request with 400.
    const fault =
      response.status === 400 ? await diagnose(target, key, service.connectTimeout, systemClock) : undefined
    return fault && { warning: `${found}; ${fault.reason}`, remedy: fault.remedy }
  },
  'redirect to https': ({ response: { status, fields }, target, key, found }: Tried) => {
    const [location = ''] = fieldValues(fields, 'location')
    const isRedirect = status >= 300 && status < 400 && /^https:/i.test(location)
    if (!isRedirect || !target.origin.startsWith('http:')) return undefined
    return {
      warning: `${found}, a redirect to https`,
      meaning: 'the redirect leads clients past Postern, or back to it in a loop',
      remedy: `set ${key}.url to the https address of the device`,
    }
  },
  'error of the device': ({ response, key, page, found }: Tried) =>
    response.status >= 500 && {
      warning: found,
      meaning: `the device answers, but with an error: with ${key}.health.path: ${page} it counts as down`,
      remedy: `open ${page} on the device itself, or set ${key}.health.path to a page that works`,
    },
  malformed: ({ malformed, key, found }: Tried) =>
    malformed !== undefined && malformedWarning(found, malformed, key),
  'delayed acknowledgements': async ({ target, service, key, page, clock, found }: Tried) =>
    service.reuse === 'shared' &&
    (await isDelayed(target, upstreamDeadlines(service), page, clock)) && {
      warning: `${found}; a kept connection costs 40 ms a request`,
      meaning: 'the device sends head and body apart and waits for an acknowledgement between them',
      remedy: `set ${key}.reuse: never; without it, Postern finds out by itself after some requests`,
      line: 'reuse: never',
    },
}

/** The last rows: the device works. */
const WORKS = {
  'no compression': ({ service, key, target, page, clock, found }: Tried) =>
    tryCompression(service, key, found, async (by) => {
      const fields = sampleFields(COMPRESSED, await readRequestFields(by, key))
      return probeDevice(target, upstreamDeadlines(service), page, clock, fields)
    }),
  'login of its own': ({ response, service, key, found }: Tried) => {
    const login = signsIn(service) ? undefined : httpLogin(response)
    if (login === undefined) return undefined
    return {
      warning: `${found}, which asks for a ${login === 'basic' ? 'Basic' : 'Digest'} login of its own`,
      meaning:
        'clients cannot answer it, as their Authorization field is for Postern: they get 401 for every such page',
      remedy: `set ${key}.auth: {kind: ${login}, user: NAME, password: {file: FILE}}, and Postern signs in for them; if only this page has a login, name another one in ${key}.health.path`,
      login,
    }
  },
  fine: ({ found }: Tried) => found,
}

/** What is found at a device. A row whose finding has a line comes before the login, which `init` asks about. */
const ROWS = {
  ...SILENCE,
  'head refused': ({ service, key, page }: Tried) => tryHeads(service, key, page),
  ...FAULTS,
  ...WORKS,
}

/** The address of each service, and how the device takes the requests of clients. */
export const DEVICE = check({
  subjects: (asked) => allServices(asked).map((each) => ({ ...each, clock: systemClock })),
  about: ({ key, of }) => ({
    name: `device${of}`,
    key: `${key}.url`,
    meaning: KINDS[key === 'upstream' ? 'PosternDeviceDown' : 'PosternRouteDown'].meaning,
    remedy: `correct ${key}`,
  }),
  look: askDevice,
  rows: ROWS,
})

/** Whether a device answers at an address that an operator has given to `init`. It is no part of the table. */
export const NEW_DEVICE = check({
  subjects: () => [],
  about: () => ({
    name: 'device',
    key: '--url',
    meaning: 'clients would get an error for every request but those for tokens',
    remedy: 'correct the address',
  }),
  look: askDevice,
  rows: ROWS,
})

/** Whether requests to the device have credentials from the configuration. */
function signsIn({ auth, headers }: ServiceConfig): boolean {
  return (
    auth !== 'off' ||
    Object.keys(headers).some((name) => /^authorization$/i.test(name) && headers[name] !== null)
  )
}

/** Requests a page of the device. */
async function askDevice({ service, key, clock }: Service & { readonly clock: Clock }): Promise<Tried> {
  const target = await upstreamTarget(service, key)
  const page = pageOf(service)
  let malformed: Malformed | undefined
  const onQuirk = (_quirk: unknown, shown?: Malformed): void => {
    malformed ??= shown
  }
  const tried = { service, key, clock, target, page }
  try {
    const response = await probeDevice(target, upstreamDeadlines(service), page, clock, [], { onQuirk })
    const at = target.socketPath ?? target.origin
    const found = `${at} answered ${response.status}${withoutText(response.fields, service)}`
    return { ...tried, response, found, malformed }
  } catch (error) {
    if (isBug(error) || !(error instanceof Error)) throw error
    const { message: found, cause } = error
    return { ...tried, response: NONE, found, failure: failureOf(cause), cause }
  }
}

const NONE: OwnResponse = { status: 0, fields: [] }
