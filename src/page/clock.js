/** The difference between the sidecar's clock and this machine's (ms). */
let ahead = 0
/** A difference up to this (ms) is no difference of the clocks. */
const TRAVEL = 1_000

/**
 * Follows the clock of the sidecar, so ages and countdowns are right on a machine whose clock is wrong. A small difference is the time
 * that the event travelled: it changes nothing, so that countdowns do not jump.
 *
 * @param {number} sidecar its present time (ms since the Unix epoch)
 */
export function setClock(sidecar) {
  if (Math.abs(sidecar - now()) > TRAVEL) ahead = sidecar - Date.now()
}

/** The sidecar's present time (ms since the Unix epoch). */
export function now() {
  return Date.now() + ahead
}

/** This machine's time (ms since the Unix epoch), for how long the page has heard nothing. */
export function localNow() {
  return Date.now()
}
