import { byId, el, setAttribute, setText, showList } from './dom.js'
import { moment, now } from './format.js'

/** @typedef {import('./load-alarms.js').Alarm} Alarm */

const LEVELS = { critical: 'Critical', warning: 'Warning', note: 'Note' }

/**
 * The alarms at the top.
 *
 * @param {(text: string) => void} announce reads a text to a screen reader
 * @returns {(found: readonly Alarm[]) => void} shows the present alarms
 */
export function showAlarms(announce) {
  const section = byId('alarms', HTMLElement)
  const list = byId('alarm-list', HTMLElement)
  /** @type {Map<string, { level: Alarm['level'], seen: number }>} */
  let known = new Map()

  return (found) => {
    const present = now()
    const before = known
    known = new Map(found.map(({ key, level }) => [key, { level, seen: before.get(key)?.seen ?? present }]))
    section.hidden = found.length === 0
    showList(
      list,
      found,
      ({ key }) => key,
      makeAlarm,
      (item, alarm) => {
        const [level, what, when, remedy, link] = item.querySelectorAll('[data-part]')
        setAttribute(item, 'data-tone', alarm.level)
        if (level) setText(level, LEVELS[alarm.level])
        if (what) setText(what, alarm.what)
        if (when) setText(when, sinceText(alarm, known.get(alarm.key)?.seen ?? present, present))
        if (remedy) setText(remedy, alarm.remedy)
        if (link) setText(link, `More: ${alarm.section}`)
        if (link) setAttribute(link, 'href', `page/alerts#${alarm.section.toLowerCase()}`)
      },
    )
    const news = found.filter(({ key, level }) => before.get(key)?.level !== level)
    const isOver = [...before.keys()].some((key) => !known.has(key))
    if (news.length > 0) announce(news.map(({ level, what }) => `${LEVELS[level]}: ${what}`).join('. '))
    else if (isOver) announce(found.length === 0 ? 'No more alarms' : 'An alarm is over')
  }
}

/**
 * When the sidecar does not tell since when, the page says since when it has seen the alarm.
 *
 * @param {Alarm} alarm
 * @param {number} seen
 * @param {number} present
 */
function sinceText({ since }, seen, present) {
  return since === null ? `seen since ${moment(seen, present)}` : `since ${moment(since, present)}`
}

function makeAlarm() {
  const part = { 'data-part': '' }
  return el(
    'li',
    {},
    el(
      'p',
      {},
      el('span', { ...part, class: 'level' }),
      el('strong', part),
      el('span', { ...part, class: 'since' }),
    ),
    el('p', { class: 'remedy' }, el('span', part), ' ', el('a', { ...part, target: '_blank' })),
  )
}
