import { ask, byId, el, setAttribute, show, write } from './dom.js'
import { count, moment, now, span } from './format.js'
import { keepSearch } from './grant-search.js'

/** @import { GrantRow } from '../overview/model.ts' */
/** @import { State } from './state.js' */

/** What the columns show: an address, then lengths of time. @typedef {'client' | 'age' | 'used' | 'left'} Column */

/** So many rows are made at first, and so many more when they are scrolled into view: 1,000 rows cost half of each second. */
const PART = 40
const COLLATOR = new Intl.Collator('en', { numeric: true })

/** The lengths of time grow with these numbers (ms). A login that was not used yet was used longest ago. */
const TIMES = {
  age: (/** @type {GrantRow} */ { issuedAt }) => -issuedAt,
  used: (/** @type {GrantRow} */ { usedAt }) => -(usedAt ?? 0),
  left: (/** @type {GrantRow} */ { expiresAt }) => expiresAt,
}

/**
 * The logins that the filter leaves, in the order of what a column shows.
 *
 * @param {Iterable<GrantRow>} grants
 * @param {string} filter part of a client's address, of an id or of a label
 * @param {Column} column
 * @param {1 | -1} direction 1 is ascending: the youngest, the last used or the first to expire comes first
 * @returns {GrantRow[]}
 */
export function selectGrants(grants, filter, column, direction) {
  const part = filter.trim().toLowerCase()
  return [...grants]
    .filter(({ id, client, label = '' }) => `${client} ${id} ${label}`.toLowerCase().includes(part))
    .sort((a, b) => {
      const order =
        column === 'client' ? COLLATOR.compare(holderOf(a), holderOf(b)) : TIMES[column](a) - TIMES[column](b)
      return direction * order || COLLATOR.compare(a.id, b.id)
    })
}

/**
 * The table of logins. Its order stays while it is used, so that no row moves away from a finger.
 *
 * @param {State} state
 * @param {(text: string) => void} announce reads a text to a screen reader
 * @returns {() => void} shows the present state
 */
export function showGrants(state, announce) {
  const search = keepSearch(() => draw())
  const confirmRevocation = prepareRevocation(announce, search.again)
  const scroll = byId('grants-scroll', HTMLElement)
  const filter = byId('grants-filter', HTMLInputElement)
  const confirm = byId('confirm', HTMLDialogElement)
  /** @type {{ column: Column, direction: 1 | -1 }} */
  const order = { column: 'used', direction: 1 }
  /** @type {readonly GrantRow[]} */
  let rows = []
  let made = PART

  /** @param {boolean} [anew] sorts although the table is in use */
  function draw(anew = false) {
    const all = state.grantTotal ?? state.grants.size
    const text = filter.value.trim()
    // The page has only the logins that were used last, so the sidecar searches all.
    const { found, failure } = search.find(all > state.grants.size ? text : '')
    const known = found?.rows.map((row) => state.grants.get(row.id) ?? row) ?? state.grants.values()
    const selected = selectGrants(known, text, order.column, order.direction)
    // An open question gives the focus back to its row.
    const isUsed = confirm.open || scroll.matches(':hover, :focus, :focus-within')
    rows = anew || !isUsed ? selected : keepOrder(rows, selected)
    const isPart = text !== '' && all > state.grants.size
    const matches = found?.matches ?? (isPart ? undefined : rows.length)
    write('grants-total', totalText(matches, all))
    write('grants-note', text === '' ? '' : noteOf(isPart, rows.length, matches, failure))
    byId('grants-act', HTMLElement).hidden = !state.mayRevoke
    setAttribute(byId('grants', HTMLElement), 'aria-rowcount', String(rows.length + 1))
    byId('revoke-all', HTMLElement).hidden = !state.mayRevoke
    byId('revoke-note', HTMLElement).hidden = state.mayRevoke || state.about === null
    show('grant-rows', ...rows.slice(0, made).map((row) => rowOf(row, state.mayRevoke)))
  }

  scroll.addEventListener(
    'scroll',
    () => {
      // The last rows come into view.
      if (made >= rows.length || scroll.scrollTop + 2 * scroll.clientHeight <= scroll.scrollHeight) return
      made += PART
      draw()
    },
    { passive: true },
  )
  byId('grant-rows', HTMLElement).addEventListener('click', ({ target }) => {
    const value = target instanceof HTMLButtonElement ? target.value : ''
    const grant = rows.find(({ id }) => id === value)
    if (grant !== undefined)
      confirmRevocation({ grant: grant.id }, nameOf(grant), grantText(grant), grant.label !== undefined)
  })
  filter.addEventListener('input', () => draw(true))
  for (const button of document.querySelectorAll('button[data-sort]')) {
    button.addEventListener('click', () => {
      const column = /** @type {Column} */ (button.getAttribute('data-sort'))
      order.direction = order.column === column && order.direction === 1 ? -1 : 1
      order.column = column
      const sorted = order.direction === 1 ? 'ascending' : 'descending'
      for (const head of document.querySelectorAll('#grants thead th'))
        setAttribute(head, 'aria-sort', head.contains(button) ? sorted : null)
      draw(true)
    })
  }
  byId('revoke-all', HTMLElement).addEventListener('click', () => {
    const logins = state.grantTotal ?? state.grants.size
    confirmRevocation({ all: true }, logins === 1 ? 'the only login' : `all ${count(logins)} logins`)
  })
  return () => draw()
}

/**
 * How many logins are shown, of all. @param {number | undefined} matches undefined: not known yet @param {number} all
 */
function totalText(matches, all) {
  if (matches === all) return count(all)
  return `${matches === undefined ? '…' : count(matches)} of ${count(all)}`
}

/**
 * What the filter has found. A screen reader reads it when it changes. @param {boolean} isPart @param {number} shown
 * @param {number | undefined} matches @param {string | undefined} failure
 */
function noteOf(isPart, shown, matches, failure) {
  if (isPart && failure !== undefined)
    return `The sidecar did not search: ${failure} Only the most recently used logins were searched.`
  if (matches === undefined) return 'Searching all logins'
  const found =
    matches === 0 ? 'No login found' : `${count(matches)} ${matches === 1 ? 'login' : 'logins'} found`
  return matches > shown ? `${found}. The ${count(shown)} most recently used are listed.` : found
}

/** Which login it is, among several of one client. @param {GrantRow} grant */
function grantText({ id, issuedAt, usedAt }) {
  const present = now()
  const used = usedAt === null ? 'not used since this sidecar started' : `used ${span(present - usedAt)} ago`
  return `Its id is ${id}. It is ${span(present - issuedAt)} old, and ${used}. `
}

/** Who has its tokens: a client, or whom the operator gave it to. @param {GrantRow} grant */
function holderOf({ client, label = '' }) {
  return label === '' ? client : `${client}: ${label}`
}

/** @param {GrantRow} grant */
function nameOf(grant) {
  if (grant.label === undefined) return `the login of ${grant.client}`
  return grant.label === '' ? 'the issued token' : `the issued token “${grant.label}”`
}

/** @param {GrantRow} row @param {boolean} mayRevoke */
function rowOf(row, mayRevoke) {
  const { id, issuedAt, usedAt, expiresAt } = row
  const present = now()
  const described = `Revoke ${nameOf(row)}, ${id}`
  const button = el('button', { type: 'button', value: id, 'aria-label': described }, 'Revoke')
  return el(
    'tr',
    { 'data-key': id },
    el('th', { scope: 'row' }, holderOf(row), ' ', el('code', {}, id)),
    el('td', { title: moment(issuedAt, present) }, span(present - issuedAt)),
    usedAt === null
      ? el('td', { title: 'not since this sidecar started' }, '–')
      : el('td', { title: moment(usedAt, present) }, span(present - usedAt)),
    el('td', { title: moment(expiresAt, present) }, span(expiresAt - present)),
    ...(mayRevoke ? [el('td', { class: 'act' }, button)] : []),
  )
}

/**
 * The rows of before that are still selected, then the new ones.
 *
 * @param {readonly GrantRow[]} before
 * @param {readonly GrantRow[]} selected
 */
function keepOrder(before, selected) {
  const places = new Map(before.map(({ id }, place) => [id, place]))
  /** @param {GrantRow} row */
  const placeOf = ({ id }) => places.get(id) ?? before.length
  return selected.toSorted((a, b) => placeOf(a) - placeOf(b))
}

/**
 * Makes the dialog of a revocation work.
 *
 * @param {(text: string) => void} announce reads a text to a screen reader
 * @param {() => void} onRevoked
 * @returns {(revocation: { all: true } | { grant: string }, what: string, which?: string, isIssued?: boolean) => void} asks whether to revoke, says what
 *   happens, and does it; `what` names the logins, and `which` tells one of several apart
 */
function prepareRevocation(announce, onRevoked) {
  const dialog = byId('confirm', HTMLDialogElement)
  const yes = byId('confirm-yes', HTMLButtonElement)
  let body = ''
  yes.addEventListener('click', async () => {
    yes.disabled = true
    const headers = { 'Content-Type': 'application/json' }
    const { found, failure } = await ask('page/revoke', { method: 'POST', headers, body })
    yes.disabled = false
    if (failure !== undefined) {
      write('confirm-problem', `${failure} The list shows what was revoked. “postern revoke” does the same.`)
      return
    }
    dialog.close()
    // The dialog gives the focus back to the button of a row that is about to go.
    byId('grants-scroll', HTMLElement).focus()
    announce(`${found.revoked} ${found.revoked === 1 ? 'login' : 'logins'} revoked`)
    onRevoked()
  })
  return (revocation, what, which = '', isIssued = false) => {
    body = JSON.stringify(revocation)
    const next =
      'all' in revocation
        ? 'Every client has to log in with the password again, or needs a new token (postern issue).'
        : isIssued
          ? 'Its client needs a new token (postern issue).'
          : 'The client has to log in with the password again.'
    write('confirm-title', `Revoke ${what}?`)
    write(
      'confirm-text',
      `${which}The tokens are void at once, and their connections close. ${next} This cannot be undone.`,
    )
    write('confirm-problem', '')
    dialog.showModal()
  }
}
