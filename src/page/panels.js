import { refusedOf, sumOf } from './chart-data.js'
import { byId, el, setAttribute, show, write } from './dom.js'
import {
  count,
  countdown,
  date,
  faultText,
  latency,
  moment,
  now,
  rate,
  share,
  span,
  total,
  words,
} from './format.js'

/** @import { WindowType } from '../http/admission.ts' */
/** @import { Condition, LimitCondition, QuirkCondition, ServiceCondition } from '../overview/model.ts' */
/** @import { Line, State } from './state.js' */

/**
 * What the page shows as text: the figures, and all panels but the charts and those that an operator acts on.
 *
 * @param {State} state
 * @param {Condition} condition
 */
export function showPanels(state, condition) {
  showAbout(state)
  showNow(state, condition)
  showServices(condition)
  showLimits(condition)
  showKeys(condition)
  showTimeline(state.timeline)
}

/** The name of the machine, and which sidecar runs on it. @param {State} state */
function showAbout({ about, signedIn }) {
  if (about === null) return
  write('machine', about.machine)
  const up = `up ${span(now() - about.startedAt)}, since ${moment(about.startedAt)}`
  write('about', `Postern ${about.version}, Node.js ${about.node}, ${up}`)
  byId('sign-out', HTMLFormElement).hidden = !signedIn
}

const MINUTE = 60_000

/** @param {number} bytes */
const inMib = (bytes) => Math.round(bytes / 1024 ** 2)

/** The figures of the last second, and the sums since the start. @param {State} state @param {Condition} condition */
function showNow({ points }, { load, memory, totals, enforce }) {
  const point = points.at(-1)
  if (point === undefined) return
  const refused = refusedOf(point)
  const minute = points.filter(({ time }) => time > point.time - MINUTE)
  const requests = sumOf(minute, (each) => each.requests)
  const errors = sumOf(minute, (each) => each.serverErrors)
  write('now-requests', rate(point.requests))
  write('refused-term', enforce ? 'Refused/s' : 'Would be refused/s')
  write('now-refused', rate(refused))
  write('now-errors', requests === 0 ? '–' : share(errors, requests))
  write('now-client', point.client === null ? '–' : latency(point.client.p99))
  write('now-device', point.device === null ? '–' : latency(point.device.p99))
  write('now-in-flight', `${count(point.inFlight)} of ${count(load.maxInFlight)}`)
  write('now-queued', `${count(point.queued)} of ${count(load.queueSize)}`)
  write('now-connections', count(point.connections))
  write('now-tunnels', `${count(point.tunnels)} of ${count(load.maxTunnels)}`)
  write('now-memory', `${count(inMib(memory.held))} of ${count(inMib(memory.limit))} MiB`)
  write('total-requests', total(totals.requests))
  write('total-refused', total(totals.refused))
  write('total-errors', total(totals.serverErrors))
  for (const [id, value] of Object.entries({ refused, errors, queued: point.queued }))
    setAttribute(byId(`now-${id}`, HTMLElement), 'data-tone', value > 0 ? 'warning' : null)
}

/** The services of the device. @param {Condition} condition */
function showServices({ services }) {
  const items = services.map((service) => {
    const { tone, text } = serviceState(service)
    const address = el('code', {}, `${service.route === null ? '' : `${service.route} → `}${service.url}`)
    const line = el('p', {}, el('strong', {}, text), ' ', address)
    return el('li', { 'data-tone': tone }, line, el('p', { class: 'note' }, serviceNote(service)))
  })
  show('services', ...items)
}

/** @param {ServiceCondition} service */
function serviceState({ up, since, breaker, failure }) {
  const lasting = since === null ? '' : ` for ${span(now() - since)}`
  if (breaker === 'open') return { tone: 'critical', text: `Breaker open${lasting}` }
  if (up === null && failure !== null) return { tone: 'warning', text: 'No usable answer yet' }
  if (up === null) return { tone: 'quiet', text: 'Not asked yet' }
  return up ? { tone: 'good', text: `Up${lasting}` } : { tone: 'critical', text: `Down${lasting}` }
}

/** @param {ServiceCondition} service */
function serviceNote({ breaker, checked, failure, failedAt, tolerant, quirks }) {
  return [
    `breaker ${breaker}`,
    checked ? 'checked by upstream.health' : 'known from requests only',
    failure === null
      ? 'no failure since the start'
      : `last failure ${words(failure)}${failedAt === null ? '' : ` at ${moment(failedAt)}`}`,
    ...(tolerant ? ['read by the tolerant rules'] : []),
    ...quirks.map(quirkNote),
  ].join(' · ')
}

/** @type {Readonly<Record<QuirkCondition['kind'], string>>} */
const QUIRKS = {
  stray: 'bytes after a response',
  tolerant: 'malformed HTTP',
  delayed: 'a kept connection costs 40 ms a request',
}

/** @param {QuirkCondition} quirk */
function quirkNote({ kind, since, malformed }) {
  const first = malformed === null ? '' : `, in the response to ${malformed.request}: ${faultText(malformed)}`
  return `${QUIRKS[kind]} since ${moment(since)}${first}`
}

/** @type {Readonly<Record<WindowType, string>>} */
const LIMIT_TITLES = { api: 'API', oauth: '/oauth/token', browser: 'Browsers' }

/** Who has used up a window. @param {Condition} condition */
function showLimits({ limits, enforce }) {
  const refusals = enforce ? 'refused' : 'would be refused'
  const items = Object.entries(limits).map(([endpoint, limit]) => {
    const present = limit.usedUp.filter(({ until }) => until > now())
    const rows = present.map(({ key, until, refused }) => {
      const text = `${count(refused)} ${refusals}, free in ${countdown(until - now())}`
      return el('li', {}, el('code', {}, key === '*' ? 'all clients' : key), el('span', {}, text))
    })
    // Proof of the cast: these are the keys of the condition.
    const title = el('h3', {}, LIMIT_TITLES[/** @type {WindowType} */ (endpoint)])
    const note = el('p', { class: 'note' }, limitNote(limit))
    return el('div', { 'data-key': endpoint, class: 'limit' }, title, note, el('ul', {}, ...rows))
  })
  show('limits', ...items)
}

/** @param {LimitCondition} limit */
function limitNote({ requests, window, per, names, usedUp, usedUpCount }) {
  const who = { client: 'client', grant: 'login', name: 'name', device: 'device' }[per]
  const own = names.map((each) => `, ${each.name} ${count(each.requests)} in ${span(each.window)}`)
  const rule = `${count(requests)} in ${span(window)} per ${who}${own.join('')}`
  if (usedUpCount === 0) return `${rule}: none is at the limit`
  const more = usedUpCount > usedUp.length ? `, the ${count(usedUp.length)} most refused here` : ''
  return `${rule}: ${count(usedUpCount)} at the limit${more}`
}

/** Tokens, password, certificate and store. @param {Condition} condition */
function showKeys({ tokens, password, certificate, store }) {
  const present = now()
  const { access, refresh, capacity } = tokens
  write('key-tokens', `${count(access)} access, ${count(refresh)} refresh, of ${count(capacity)}`)
  write('key-unsaved', unsavedText(tokens.unsaved))
  write('key-password', passwordText(password, present))
  write('key-certificate', certificateText(certificate, present))
  byId('key-store-row', HTMLElement).hidden = store === null
  write('key-store', store?.up ? 'up' : 'down')
}

/** @param {number | null} unsaved */
function unsavedText(unsaved) {
  if (unsaved === null) return 'none'
  return unsaved === 0 ? 'complete' : `${count(unsaved)} tokens not saved`
}

/** @param {Condition['password']} password @param {number} present */
function passwordText({ source, changedAt, problem, absent }, present) {
  if (absent !== null) return 'none: locked, expired or gone'
  if (problem !== null) return 'the source cannot be used'
  if (source === 'device') return 'checked by the device'
  if (source === 'hook') return 'checked by a hook'
  return changedAt === null ? 'file' : `file, changed ${span(present - changedAt)} ago`
}

/** @param {Condition['certificate']} certificate @param {number} present */
function certificateText(certificate, present) {
  if (certificate === null) return 'none: cleartext'
  const { until, selfSigned } = certificate
  const left = until > present ? `${span(until - present)} left` : 'expired'
  return `${left}, until ${date(until)}${selfSigned ? ', self-signed' : ''}`
}

const LEVELS = { info: 'info', warn: 'warning', error: 'error' }
const TONES = { info: 'quiet', warn: 'warning', error: 'critical' }

/** The log lines, the latest first. @param {readonly Line[]} timeline */
function showTimeline(timeline) {
  const items = timeline.toReversed().map(({ level, time, text, details, times }) => {
    const what = el('strong', {}, `${text}${times > 1 ? ` (${count(times)} times)` : ''}`)
    return el(
      'li',
      { 'data-tone': TONES[level] },
      el('time', { datetime: new Date(time).toISOString() }, moment(time)),
      el('span', { class: 'level' }, LEVELS[level]),
      el('p', {}, what, ' ', el('span', {}, details)),
    )
  })
  show('timeline', ...items)
}

/** How long an explanation stays after the pointer left, so that the pointer can move onto it (ms). */
const LINGER = 300

/**
 * Explains a figure, whose term is a button described by the explanation, on touch, hover and focus. The explanation stays while the
 * pointer is on it (WCAG 2.2, 1.4.13). Escape or a touch elsewhere close it: it is a popover. So does scrolling, unless the figure has the
 * focus of the keyboard: the Tab key itself scrolls to it.
 */
export function explainFigures() {
  /** @type {HTMLElement | null} */
  let shown = null
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let closing
  /** @type {Element | null} */
  let shownFor = null
  const close = () => shown?.hidePopover()

  /** @param {Event} event */
  function follow({ target }) {
    if (!(target instanceof Element)) return
    const term = target.closest('button')
    const id = term?.getAttribute('aria-describedby')
    clearTimeout(closing)
    if (term && id) {
      shownFor = term
      shown = document.getElementById(id)
      shown?.showPopover({ source: term })
    } else if (!shown?.contains(target)) closing = setTimeout(close, LINGER)
  }

  for (const event of ['pointerover', 'focusin', 'click']) document.addEventListener(event, follow)
  document.addEventListener(
    'scroll',
    ({ target }) => target !== shown && !shownFor?.matches(':focus-visible') && close(),
    { capture: true, passive: true },
  )
}
