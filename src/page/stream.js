import { localNow } from './clock.js'

/** @typedef {import('../overview/model.ts').PageEvents} PageEvents */

/** A point arrives each second, so a stream without one for this long is dead (ms). */
const SILENCE = 3_000
/** The pause before another attempt grows from the first to the second of these (ms). */
const PAUSES = { first: 250, last: 5_000 }

/**
 * How the page is connected.
 *
 * - `connecting`: no data yet
 * - `live`
 * - `lost`: the stream broke off or fell silent
 * - `unreachable`: nothing answers
 * - `viewers`: the sidecar has as many viewers as it serves
 *
 * @typedef {object} Link
 * @property {'connecting' | 'live' | 'lost' | 'unreachable' | 'viewers'} phase
 * @property {number} since when the phase began, by this machine's clock
 * @property {number} heard when the last data came, by this machine's clock; 0 before the first
 */

/**
 * Keeps one stream of events open. It reads the stream by `fetch`, because `EventSource` hides the status: a 401 leads to the
 * login page, a 503 means too many viewers.
 *
 * @param {object} listeners
 * @param {<Name extends keyof PageEvents>(name: Name, data: PageEvents[Name]) => void} listeners.onEvent
 * @param {(link: Link) => void} listeners.onLink
 * @param {() => void} listeners.onLoginNeeded
 * @returns {{ readonly link: Link, check(): void }} `check` reconnects at once if the stream is dead
 */
export function keepStream({ onEvent, onLink, onLoginNeeded }) {
  /** @type {Link} */
  const link = { phase: 'connecting', since: localNow(), heard: 0 }
  let lastId = ''
  let pause = PAUSES.first
  let heardOfAttempt = 0
  let attempt = new AbortController()
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let retry

  /** @param {Link['phase']} phase */
  function enter(phase) {
    if (link.phase === phase) return
    // Both mean that no data comes, so the time at which that began stays.
    if (!(link.phase === 'lost' && phase === 'unreachable')) link.since = localNow()
    link.phase = phase
    onLink(link)
  }

  async function connect() {
    clearTimeout(retry)
    attempt.abort()
    attempt = new AbortController()
    const { signal } = attempt
    heardOfAttempt = localNow()
    const phase = await read(signal)
    if (signal.aborted) return
    enter(phase)
    retry = setTimeout(connect, pause)
    pause = Math.min(2 * pause, PAUSES.last)
  }

  /**
   * @param {AbortSignal} signal
   * @returns {Promise<'lost' | 'unreachable' | 'viewers'>} why there is no stream any more
   */
  async function read(signal) {
    let streaming = false
    try {
      const headers = { Accept: 'text/event-stream', ...(lastId === '' ? {} : { 'Last-Event-ID': lastId }) }
      const response = await fetch('page/events', { headers, signal, cache: 'no-store' })
      if (response.status === 401) onLoginNeeded()
      if (response.status === 503 && (await response.json()).error === 'too_many_viewers') return 'viewers'
      if (!response.ok || response.body === null) return 'unreachable'
      streaming = true
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
      let rest = ''
      for (;;) {
        const { done, value } = await reader.read()
        if (done || signal.aborted) return 'lost'
        heardOfAttempt = localNow()
        const blocks = (rest + value).split('\n\n')
        rest = blocks.pop() ?? ''
        for (const block of blocks) dispatch(block)
      }
    } catch {
      return streaming ? 'lost' : 'unreachable'
    }
  }

  /** @param {string} block an event of the stream */
  function dispatch(block) {
    /** @type {Record<string, string>} */
    const fields = {}
    for (const line of block.split('\n')) {
      const [, name = '', value = ''] = /^([a-z]+): ?(.*)$/.exec(line) ?? []
      if (name !== '') fields[name] = name in fields ? `${fields[name]}\n${value}` : value
    }
    if (fields.id !== undefined) lastId = fields.id
    if (fields.event === undefined || fields.data === undefined) return
    link.heard = localNow()
    pause = PAUSES.first
    // The sidecar sends only the events of `PageEvents`, and its tests hold it to their types.
    const name = /** @type {keyof PageEvents} */ (fields.event)
    onEvent(name, JSON.parse(fields.data))
    enter('live')
  }

  /** Timers of a page in the background run late, so this also runs when the page is shown again. */
  function check() {
    if (localNow() - heardOfAttempt < SILENCE) return
    if (link.phase === 'live') enter('lost')
    connect()
  }

  setInterval(() => {
    if (link.phase === 'live') check()
  }, 1_000)
  connect()
  return { link, check }
}
