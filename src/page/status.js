import { span, timeOfDay } from './format.js'

/** @typedef {import('./stream.js').Link} Link */
/** @typedef {import('./load-alarms.js').Alarm} Alarm */
/** @typedef {import('../overview/model.ts').Condition} Condition */

/**
 * How the sidecar is, or why the page cannot know.
 *
 * @typedef {object} Status
 * @property {'good' | 'warning' | 'critical' | 'quiet'} tone
 * @property {string} title short, for the tab
 * @property {string} text
 * @property {string} said for a screen reader: without the seconds that pass, so that it is read once
 */

/**
 * The line at the top. It is green only without an alarm.
 *
 * @param {Link} link
 * @param {Condition | null} condition
 * @param {readonly Alarm[]} alarms the most urgent first
 * @param {number} now by the clock of `link`
 * @returns {Status}
 */
export function statusLine(link, condition, alarms, now) {
  const age = link.heard === 0 ? '' : `, last data ${span(now - link.heard)} ago`
  switch (link.phase) {
    case 'connecting':
      return line('quiet', 'Connecting')
    case 'lost':
      return line('critical', 'Connection lost', '', age)
    case 'unreachable':
      return line('critical', 'The sidecar is stopped or unreachable', ` since ${timeOfDay(link.since)}`)
    case 'stopping':
      return line('critical', 'The sidecar is stopping')
    case 'refused':
      return line('critical', 'The sidecar refuses this page', `: ${link.reason}`)
    case 'fault':
      return line(
        'critical',
        'This page has a fault',
        ': load it again. The console of the browser has the reason',
      )
    case 'viewers':
      return line('warning', 'Too many viewers', ': close another page of this sidecar', age)
    case 'live':
      return condition === null ? line('quiet', 'Connecting') : present(condition, alarms)
  }
}

/** @param {Condition} condition @param {readonly Alarm[]} alarms */
function present({ ready, reasons, enforce }, alarms) {
  if (!ready) return line('critical', 'Not ready', `: ${reasons.join('; ')}`)
  const serious = alarms.filter(({ level }) => level !== 'note')
  const [worst] = serious
  const state = enforce ? 'Ready' : 'Observing only'
  if (worst === undefined) return line('good', state)
  // Screen readers read each alarm itself.
  const alarmed = `, ${serious.length} ${serious.length === 1 ? 'alarm' : 'alarms'}`
  return {
    ...line(worst.level === 'critical' ? 'critical' : 'warning', state, '', alarmed),
    title: state + alarmed,
  }
}

/**
 * @param {Status['tone']} tone
 * @param {string} state
 * @param {string} [reason]
 * @param {string} [aside] shown, but not read to a screen reader
 * @returns {Status}
 */
function line(tone, state, reason = '', aside = '') {
  return { tone, title: state, said: state + reason, text: state + reason + aside }
}
