import { ask } from './dom.js'

/** @import { GrantsFound } from '../overview/model.ts' */

/** What is known of a text: nothing yet, what was found, or why it could not be searched. */
/** @typedef {{ found?: GrantsFound, failure?: string }} Search */

/** How long the typing has to pause before the sidecar is asked (ms). */
const TYPED = 250
/** The age at which a result is searched anew while its text stays (ms). */
const AGAIN = 3_000

/**
 * Has the sidecar search all logins: the page knows only the 1,000 that were used last.
 *
 * @param {() => void} onFound called when `find` knows more
 */
export function keepSearch(onFound) {
  let wanted = ''
  /** @type {Search} */
  let known = {}
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer

  /** @param {number} after ms */
  function schedule(after) {
    clearTimeout(timer)
    timer = setTimeout(search, after)
  }

  async function search() {
    const text = wanted
    const { found, failure } = await ask(`page/grants?find=${encodeURIComponent(text)}`)
    if (text !== wanted) return
    known = failure === undefined ? { found } : { failure }
    onFound()
    if (text === wanted) schedule(AGAIN)
  }

  return {
    /**
     * Begins the search for a text, unless it is under way, and goes on until another text or none is wanted.
     *
     * @param {string} text empty: none
     * @returns {Search} what is known of it
     */
    find(text) {
      if (text === wanted) return known
      wanted = text
      known = {}
      if (text === '') clearTimeout(timer)
      else schedule(TYPED)
      return known
    },
    /** Searches at once, because a login was revoked. */
    again() {
      if (wanted !== '') schedule(0)
    },
  }
}
