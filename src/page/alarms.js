import { count, date, faultText, span, words } from './format.js'
import { manyRefusals, memory, queueing, raise, serverErrors, slowness } from './load-alarms.js'

/** @import { Condition, Point, ServiceCondition } from '../overview/model.ts' */
/** @import { Alarm, Rule } from './load-alarms.js' */

const DAY = 24 * 3_600_000
const MINUTE = 60_000

// Levels and thresholds are those of deploy/postern.rules.yml, except times: an alert waits for minutes before it wakes someone up. The
// page shows this minute to someone who looks already.

/**
 * The certificate alarm begins this long before the end (ms), when PosternCertificateExpires fires. A certificate of a shorter life than
 * 87 days alarms in its last third, in which ACME clients renew.
 */
const CERTIFICATE = 29 * DAY

const ORDER = { critical: 0, warning: 1, note: 2 }

/** Failures after which the device can be reached, but gave no usable answer. */
const ANSWERED = /^(?:http_|connection_terminated)/

/**
 * The alarms, the most urgent first, one for each cause: that the device or the shared store is down explains why the sidecar is not
 * ready, and why requests fail. Depends on its arguments only.
 *
 * @param {Condition} condition
 * @param {readonly Point[]} points oldest first
 * @param {number} now ms since the Unix epoch
 * @returns {Alarm[]}
 */
export function alarms(condition, points, now) {
  const view = { condition, points, now, last: points.filter(({ time }) => time > now - MINUTE) }
  const [outages, deaf] = [[...outage(view)], [...store(view)]]
  /** @param {readonly Alarm[]} found */
  const isCritical = (found) => found.some(({ level }) => level === 'critical')
  return [
    ...(isCritical([...outages, ...deaf]) ? [] : [...readiness(view), ...serverErrors(view)]),
    ...(isCritical(outages) ? [] : [...slowness(view), ...queueing(view)]),
    ...outages,
    ...deaf,
    ...(condition.enforce ? manyRefusals(view) : observing(view)),
    ...memory(view),
    ...tolerance(view),
    ...ceilings(view),
    ...certificate(view),
    ...keys(view),
  ].sort((a, b) => ORDER[a.level] - ORDER[b.level])
}

/** @type {Rule} */
function* readiness({ condition: { ready, reasons } }) {
  if (ready) return
  yield raise('critical', 'not-ready', 'NotReady', {
    what: `Not ready: ${reasons.join('; ')}`,
    remedy:
      '/readyz answers 503, so a load balancer sends no traffic here. “postern check” says what does not work, and how to mend it.',
  })
}

/** @param {ServiceCondition} service @param {Condition} condition */
function nameOf({ route }, { services }) {
  return services.length === 1 ? 'The device' : `The service ${route ?? 'at /'} of the device`
}

/** @type {Rule} */
function* outage({ condition }) {
  for (const service of condition.services) {
    const { route, url, up, since, breaker, failure, failedAt, checked } = service
    if (breaker === 'closed' && up !== false) continue
    const isOn = `Is it on, and is ${url} its address (upstream.url)? “postern check” connects to it.`
    let [state, remedy] = ['is down', `The sidecar runs, the device does not: clients get 500. ${isOn}`]
    if (breaker === 'open') {
      state = 'cannot be reached, and requests fail at once'
      remedy = `One request a second tries again. ${isOn}`
    } else if (ANSWERED.test(failure ?? '')) {
      state = 'fails its requests'
      remedy =
        'It can be reached, but at least its last five answers were not usable, so clients get 500. “Last refused requests” below has some of them. Is it overloaded, or is something else at this address (upstream.url)?'
    }
    // Without a service of upstream.routes, the rest of the device works.
    const level = route === null || (checked && !condition.ready) ? 'critical' : 'warning'
    yield raise(level, `down ${route}`, route === null ? 'PosternDeviceDown' : 'PosternRouteDown', {
      what: `${nameOf(service, condition)} ${state}${failure === null ? '' : `: ${words(failure)}`}`,
      since: (up === false ? since : failedAt) ?? failedAt,
      remedy,
    })
  }
}

/** @type {Rule} */
function* tolerance({ condition }) {
  for (const service of condition.services.filter(({ tolerant }) => tolerant)) {
    const found = service.quirks.find(({ malformed }) => malformed !== null)
    const first = found?.malformed ? `: ${found.malformed.request} had ${faultText(found.malformed)}` : ''
    yield raise('note', `tolerant ${service.route}`, 'MalformedHttp', {
      what: `${nameOf(service, condition)} sends malformed HTTP, which is read by the tolerant rules${first}`,
      since: found?.since ?? null,
      remedy:
        'Requests pass. A new firmware would be better; if it sends bytes after its responses, set upstream.reuse: never.',
    })
  }
}

/** @type {Readonly<Record<'broke' | 'tried' | 'barred', string>>} */
const WALLS = {
  broke: 'One more is tried once, a week after; postern retry lets it be tried sooner.',
  tried: 'One more is tried now.',
  barred: 'It happened again, so one more is not tried by itself any more: postern retry lets it be tried.',
}

/** @type {Rule} */
function* ceilings({ condition }) {
  for (const service of condition.services) {
    const { ceiling, route, queue } = service
    if (ceiling === null) continue
    const name = nameOf(service, condition)
    if (ceiling === 'guess')
      yield raise('note', `ceiling ${route}`, 'DeviceCrowded', {
        what: `${name} has no room for more than ${queue.maxInFlight} requests at once`,
        remedy: 'Others wait. One more is tried by and by: postern status says when.',
      })
    else
      yield raise('warning', `ceiling ${route}`, 'PosternDeviceBroke', {
        what: `${name} went away when more than ${queue.maxInFlight} requests at once came to it`,
        remedy: WALLS[ceiling],
      })
  }
}

/** @type {Rule} */
function* certificate({ condition: { certificate }, now }) {
  if (certificate === null) return
  const { from, until, selfSigned } = certificate
  const warned = Math.min(CERTIFICATE, (until - from) / 3)
  const isLate = now < from
  if (!isLate && until - now >= warned) return
  const isValid = !isLate && now < until
  const remedy = selfSigned
    ? 'The sidecar renews it itself, with the same key. Give clients the new cert.pem of state_dir.'
    : 'Replace the files of listen.tls; the new pair is served within seconds. If an ACME client renews them, find out why it did not.'
  const clock = 'Clients that check it do not connect. Is the clock of this machine right?'
  const ends = `expires in ${span(until - now)}, on ${date(until)}`
  const section = isValid ? 'PosternCertificateExpires' : 'PosternCertificateInvalid'
  yield raise(isValid ? 'warning' : 'critical', 'certificate', section, {
    what: `The certificate ${isLate ? `is not valid before ${date(from)}` : isValid ? ends : `expired on ${date(until)}`}`,
    since: isLate ? null : isValid ? until - warned : until,
    remedy: isLate ? clock : remedy,
  })
}

/** The alarms of the password, the token file and the token table. @type {Rule} */
function* keys({ condition: { password, tokens } }) {
  if (password.problem !== null) {
    const isFile = password.source === 'file'
    yield raise(isFile ? 'warning' : 'critical', 'password', 'PosternStoreErrors', {
      what: `The password source cannot be used: ${password.problem}`,
      remedy: isFile
        ? 'The last good password stays valid. The file of password.file holds one line, the hash that “postern hash-password” makes; mend it, and it holds within seconds.'
        : 'Nobody can log in until the device checks passwords again (password.device). “postern check” tries it.',
    })
  }
  if (password.absent !== null) {
    yield raise('critical', 'no-password', 'NoPassword', {
      what: `No password: ${password.absent}`,
      remedy:
        'Logins with it are refused, and its tokens have ended. Unlock the account (usermod -U, chage -E -1), or give it a password; that holds within seconds.',
    })
  }
  const { access, refresh, capacity, unsaved } = tokens
  if (unsaved) {
    yield raise('warning', 'unsaved', 'PosternTokensUnsaved', {
      what: `A restart would lose ${count(unsaved)} ${unsaved === 1 ? 'token' : 'tokens'}: the token file cannot be written`,
      remedy:
        'Clients notice nothing until the sidecar restarts. Make room in state_dir before that; the file is then completed within seconds.',
    })
  }
  if (access + refresh >= 0.9 * capacity) {
    yield raise('warning', 'capacity', 'PosternTokensEvicted', {
      what: `${count(access + refresh)} tokens of at most ${count(capacity)}: beyond it the least recently used logins are dropped`,
      remedy: 'Raise tokens.capacity, or find the client that logs in so often.',
    })
  }
}

/** @type {Rule} */
function* store({ condition: { store } }) {
  if (store === null || store.up) return
  yield raise('critical', 'store', 'PosternSharedStoreDown', {
    what: 'The shared store does not respond, or refuses commands',
    remedy:
      'Known tokens work for tokens.offline_grace; logins and all other tokens get 500, and limits count per sidecar. The log and “postern check” say why.',
  })
}

/** @type {Rule} */
function* observing() {
  yield raise('warning', 'observing', 'ObservingOnly', {
    what: 'Observing only: requests without a token or over the limit reach the device',
    remedy: 'The access log and the metrics say what would be refused. Set enforce: true to refuse it.',
  })
}
