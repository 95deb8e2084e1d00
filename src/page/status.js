import { span, timeOfDay } from './format.js'

/** @typedef {import('./stream.js').Link} Link */
/** @typedef {import('../overview/model.ts').Condition} Condition */

/**
 * The line that says how the sidecar is, or why the page cannot know.
 *
 * @param {Link} link
 * @param {Condition | null} condition
 * @param {number} now by the clock of `link`
 * @returns {{ readonly tone: 'good' | 'warning' | 'critical' | 'quiet', readonly text: string, readonly said: string }} `said`
 * is for a screen reader: without the seconds that pass, so that it is read once
 */
export function statusLine(link, condition, now) {
  const age = link.heard === 0 ? '' : `, last data ${span(now - link.heard)} ago`
  switch (link.phase) {
    case 'connecting':
      return same('quiet', 'Connecting')
    case 'lost':
      return { tone: 'critical', text: `Connection lost${age}`, said: 'Connection lost' }
    case 'unreachable':
      return same('critical', `The sidecar is stopped or unreachable since ${timeOfDay(link.since)}`)
    case 'stopping':
      return same('critical', 'The sidecar is stopping')
    case 'refused':
      return same('critical', `The sidecar refuses this page: ${link.reason}`)
    case 'fault':
      return same(
        'critical',
        'This page has a fault: load it again. The console of the browser has the reason',
      )
    case 'viewers': {
      const said = 'Too many viewers: close another page of this sidecar'
      return { tone: 'warning', text: `${said}${age}`, said }
    }
    case 'live':
      return condition === null ? same('quiet', 'Connecting') : present(condition)
  }
}

/** @param {Condition} condition */
function present({ ready, reasons, enforce }) {
  if (!ready) return same('critical', `Not ready: ${reasons.join('; ')}`)
  return enforce ? same('good', 'Ready') : same('warning', 'Observing only')
}

/**
 * @param {'good' | 'warning' | 'critical' | 'quiet'} tone
 * @param {string} text
 */
function same(tone, text) {
  return { tone, text, said: text }
}
