import { alarms } from './alarms.js'
import { now } from './clock.js'
import { byId, el, setAttribute, setText, showList } from './dom.js'
import { moment } from './format.js'

/** @typedef {import('./alarms.js').Alarm} Alarm */
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
  /** When the page first saw each alarm. @type {Map<string, number>} */
  let seen = new Map()

  return () => {
    if (state.condition === null) return
    const present = now()
    const found = alarms(state.condition, state.points, present)
    const before = seen
    seen = new Map(found.map(({ key, since }) => [key, since ?? before.get(key) ?? present]))
    section.hidden = found.length === 0
    showList(
      list,
      found,
      ({ key }) => key,
      makeAlarm,
      (item, alarm) => {
        const [text, remedy] = item.children
        const since = seen.get(alarm.key) ?? present
        const [, what, when] = text?.children ?? []
        setAttribute(item, 'data-tone', alarm.level)
        if (what) setText(what, alarm.what)
        if (when) setText(when, `since ${moment(since, present)}`)
        if (remedy) setText(remedy, alarm.remedy)
      },
    )
    const fresh = found.filter(({ key }) => !before.has(key)).map(({ what }) => `Alarm: ${what}`)
    const gone = [...before.keys()].some((key) => !seen.has(key))
    if (fresh.length > 0) announce(fresh.join('. '))
    else if (gone) announce(found.length === 0 ? 'No more alarms' : 'An alarm is over')
  }
}

/** @param {Alarm} alarm */
function makeAlarm({ level }) {
  return el(
    'li',
    {},
    el('p', {}, el('span', { class: 'level' }, LEVELS[level]), el('strong'), el('span', { class: 'since' })),
    el('p', { class: 'remedy' }),
  )
}
