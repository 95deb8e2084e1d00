import { refusedOf } from './chart-data.js'
import { ask, byId, el, show, write } from './dom.js'
import { latency, localNow, moment, words } from './format.js'

/** @import { Explanation, RequestRow } from '../overview/model.ts' */
/** @import { State } from './state.js' */

/** The list is read again at most this often (ms). */
const PAUSE = 2_000
/** The same after a failure (ms). */
const PAUSE_AFTER_FAILURE = 5_000

/**
 * The last refused requests, and the explanation of one.
 *
 * @param {State} state
 * @returns {() => void} reads the list again if requests were refused since
 */
export function showRequests(state) {
  const list = byId('requests', HTMLElement)
  const problem = byId('requests-problem', HTMLElement)
  const dialog = byId('explanation', HTMLDialogElement)
  let [readAt, readTo] = [0, -1]

  byId('explain', HTMLFormElement).addEventListener('submit', (event) => {
    event.preventDefault()
    explain(byId('explain-id', HTMLInputElement).value.trim())
  })

  async function read() {
    readAt = localNow()
    const until = state.points.at(-1)?.time ?? 0
    const { found, failure } = await ask('page/requests')
    problem.hidden = failure === undefined
    write('requests-problem', failure === undefined ? '' : `This list may be old. ${failure}`)
    if (failure !== undefined) {
      readAt += PAUSE_AFTER_FAILURE - PAUSE
      return
    }
    readTo = until
    /** @type {readonly RequestRow[]} */
    const rows = found
    const refused = rows.filter(({ refusal }) => refusal !== null)
    const none = el('li', { class: 'note' }, 'No request was refused lately.')
    list.replaceChildren(...(refused.length === 0 ? [none] : refused.map(makeRow)))
  }

  return () => {
    const isNew = readTo < 0 || state.points.some((point) => point.time > readTo && refusedOf(point) > 0)
    // An open explanation gives the focus back to its row.
    const isUsed = dialog.open || list.matches(':hover, :focus-within')
    if (isNew && localNow() - readAt > PAUSE && !isUsed) read()
  }
}

/** @param {RequestRow} row */
function makeRow({ id, method, path, client, status, refusal, time }) {
  const button = el(
    'button',
    { type: 'button', class: 'request' },
    el('time', { datetime: new Date(time).toISOString() }, moment(time)),
    el('span', { class: 'outcome' }, `${status || 'left'} ${words(refusal ?? '')}`),
    el('code', {}, `${method} ${path}`),
    el('span', { class: 'client' }, client),
  )
  button.addEventListener('click', () => explain(id))
  return el('li', {}, button)
}

/** Opens the explanation of a request. @param {string} id */
async function explain(id) {
  if (id === '') return
  const { found, status, failure } = await ask(`page/requests?id=${encodeURIComponent(id)}`)
  const missing = `No request with the id ${id} is remembered: only the last ones are, under a flood only part of them, and only until a restart. The access log reaches back further; of a flood of refusals it has the first ones and the number of the others.`
  if (failure === undefined) showFindings(found)
  else if (status === 404) showDialog('Not remembered', el('p', {}, missing))
  else showDialog('No explanation', el('p', {}, failure))
}

/** @param {string} title @param {...HTMLElement} findings */
function showDialog(title, ...findings) {
  write('explanation-title', title)
  show('findings', ...findings)
  byId('explanation', HTMLDialogElement).showModal()
}

/** @param {Explanation} explanation */
function showFindings({ request, findings }) {
  const { id, method, path, status, client, time, duration } = request
  const line = `${moment(time)}, from ${client}, ${status === 0 ? 'the client left' : `answered ${status}`} after ${latency(duration)}`
  const parts = findings.map(({ title, text }) => el('div', {}, el('dt', {}, title), el('dd', {}, text)))
  const note = el('p', { class: 'note' }, 'id ', el('code', {}, id))
  showDialog(`${method} ${path}`, el('p', {}, line), note, el('dl', {}, ...parts))
}
