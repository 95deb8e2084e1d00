import { showCharts } from './charts.js'
import { byId, el, setAttribute, write } from './dom.js'
import { localNow, setClock } from './format.js'
import { showGrants } from './grants.js'
import { explainFigures, showPanels } from './panels.js'
import { showRequests } from './requests.js'
import { emptyState, take } from './state.js'
import { showAlarms, statusLine } from './status.js'
import { keepStream } from './stream.js'

const state = emptyState()
/** How many announced texts stay in the page. */
const ANNOUNCED = 4
const announcer = byId('announcer', HTMLElement)

/**
 * Has a screen reader read a text. Each is an element of its own, so that texts of the same moment and equal texts are all read.
 *
 * @param {string} text
 */
function announce(text) {
  announcer.append(el('p', {}, text))
  while (announcer.childElementCount > ANNOUNCED) announcer.firstElementChild?.remove()
}

explainFigures()
const parts = [showCharts(state), showGrants(state, announce), showRequests(state)]
const showFound = showAlarms(announce)
let said = ''
let isScheduled = false

/** Draws once for all events of a frame. A hidden page draws nothing. */
function schedule() {
  if (isScheduled) return
  isScheduled = true
  requestAnimationFrame(() => {
    isScheduled = false
    show()
  })
}

function show() {
  const { condition } = state
  showStatus()
  if (condition === null) return
  showFound(condition.alarms)
  showPanels(state, condition)
  for (const part of parts) part()
}

function showStatus() {
  const line = statusLine(stream.link, state.condition, localNow())
  document.title = `${line.title} – ${state.about?.machine ?? 'Postern'}`
  write('status-text', line.text)
  setAttribute(byId('status', HTMLElement), 'data-tone', line.tone)
  const isStale = stream.link.phase !== 'live' && state.condition !== null
  setAttribute(byId('main', HTMLElement), 'data-stale', isStale ? '' : null)
  if (line.said !== said) announce(line.said)
  said = line.said
}

const stream = keepStream({
  onEvent(name, data) {
    if ('now' in data) setClock(data.now)
    // The clock of the sidecar may be set meanwhile.
    if ('time' in data) setClock(data.time)
    take(state, name, data)
    schedule()
  },
  onLink: schedule,
  onLoginNeeded: () => location.reload(),
})

// Ages and countdowns move each second: with a point, or by this when none comes.
setInterval(() => stream.link.phase === 'live' || schedule(), 1_000)
for (const event of ['visibilitychange', 'pageshow', 'online', 'resume']) {
  for (const target of [document, window]) {
    target.addEventListener(event, () => {
      if (document.visibilityState !== 'visible') return
      stream.check()
      schedule()
    })
  }
}
