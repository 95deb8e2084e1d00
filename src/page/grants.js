import { byId, el, setAttribute, setText, showList } from './dom.js'
import { count, moment, now, span } from './format.js'

/** @typedef {import('./state.js').State} State */
/** @typedef {import('../overview/model.ts').GrantRow} GrantRow */
/** What the columns show: an address, then lengths of time. @typedef {'client' | 'age' | 'used' | 'left'} Column */

/** So many rows are made at first, and so many more when they are scrolled into view: 1,000 rows cost a tenth of each second. */
const PART = 100
const COLLATOR = new Intl.Collator('en', { numeric: true })

/** The lengths of time grow with these numbers (ms). A login that was not used yet was used longest ago. */
const TIMES = {
  /** @param {GrantRow} row */
  age: ({ issuedAt }) => -issuedAt,
  /** @param {GrantRow} row */
  used: ({ usedAt }) => -(usedAt ?? 0),
  /** @param {GrantRow} row */
  left: ({ expiresAt }) => expiresAt,
}

/**
 * The logins that the filter leaves, in the order of what a column shows.
 *
 * @param {Iterable<GrantRow>} grants
 * @param {string} filter part of a client's address or of an id
 * @param {Column} column
 * @param {1 | -1} direction 1 is ascending: the youngest, the last used or the first to expire comes first
 * @returns {GrantRow[]}
 */
export function selectGrants(grants, filter, column, direction) {
  const part = filter.trim().toLowerCase()
  return [...grants]
    .filter(({ id, client }) => `${client} ${id}`.toLowerCase().includes(part))
    .sort((a, b) => {
      const order =
        column === 'client' ? COLLATOR.compare(a.client, b.client) : TIMES[column](a) - TIMES[column](b)
      return direction * order || COLLATOR.compare(a.id, b.id)
    })
}

/**
 * The table of logins. Its order stays while a pointer or the focus is inside, so that no row moves away from a finger.
 *
 * @param {State} state
 * @returns {() => void} shows the present state
 */
export function showGrants(state) {
  const body = byId('grant-rows', HTMLTableSectionElement)
  const scroll = byId('grants-scroll', HTMLElement)
  const table = byId('grants', HTMLTableElement)
  const filter = byId('grants-filter', HTMLInputElement)
  const total = byId('grants-total', HTMLElement)
  const all = byId('revoke-all', HTMLButtonElement)
  const note = byId('revoke-note', HTMLElement)
  /** @type {{ column: Column, direction: 1 | -1 }} */
  const order = { column: 'used', direction: 1 }
  /** @type {readonly GrantRow[]} */
  let rows = []
  let made = PART
  let shown = -1
  let mayRevoke = false

  /** @param {boolean} [anew] sorts although the table is in use */
  function select(anew = false) {
    const selected = selectGrants(state.grants.values(), filter.value, order.column, order.direction)
    if (anew || !(scroll.matches(':hover') || scroll.contains(document.activeElement))) rows = selected
    else rows = keepOrder(rows, selected)
    mayRevoke = state.mayRevoke
    makeRows()
    setText(total, totalText())
    all.hidden = !mayRevoke
    note.hidden = mayRevoke || state.about === null
    shown = state.grantChanges
  }

  function makeRows() {
    showList(body, rows.slice(0, made), ({ id }) => id, makeRow)
    setAttribute(table, 'aria-rowcount', String(rows.length + 1))
  }

  function totalText() {
    const known = state.grantTotal ?? state.grants.size
    return rows.length === known ? count(known) : `${count(rows.length)} of ${count(known)}`
  }

  /** @param {GrantRow} row */
  function makeRow({ id, client }) {
    const act = el('td', { class: 'act' })
    if (mayRevoke) {
      const button = el(
        'button',
        { type: 'button', 'aria-label': `Revoke the login of ${client}, ${id}` },
        'Revoke',
      )
      button.addEventListener('click', () => confirmRevocation({ grant: id }, `the login of ${client}`))
      act.append(button)
    }
    const cells = [el('td'), el('td'), el('td'), act]
    return el('tr', {}, el('th', { scope: 'row', title: id }, client), ...cells)
  }

  /** Ages change each second, so only the rows in view are written, and a screen above and below them. */
  function writeAges() {
    const present = now()
    const { scrollTop, clientHeight } = scroll
    const inView = [...body.rows].filter(
      ({ offsetTop }) => Math.abs(offsetTop - scrollTop) < 2 * clientHeight,
    )
    for (const row of inView) {
      const grant = state.grants.get(row.dataset.key ?? '')
      if (grant === undefined) continue
      const cells = row.children
      writeTime(cells[1], grant.issuedAt, span(present - grant.issuedAt), present)
      writeTime(cells[2], grant.usedAt, grant.usedAt === null ? '–' : span(present - grant.usedAt), present)
      writeTime(cells[3], grant.expiresAt, span(grant.expiresAt - present), present)
    }
  }

  function show() {
    if (shown !== state.grantChanges || mayRevoke !== state.mayRevoke) select()
    writeAges()
  }

  /** Makes more rows when the last ones come into view, and writes those that came. */
  function onScroll() {
    if (made < rows.length && scroll.scrollTop + 2 * scroll.clientHeight > scroll.scrollHeight) {
      made += PART
      makeRows()
    }
    writeAges()
  }

  scroll.addEventListener('scroll', onScroll, { passive: true })
  filter.addEventListener('input', () => {
    select(true)
    writeAges()
  })
  for (const button of document.querySelectorAll('button[data-sort]')) {
    button.addEventListener('click', () => {
      const column = /** @type {Column} */ (button.getAttribute('data-sort'))
      order.direction = order.column === column && order.direction === 1 ? -1 : 1
      order.column = column
      for (const each of document.querySelectorAll('button[data-sort]')) {
        const sorted = each === button ? (order.direction === 1 ? 'ascending' : 'descending') : null
        setAttribute(/** @type {Element} */ (each.parentElement), 'aria-sort', sorted)
      }
      select(true)
      writeAges()
    })
  }
  all.addEventListener('click', () => {
    const logins = state.grantTotal ?? state.grants.size
    confirmRevocation({ all: true }, logins === 1 ? 'the only login' : `all ${count(logins)} logins`)
  })
  return show
}

/**
 * The rows of before that are still selected, then the new ones.
 *
 * @param {readonly GrantRow[]} before
 * @param {readonly GrantRow[]} selected
 */
function keepOrder(before, selected) {
  const left = new Map(selected.map((row) => [row.id, row]))
  const kept = before.flatMap(({ id }) => {
    const row = left.get(id)
    left.delete(id)
    return row === undefined ? [] : [row]
  })
  return [...kept, ...left.values()]
}

/**
 * @param {Element | undefined} cell
 * @param {number | null} time
 * @param {string} text
 * @param {number} present
 */
function writeTime(cell, time, text, present) {
  if (cell === undefined) return
  setText(cell, text)
  setAttribute(cell, 'title', time === null ? 'not since this sidecar started' : moment(time, present))
}

/** @typedef {{ readonly all: true } | { readonly grant: string }} Revocation */

/** @type {Revocation | undefined} */
let pending

/** Asks whether to revoke, says what happens, and does it. @param {Revocation} revocation @param {string} what the logins, as words */
function confirmRevocation(revocation, what) {
  pending = revocation
  setText(byId('confirm-title', HTMLElement), `Revoke ${what}?`)
  setText(
    byId('confirm-text', HTMLElement),
    `The tokens are void at once, and their connections close. ${'all' in revocation ? 'Every client' : 'The client'} has to log in with the password again. This cannot be undone.`,
  )
  setText(byId('confirm-problem', HTMLElement), '')
  byId('confirm', HTMLDialogElement).showModal()
}

/** Makes the dialog work. Called once. @param {(text: string) => void} announce */
export function prepareRevocation(announce) {
  const dialog = byId('confirm', HTMLDialogElement)
  const yes = byId('confirm-yes', HTMLButtonElement)
  yes.addEventListener('click', async () => {
    if (pending === undefined) return
    yes.disabled = true
    const result = await revoke(pending)
    yes.disabled = false
    if (typeof result === 'string') setText(byId('confirm-problem', HTMLElement), result)
    else {
      dialog.close()
      // The dialog gives the focus back to the button of a row that is about to go.
      byId('grants-scroll', HTMLElement).focus()
      announce(`${result} ${result === 1 ? 'login' : 'logins'} revoked`)
    }
  })
}

/** @param {Revocation} revocation @returns {Promise<number | string>} how many were revoked, or the problem */
async function revoke(revocation) {
  try {
    const response = await fetch('page/revoke', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(revocation),
    })
    if (response.ok) return (await response.json()).revoked
    if (response.status === 401) return 'You are signed out. Load the page again to sign in.'
    return `Nothing was revoked: the sidecar answered ${response.status}. “postern revoke” does the same.`
  } catch {
    return 'The sidecar does not answer. Whether it revoked is not known: look when it is back.'
  }
}
