import { alarms } from './alarms.js'
import { now } from './clock.js'
import { byId, el, setAttribute, setText, showList } from './dom.js'
import { moment } from './format.js'

/** @typedef {import('./load-alarms.js').Alarm} Alarm */
/** @typedef {import('./state.js').State} State */

const LEVELS = { critical: 'Critical', warning: 'Warning', note: 'Note' }

/**
 * The alarms at the top.
 *
 * @param {State} state
 * @param {(text: string) => void} announce reads a text to a screen reader
 * @returns {() => void} shows the present alarms
 */
export function showAlarms(state, announce) {
  const section = byId('alarms', HTMLElement)
  const list = byId('alarm-list', HTMLElement)
  /** @type {Map<string, { level: Alarm['level'], seen: number }>} */
  let known = new Map()

  return () => {
    if (state.condition === null) return
    const present = now()
    const found = alarms(state.condition, state.points, present)
    const before = known
    known = new Map(found.map(({ key, level }) => [key, { level, seen: before.get(key)?.seen ?? present }]))
    section.hidden = found.length === 0
    showList(
      list,
      found,
      ({ key }) => key,
      makeAlarm,
      (item, alarm) => {
        const [text, remedy] = item.children
        const [level, what, when] = text?.children ?? []
        setAttribute(item, 'data-tone', alarm.level)
        if (level) setText(level, LEVELS[alarm.level])
        if (what) setText(what, alarm.what)
        if (when) setText(when, sinceText(alarm, known.get(alarm.key)?.seen ?? present, present))
        if (remedy) setText(remedy, alarm.remedy)
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
  return el(
    'li',
    {},
    el('p', {}, el('span', { class: 'level' }), el('strong'), el('span', { class: 'since' })),
    el('p', { class: 'remedy' }),
  )
}
