import type { ServiceConfig } from '../../config/upstream-fields.ts'
import type { Malformed } from '../../device/connections.ts'
import { canDiagnose, diagnose } from '../../device/diagnosis.ts'
import { failureOf } from '../../device/failure.ts'
import { isDelayed, LONGEST_PAGE, type OwnResponse, probeDevice } from '../../device/own-request.ts'
import type { UpstreamTarget } from '../../device/target.ts'
import { sampleFields } from '../../forward/sample-heads.ts'
import { readRequestFields, upstreamDeadlines, upstreamTarget } from '../../forward/service-settings.ts'
import { fieldValues } from '../../http/fields.ts'
import type { UpstreamFailure } from '../../http/refusal.ts'
import { KINDS } from '../../overview/alarm-kinds.ts'
import { httpLogin } from '../../sign-in/http-schemes.ts'
import { explainPathError } from '../../system/named-file.ts'
import { isBug } from '../../system/setup-error.ts'
import { COMPRESSED, tryCompression } from './compression.ts'
import { tryHeads } from './heads.ts'
import { check } from './part.ts'
import {
  allServices,
  failureHint,
  lookBound,
  malformedWarning,
  pageOf,
  type Service,
  withoutText,
} from './services.ts'

interface Tried extends Service {
  /** The time for the whole look is over. */
  readonly signal: AbortSignal
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
  'TLS fails': async (tried: Tried) => {
    const { failure, target, found } = tried
    if (failure === undefined || !canDiagnose(failure, target)) return undefined
    const fault = await diagnoseTls(tried)
    return fault && { failed: `${found}: ${fault.reason}`, remedy: fault.remedy, tls: fault.tls }
  },
  'head unanswered': async (tried: Tried) => {
    const { failure, found, signal } = tried
    const refused = failure === 'connection_terminated' ? await tryHeads(tried, signal) : undefined
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

function diagnoseTls({ service, key, clock, signal, target }: Tried): ReturnType<typeof diagnose> {
  return diagnose(target, key, service.connectTimeout, clock, signal)
}

/** The rows for problems with a response. */
const FAULTS = {
  'cleartext to TLS': async (tried: Tried) => {
    const { response, found } = tried
    // A TLS server answers a cleartext request with 400.
    const fault = response.status === 400 ? await diagnoseTls(tried) : undefined
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
  'delayed acknowledgements': async ({ target, service, key, page, clock, signal, found }: Tried) =>
    service.reuse === 'shared' &&
    (await isDelayed(target, upstreamDeadlines(service), page, clock, signal)) && {
      warning: `${found}; a kept connection costs 40 ms a request`,
      meaning: 'the device sends head and body apart and waits for an acknowledgement between them',
      remedy: `set ${key}.reuse: never; without it, Postern finds out by itself after some requests`,
      line: 'reuse: never',
    },
}

/** The last rows: the device works. */
const WORKS = {
  'no compression': ({ service, key, target, page, clock, signal, found }: Tried) =>
    tryCompression(service, key, found, async (by) => {
      const fields = sampleFields(COMPRESSED, await readRequestFields(by, key))
      return probeDevice(target, upstreamDeadlines(service), page, clock, fields, { signal })
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
  'no end': ({ response, key, found }: Tried) =>
    response.goesOn === true && {
      warning: `${found}; its page does not end within ${LONGEST_PAGE / 1000} s`,
      meaning: 'a look at this page shows little, and a health check of it would take as long each time',
      remedy: `name a page that ends in ${key}.health.path`,
    },
  'head refused': (tried: Tried) => tryHeads(tried, tried.signal),
  ...FAULTS,
  ...WORKS,
}

/** The address of each service, and how the device takes the requests of clients. */
export const DEVICE = check({
  subjects: allServices,
  about: ({ key, of }) => ({
    name: `device${of}`,
    key: `${key}.url`,
    meaning: KINDS[key === 'upstream' ? 'PosternDeviceDown' : 'PosternRouteDown'].meaning,
    remedy: `correct ${key}`,
  }),
  bound: lookBound,
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
  bound: lookBound,
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
async function askDevice({ service, key, clock }: Service, signal: AbortSignal): Promise<Tried> {
  const target = await upstreamTarget(service, key)
  const page = pageOf(service)
  let malformed: Malformed | undefined
  const onQuirk = (_quirk: unknown, shown?: Malformed): void => {
    malformed ??= shown
  }
  const tried = { service, key, clock, signal, target, page }
  try {
    const response = await probeDevice(target, upstreamDeadlines(service), page, clock, [], {
      onQuirk,
      signal,
    })
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
