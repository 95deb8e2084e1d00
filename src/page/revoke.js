import { byId, setText } from './dom.js'

/** @typedef {{ readonly all: true } | { readonly grant: string }} Revocation */

/** @type {Revocation | undefined} */
let pending

/**
 * Asks whether to revoke, says what happens, and does it.
 *
 * @param {Revocation} revocation
 * @param {string} what the logins, as words
 */
export function confirmRevocation(revocation, what) {
  pending = revocation
  setText(byId('confirm-title', HTMLElement), `Revoke ${what}?`)
  setText(
    byId('confirm-text', HTMLElement),
    `The tokens are void at once, and their connections close. ${'all' in revocation ? 'Every client' : 'The client'} has to log in with the password again. This cannot be undone.`,
  )
  setText(byId('confirm-problem', HTMLElement), '')
  byId('confirm', HTMLDialogElement).showModal()
}

/**
 * Makes the dialog work. Called once.
 *
 * @param {(text: string) => void} announce
 */
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

/**
 * @param {Revocation} revocation
 * @returns {Promise<number | string>} how many were revoked, or the problem
 */
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
