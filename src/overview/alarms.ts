import { TROUBLES } from '../record/troubles.ts'
import { count, type Facts, type Rule, raise, serviceName, words } from './alarm.ts'
import { DAY, HOUR, KINDS, MINUTE, SECOND } from './alarm-kinds.ts'
import { crowdedLogins, guessing } from './guessing.ts'
import { manyRefusals, memory, queueing, serverErrors, slowness } from './load-alarms.ts'
import type { Alarm, Point, ServiceCondition } from './model.ts'

const ORDER = { critical: 0, warning: 1, note: 2 }

/**
 * The alarms, the most urgent first, one for each cause: if the device or the shared store is down, that explains why the sidecar is not
 * ready, and why requests fail. Depends on its arguments only.
 *
 * @param points all points of the history, oldest first
 * @param now ms since the Unix epoch
 */
export function alarmsOf(facts: Facts, points: readonly Point[], now: number): readonly Alarm[] {
  const last = (over: number): readonly Point[] => points.filter(({ time }) => time > now - over)
  const found = RULES.flatMap((rule) => [...rule({ facts, points, last, now })])
  const critical = new Set(found.filter(({ level }) => level === 'critical').map(({ name }) => name))
  return found
    .filter(({ name }) => !KINDS[name].follows?.some((cause) => critical.has(cause)))
    .sort((a, b) => ORDER[a.level] - ORDER[b.level])
}

const readiness: Rule = function* ({ facts: { ready, reasons } }) {
  if (!ready) yield raise('NotReady', { what: `Not ready: ${reasons.join('; ')}` })
}

/** The failures of a device that can be reached, but gave no usable answer. */
const ANSWERED = /^(?:http_|connection_terminated)/

const outage: Rule = function* ({ facts }) {
  for (const service of facts.services) {
    const { route, up, since, breaker, failure, failedAt, checked } = service
    if (breaker === 'closed' && up !== false) continue
    // If only a service of upstream.routes is down, the rest of the device works.
    const name = route === null ? 'PosternDeviceDown' : 'PosternRouteDown'
    const { state, remedy } = outageOf(service)
    yield raise(name, {
      of: route,
      level: checked && !facts.ready ? 'critical' : KINDS[name].level,
      what: `${serviceName(service, facts)} ${state}${failure === null ? '' : `: ${words(failure)}`}`,
      since: (up === false ? since : failedAt) ?? failedAt,
      remedy,
    })
  }
}

function outageOf({ url, breaker, failure }: ServiceCondition): { state: string; remedy: string } {
  const look = `${TROUBLES.PosternDeviceDown.remedy}. The address is ${url}`
  if (breaker === 'open') {
    const remedy = `${look}. One request a second tries again`
    return { state: 'cannot be reached, and requests fail at once', remedy }
  }
  if (!ANSWERED.test(failure ?? '')) return { state: 'is down', remedy: look }
  return {
    state: 'fails its requests',
    remedy:
      'it can be reached, but at least its last five answers were not usable: look at the last refused requests (live page, postern explain). Is it overloaded, or is something else at this address (upstream.url)?',
  }
}

const sharedStore: Rule = function* ({ facts: { store } }) {
  if (store === null || store.up) return
  yield raise('PosternSharedStoreDown', {
    what: `The shared store at ${store.address} does not respond, or refuses commands${store.reason === null ? '' : `: ${store.reason}`}`,
  })
}

const observing: Rule = function* ({ facts: { enforce } }) {
  if (!enforce) yield raise('ObservingOnly', { what: 'Observing only (enforce: false)' })
}

const trials: Rule = function* ({ facts: { trials } }) {
  for (const { name, wouldRefuse } of trials) {
    const found = `${count(wouldRefuse)} ${wouldRefuse === 1 ? 'request' : 'requests'}`
    yield raise('AllowOnTrial', {
      of: name,
      what: `The allow of ${name} is on trial (enforce: false): it would have refused ${found}`,
    })
  }
}

const tolerance: Rule = function* ({ facts }) {
  for (const service of facts.services.filter(({ tolerant }) => tolerant)) {
    const found = service.quirks.find(({ malformed }) => malformed !== null)
    const malformed = found?.malformed ?? null
    const first =
      malformed === null ? '' : `: ${malformed.request} had ${malformed.fault} (${malformed.bytes})`
    yield raise('MalformedHttp', {
      of: service.route,
      what: `${serviceName(service, facts)} sends malformed HTTP, which is read by the tolerant rules${first}`,
      since: found?.since ?? null,
    })
  }
}

const ceilings: Rule = function* ({ facts }) {
  for (const service of facts.services) {
    const { ceiling, route } = service
    if (ceiling === null) continue
    const [name, most] = [serviceName(service, facts), `more than ${count(ceiling.limit)} requests at once`]
    if (ceiling.kind === 'guess')
      yield raise('DeviceCrowded', { of: route, what: `${name} has no room for ${most}` })
    else yield raise('PosternDeviceBroke', { of: route, what: `${name} went away when ${most} came to it` })
  }
}

const refusedReload: Rule = function* ({ facts: { refusedReload } }) {
  if (refusedReload === null) return
  const { at, problems } = refusedReload
  const [first = '', ...others] = problems
  const more = others.length === 0 ? '' : `; ${others.length} more`
  yield raise('PosternReloadFailed', {
    what: `A new configuration or certificate was refused, and the former one is in use: ${first}${more}`,
    since: at,
  })
}

const certificate: Rule = function* ({ facts: { certificate }, now }) {
  if (certificate === null) return
  const { from, until, selfSigned } = certificate
  const expires = KINDS.PosternCertificateExpires
  // As in the alert, the notice for a certificate with a short life is the last third of that life.
  const notice = Math.min(expires.here.threshold * SECOND, (until - from) / 3)
  const remedy = selfSigned
    ? 'give clients the new cert.pem of state_dir: the sidecar renews it itself, with the same key'
    : (expires.remedy ?? '')
  if (now < from) {
    yield raise('PosternCertificateInvalid', { what: `The certificate is not valid before ${date(from)}` })
  } else if (now >= until) {
    const what = `The certificate expired on ${date(until)}`
    yield raise('PosternCertificateInvalid', { what, since: until, remedy })
  } else if (until - now < notice) {
    const what = `The certificate expires in ${span(until - now)}, on ${date(until)}`
    yield raise('PosternCertificateExpires', { what, since: until - notice, remedy })
  }
}

const password: Rule = function* ({ facts: { password } }) {
  const { problem, absent, source } = password
  if (problem !== null) {
    const what = `The password source cannot be used: ${problem}`
    if (source === 'file') yield raise('PosternStoreErrors', { what })
    else
      yield raise('PosternStoreErrors', {
        what,
        level: 'critical',
        meaning:
          source === 'device'
            ? 'nobody can log in until the device checks passwords again (password.device)'
            : 'nobody can log in until the hook answers (password.socket); tokens stay valid',
        remedy: 'run postern check, which tries it',
      })
  }
  if (absent !== null) yield raise('NoPassword', { what: `No password: ${absent}` })
}

const tokens: Rule = function* ({ facts: { tokens }, now }) {
  const { access, refresh, capacity, unsaved, setAsideAt, copiedAt } = tokens
  if (copiedAt !== null) {
    const what = 'The token file is a copy, such as a restored backup'
    yield raise('TokenFileCopied', { what, since: copiedAt })
  }
  if (setAsideAt !== null && now - setAsideAt < KINDS.PosternTokenFileBroken.here.over) {
    const what = 'The token file could not be used, and was set aside'
    yield raise('PosternTokenFileBroken', { what, since: setAsideAt })
  }
  if (unsaved) {
    const lost = `${count(unsaved)} ${unsaved === 1 ? 'token' : 'tokens'}`
    const what = `A restart would lose ${lost}: the token file cannot be written`
    yield raise('PosternTokensUnsaved', { what })
  }
  if (access + refresh >= KINDS.PosternTokensEvicted.here.threshold * capacity) {
    yield raise('PosternTokensEvicted', {
      what: `${count(access + refresh)} tokens of at most ${count(capacity)} are live`,
    })
  }
}

const issuedTokens: Rule = function* ({ facts: { tokens }, now }) {
  const notice = KINDS.PosternIssuedTokenEnds.here.threshold * SECOND
  const [first, ...others] = tokens.unreplaced.filter(({ expiresAt }) => expiresAt - now < notice)
  if (first === undefined) return
  const { id, label = '', expiresAt } = first
  const called = label === '' ? id : `"${label}", ${id},`
  const more = others.length === 0 ? '' : `; ${count(others.length)} more within a week`
  const what = `The issued token ${called} ends in ${span(expiresAt - now)}, on ${date(expiresAt)}${more}`
  yield raise('PosternIssuedTokenEnds', { what, since: expiresAt - notice })
}

/** A length of time (ms) in its largest unit: `3 min`, `5 h`, `28 d`. */
function span(time: number): string {
  if (time < HOUR) return `${Math.floor(time / MINUTE)} min`
  return time < 2 * DAY ? `${Math.floor(time / HOUR)} h` : `${Math.floor(time / DAY)} d`
}

/** A date: `2026-11-22 UTC`. The sidecar does not know the zone of the reader. */
function date(time: number): string {
  return `${new Date(time).toISOString().slice(0, 10)} UTC`
}

/** The order of the rules is that of alarms of the same level. */
const RULES: readonly Rule[] = [
  readiness,
  serverErrors,
  slowness,
  queueing,
  outage,
  sharedStore,
  manyRefusals,
  observing,
  trials,
  memory,
  tolerance,
  ceilings,
  refusedReload,
  certificate,
  password,
  tokens,
  issuedTokens,
  guessing,
  crowdedLogins,
]
