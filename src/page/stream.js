import { localNow } from './format.js'

/** @import { PageEvents } from '../overview/model.ts' */

/** A point arrives each second, so a stream without one for this long is dead (ms). */
const SILENCE = 3_000
/** An attempt without a first byte for this long has failed (ms): a dead network may not say so for minutes. */
const ANSWER = 5_000
/** The longest sentence of the sidecar that the page shows, in characters. */
const LONGEST_REASON = 300
/** The pause before another attempt grows from the first to the second of these (ms). */
const PAUSES = { first: 250, last: 5_000 }
/** Names this page, so a new stream replaces the one before. `randomUUID` needs TLS or loopback. */
const VIEW = crypto.getRandomValues(new Uint32Array(4)).join('-')

/**
 * How the page is connected.
 *
 * - `connecting`: no data yet
 * - `live`
 * - `lost`: the stream broke off or fell silent
 * - `unreachable`: nothing answers
 * - `stopping`: the sidecar ends its streams because it stops
 * - `viewers`: the sidecar has as many viewers as it serves
 * - `refused`: the sidecar or a proxy refuses the stream, and `reason` says why
 * - `fault`: the page could not take an event
 *
 * @typedef {object} Link
 * @property {'connecting' | 'live' | End} phase
 * @property {string} reason of `refused`, a sentence; otherwise empty
 * @property {number} since when the phase began, by this machine's clock
 * @property {number} heard when the last data came, by this machine's clock; 0 before the first
 */

/** @typedef {'lost' | 'unreachable' | 'stopping' | 'viewers' | 'refused' | 'fault'} End why there is no stream any more */

/**
 * Keeps one stream of events open. It reads the stream by `fetch`, because `EventSource` hides the status: a 401 leads to the
 * login page, and other responses say why there is no stream.
 *
 * @param {object} listeners
 * @param {<Name extends keyof PageEvents>(name: Name, data: PageEvents[Name]) => void} listeners.onEvent
 * @param {(link: Link) => void} listeners.onLink
 * @param {() => void} listeners.onLoginNeeded
 * @returns {{ readonly link: Link, check(): void }} `check` reconnects at once if there is no stream, or a dead one
 */
export function keepStream({ onEvent, onLink, onLoginNeeded }) {
  /** @type {Link} */
  const link = { phase: 'connecting', reason: '', since: localNow(), heard: 0 }
  let lastId = ''
  let pause = PAUSES.first
  let heardOfAttempt = 0
  let attempt = new AbortController()
  let endPause = () => {}

  /** @param {Link['phase']} phase @param {string} [reason] */
  function enter(phase, reason = '') {
    if (link.phase === phase && link.reason === reason) return
    // Both mean that no data comes, so the time at which that began stays.
    if (!(link.phase === 'lost' && phase === 'unreachable')) link.since = localNow()
    Object.assign(link, { phase, reason })
    onLink(link)
  }

  async function keep() {
    for (;;) {
      attempt = new AbortController()
      heardOfAttempt = localNow()
      enter(...(await read(attempt.signal)))
      // A silent attempt has taken its time already.
      if (attempt.signal.aborted) continue
      const { promise, resolve } = Promise.withResolvers()
      endPause = () => resolve(undefined)
      setTimeout(endPause, pause)
      pause = Math.min(2 * pause, PAUSES.last)
      await promise
    }
  }

  /** @param {AbortSignal} signal @returns {Promise<[End, string?]>} */
  async function read(signal) {
    const response = await ask(signal)
    if (response === undefined) return ['unreachable']
    if (response.status === 401) onLoginNeeded()
    if (!response.ok || response.body === null) return refusalOf(response)
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    let rest = ''
    for (;;) {
      // Rejects if the connection breaks, and when the attempt is aborted.
      const { done, value } = await reader.read().catch(() => ({ done: true, value: '' }))
      if (done || signal.aborted) return ['lost']
      heardOfAttempt = localNow()
      const blocks = (rest + value).split('\n\n')
      rest = blocks.pop() ?? ''
      try {
        for (const block of blocks) dispatch(block)
      } catch (error) {
        reportError(error)
        reader.cancel()
        return ['fault']
      }
    }
  }

  /** @param {AbortSignal} signal @returns {Promise<Response | undefined>} undefined if nothing answers */
  async function ask(signal) {
    const headers = { Accept: 'text/event-stream', ...(lastId === '' ? {} : { 'Last-Event-ID': lastId }) }
    try {
      return await fetch(`page/events?view=${VIEW}`, { headers, signal, cache: 'no-store' })
    } catch {
      return undefined
    }
  }

  /** @param {string} block an event of the stream */
  function dispatch(block) {
    const [, id, name, data] = /(?:^id: (.*)\n)?^event: (.*)\ndata: (.*)$/m.exec(block) ?? []
    if (id !== undefined) lastId = id
    if (data === undefined) return
    // The sidecar sends only the events of `PageEvents`, and its tests hold it to their types.
    onEvent(/** @type {keyof PageEvents} */ (name), JSON.parse(data))
    link.heard = localNow()
    pause = PAUSES.first
    enter('live')
  }

  /** @param {number} patience ms without data after which the present attempt is given up */
  function giveUp(patience) {
    if (localNow() - heardOfAttempt >= patience) attempt.abort()
  }

  setInterval(() => giveUp(link.phase === 'live' ? SILENCE : ANSWER), 1_000)
  keep()
  return {
    link,
    /** Timers of a page in the background run late, so this also runs when the page is shown again. */
    check() {
      giveUp(SILENCE)
      endPause()
    },
  }
}

/**
 * What a response without a stream means. A gateway's error means that the sidecar behind it does not answer.
 *
 * @param {Response} response
 * @returns {Promise<[End, string?]>}
 */
async function refusalOf(response) {
  const { error, error_description: description } = (await response.json().catch(() => null)) ?? {}
  if (error === 'too_many_viewers') return ['viewers']
  if (error === 'stopping') return ['stopping']
  if ([502, 503, 504].includes(response.status)) return ['unreachable']
  return ['refused', `${description ?? `status ${response.status}`}`.slice(0, LONGEST_REASON)]
}
