/** What the sidecar's clock is ahead of this machine's (ms). */
let ahead = 0

/**
 * Follows the clock of the sidecar, so ages and countdowns are right on a machine whose clock is wrong.
 *
 * @param {number} sidecar its present time (ms since the Unix epoch)
 */
export function setClock(sidecar) {
  ahead = sidecar - Date.now()
}

/** The sidecar's present time (ms since the Unix epoch). */
export function now() {
  return Date.now() + ahead
}

/** This machine's time (ms since the Unix epoch), for how long the page has heard nothing. */
export function localNow() {
  return Date.now()
}
