import { byId, el, show } from './dom.js'
import { moment, now, span, timeOfDay } from './format.js'

/** @import { Alarm, Condition } from '../overview/model.ts' */
/** @import { Link } from './stream.js' */

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
 * The line at the top. It is green only without a warning and without a critical alarm.
 *
 * @param {Link} link
 * @param {Condition | null} condition
 * @param {number} time by the clock of `link`
 * @returns {Status}
 */
export function statusLine(link, condition, time) {
  const age = link.heard === 0 ? '' : `, last data ${span(time - link.heard)} ago`
  const advice = 'load it again. The console of the browser has the reason'
  const connecting = line('quiet', 'Connecting')
  const lines = {
    connecting,
    live: condition === null ? connecting : present(condition),
    lost: line('critical', 'Connection lost', '', age),
    unreachable: line('critical', 'The sidecar is stopped or unreachable', ` since ${timeOfDay(link.since)}`),
    stopping: line('critical', 'The sidecar is stopping'),
    refused: line('critical', 'The sidecar refuses this page', `: ${link.reason}`),
    fault: line('critical', 'This page has a fault', `: ${advice}`),
    viewers: line('warning', 'Too many viewers', ': close another page of this sidecar', age),
  }
  return lines[link.phase]
}

/** @param {Condition} condition */
function present({ ready, reasons, enforce, services, alarms }) {
  const isDown = services.some(
    ({ route, up, breaker }) => route === null && (up === false || breaker === 'open'),
  )
  // Clients get nothing from a dead device, and it explains why the sidecar is not ready.
  if (isDown) return line('critical', 'Device down', ready ? '' : `. Not ready: ${reasons.join('; ')}`)
  if (!ready) return line('critical', 'Not ready', `: ${reasons.join('; ')}`)
  const serious = alarms.filter(({ level }) => level !== 'note')
  const [worst] = serious
  const state = enforce ? 'Ready' : 'Observing only'
  if (worst === undefined) return line('good', state)
  // Screen readers read each alarm itself.
  const alarmed = `, ${serious.length} ${serious.length === 1 ? 'alarm' : 'alarms'}`
  const tone = worst.level === 'critical' ? 'critical' : 'warning'
  return { ...line(tone, state, '', alarmed), title: state + alarmed }
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

const LEVELS = { critical: 'Critical', warning: 'Warning', note: 'Note' }

/**
 * The alarms at the top.
 *
 * @param {(text: string) => void} announce reads a text to a screen reader
 * @returns {(found: readonly Alarm[]) => void} shows the present alarms
 */
export function showAlarms(announce) {
  /** @type {Map<string, { level: Alarm['level'], seen: number }>} */
  let known = new Map()

  return (found) => {
    const present = now()
    const before = known
    known = new Map(found.map(({ key, level }) => [key, { level, seen: before.get(key)?.seen ?? present }]))
    byId('alarms', HTMLElement).hidden = found.length === 0
    show('alarm-list', ...found.map((alarm) => alarmItem(alarm, known.get(alarm.key)?.seen ?? present)))
    const news = found.filter(({ key, level }) => before.get(key)?.level !== level)
    const isOver = [...before.keys()].some((key) => !known.has(key))
    if (news.length > 0) announce(news.map(({ level, what }) => `${LEVELS[level]}: ${what}`).join('. '))
    else if (isOver) announce(found.length === 0 ? 'No more alarms' : 'An alarm is over')
  }
}

/** When the sidecar does not tell since when, the page says since when it has seen the alarm. @param {Alarm} alarm @param {number} seen */
function alarmItem({ key, level, name, what, since, meaning, remedy }, seen) {
  const text = since === null ? `seen since ${moment(seen)}` : `since ${moment(since)}`
  const when = el('span', { class: 'since' }, text)
  const link = { href: `page/alerts#${name.toLowerCase()}`, target: '_blank' }
  return el(
    'li',
    { 'data-key': key, 'data-tone': level },
    el('p', {}, el('span', { class: 'level' }, LEVELS[level]), el('strong', {}, what), when),
    el('p', {}, `${meaning} ${remedy} `, el('a', link, `More: ${name}`)),
  )
}
