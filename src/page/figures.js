import { byId, el } from './dom.js'

/**
 * What each figure counts, over what time, and which metric has it. The keys are the values of `data-figure`.
 *
 * @type {Readonly<Record<string, string>>}
 */
export const FIGURES = {
  requests: 'Requests that ended in the last second, refused ones included. Metric: postern_requests_total.',
  refused:
    'Requests that Postern refused or that the device failed, in the last second, for all reasons. With enforce: false, those that would be refused. Metric: postern_refusals_total.',
  errors:
    'The share of the last minute’s requests that ended with a status of 500 and above: those that the device or Postern failed, and the device’s own. Metric: postern_requests_total, by code.',
  allRequests: 'Requests that ended since the sidecar started. Metric: postern_requests_total.',
  allRefused:
    'Refusals since the sidecar started, for all reasons. With enforce: false, those that would have been. Metric: postern_refusals_total.',
  allErrors:
    'Requests that ended with a status of 500 and above since the sidecar started. Metric: postern_requests_total, by code.',
  clientLatency:
    'From the request head to the end of the response, about 99 of 100 requests of the last second were faster: an estimate from the buckets of the metric. Metric: postern_request_duration_seconds.',
  deviceLatency:
    'From sending a request to the head of the device’s response, about 99 of 100 requests of the last second were faster: an estimate from the buckets of the metric. Metric: postern_upstream_duration_seconds.',
  inFlight:
    'Requests at the device now, of the upstream.max_in_flight that it gets at a time, fixed or learned. Metric: postern_upstream_in_flight.',
  queued:
    'Requests that wait for the device now, of the places in upstream.queue.size. When all are taken, requests are refused as overloaded (500). Metric: postern_upstream_queued.',
  connections: 'Connections of clients that are open now. Metric: postern_connections.',
  tunnels: 'WebSockets that are open now, of upstream.max_tunnels. Metric: postern_tunnels.',
  traffic:
    'Requests that ended in each second: passed, and refused by reason, on top of each other. With enforce: false, the refused ones passed, too. Metrics: postern_requests_total and postern_refusals_total.',
  latency:
    'Of each second: about half the requests were faster than p50, about 99 of 100 faster than p99. Both are estimated from the buckets of the metrics, which grow wider with the latency. A second without requests is a gap. The scale is logarithmic. Metrics: postern_request_duration_seconds and postern_upstream_duration_seconds.',
  load: 'Requests at the device and waiting for it at the end of each second, and the maximum at the device. Metrics: postern_upstream_in_flight and postern_upstream_queued.',
  services:
    'Whether each service of the device answers: down when the last attempt could not reach it, and after five failed answers in a row. After three failures in a row to reach it, its breaker opens: requests fail at once, and one a second tries again. Metrics: postern_upstream_up and postern_route_up; failures are in postern_upstream_errors_total.',
  limits:
    'Clients or logins that have used up their window, and when it closes. Until then each of their requests gets 429. Those with the most refusals come first. Metric: postern_rate_limited_total.',
  grants:
    'One row for each login that has not expired and was not revoked. Last use is the last request or refresh that this sidecar saw since it started. The table has the 1,000 most recently used.',
  certificate: 'The chain that clients are shown. Metric: postern_certificate_expiry_timestamp_seconds.',
  password:
    'Where the admin password is checked, and when its file last changed. A new password revokes all logins. Failures are in postern_store_errors_total.',
  tokens:
    'Live access and refresh tokens. Beyond tokens.capacity the least recently used logins are dropped. Metric: postern_tokens.',
  unsaved:
    'Tokens that a restart would lose, because the token file could not be written. Metric: postern_tokens_unsaved.',
  store: 'Whether the shared store answers and accepts logins. Metric: postern_store_up.',
  timeline:
    'The last lines of the log that are not about one request: faults, recoveries, reloads, revocations. The log itself has all of them.',
  refusals:
    'The last requests that were refused, at most 50. Each opens what was decided about it, and why. When many are refused in a second, only part of them is remembered. The access log then has the first ones and the number of the others.',
}

/** How long an explanation stays after the pointer left, so that the pointer can move onto it (ms). */
const LINGER = 300

/**
 * Makes every element with `data-figure` a button that explains its figure on touch, hover and focus. The explanation stays while the
 * pointer is on it (WCAG 2.2, 1.4.13). Escape, scrolling or a touch elsewhere close it: it is a popover. A screen reader reads it as the
 * description of the button.
 */
export function explainFigures() {
  const texts = el('div', { hidden: '' })
  const tooltip = byId('tooltip', HTMLElement)
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let closing
  const keep = () => clearTimeout(closing)
  const close = () => tooltip.hidePopover()
  /** @param {PointerEvent} event */
  const closeSoon = ({ pointerType }) => {
    keep()
    if (pointerType === 'mouse') closing = setTimeout(close, LINGER)
  }
  for (const [key, text] of Object.entries(FIGURES)) texts.append(el('p', { id: `why-${key}` }, text))
  document.body.append(texts)
  for (const term of document.querySelectorAll('button[data-figure]')) {
    if (!(term instanceof HTMLElement)) continue
    const id = `why-${term.dataset.figure}`
    term.setAttribute('aria-describedby', id)
    const show = () => {
      keep()
      close()
      tooltip.textContent = byId(id, HTMLElement).textContent
      tooltip.showPopover({ source: term })
    }
    for (const event of ['pointerenter', 'focus', 'click']) term.addEventListener(event, show)
    term.addEventListener('pointerleave', closeSoon)
    term.addEventListener('blur', close)
  }
  tooltip.addEventListener('pointerenter', keep)
  tooltip.addEventListener('pointerleave', closeSoon)
  document.addEventListener('scroll', close, { capture: true, passive: true })
}
