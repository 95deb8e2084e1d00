import { refusedOf } from './chart-data.js'
import { localNow, now } from './clock.js'
import { byId, el, setText, showList } from './dom.js'
import { latency, moment, words } from './format.js'

/** @typedef {import('../overview/model.ts').RequestRow} RequestRow */
/** @typedef {import('../overview/model.ts').Explanation} Explanation */
/** @typedef {import('./state.js').State} State */

/** The list is read again at most this often (ms). */
const PAUSE = 2_000

/**
 * The last refused requests, and the explanation of one.
 *
 * @param {State} state
 * @returns {() => void} reads the list again if requests were refused since
 */
export function showRequests(state) {
  const list = byId('requests', HTMLElement)
  const form = byId('explain', HTMLFormElement)
  let [readAt, readTo] = [0, -1]

  form.addEventListener('submit', (event) => {
    event.preventDefault()
    explain(byId('explain-id', HTMLInputElement).value.trim())
  })

  async function read() {
    readAt = localNow()
    readTo = state.points.at(-1)?.time ?? 0
    /** @type {readonly RequestRow[]} */
    const rows = (await getJson('page/requests')) ?? []
    const refused = rows.filter(({ refusal }) => refusal !== null)
    showList(
      list,
      refused,
      ({ id }) => id,
      makeRow,
      (item, { time }) => {
        const when = item.querySelector('time')
        if (when) setText(when, moment(time, now()))
      },
    )
    if (refused.length === 0)
      list.replaceChildren(el('li', { class: 'note' }, 'No request was refused lately.'))
  }

  return () => {
    const isNew = readTo < 0 || state.points.some((point) => point.time > readTo && refusedOf(point) > 0)
    if (isNew && localNow() - readAt > PAUSE && !list.matches(':hover, :focus-within')) read()
  }
}

/** @param {RequestRow} row */
function makeRow({ id, method, path, client, status, refusal, time }) {
  const button = el(
    'button',
    { type: 'button', class: 'request' },
    el('time', { datetime: new Date(time).toISOString() }),
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
  /** @type {Explanation | null} */
  const found = await getJson(`page/requests?id=${encodeURIComponent(id)}`)
  const findings = byId('findings', HTMLElement)
  if (found === null) {
    setText(byId('explanation-title', HTMLElement), 'Not remembered')
    const text = `No request with the id ${id} is remembered: only the last ones are, and only until a restart. The access log has the line of each.`
    findings.replaceChildren(el('p', {}, text))
  } else {
    const { method, path, status, client, time, duration } = found.request
    setText(byId('explanation-title', HTMLElement), `${method} ${path}`)
    const line = `${moment(time, now())}, from ${client}, ${status === 0 ? 'the client left' : `answered ${status}`} after ${latency(duration)}`
    const parts = found.findings.map(({ title, text }) =>
      el('div', {}, el('dt', {}, title), el('dd', {}, text)),
    )
    findings.replaceChildren(
      el('p', {}, line),
      el('p', { class: 'note' }, 'id ', el('code', {}, id)),
      el('dl', {}, ...parts),
    )
  }
  byId('explanation', HTMLDialogElement).showModal()
}

/** @param {string} url @returns {Promise<any>} null if there is none */
async function getJson(url) {
  try {
    const response = await fetch(url, { cache: 'no-store' })
    return response.ok ? await response.json() : null
  } catch {
    return null
  }
}
