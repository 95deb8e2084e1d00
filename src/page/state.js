/** @import { GrantRow, PageEvents, Point, TimelineEntry } from '../overview/model.ts' */

/** How long the page remembers points (ms). */
const MEMORY = 15 * 60_000
const LINES = 200
/** A second (ms). */
const STEP = 1_000

/** A line of the timeline. Ids begin anew with each run of the sidecar, so the run is part of the key. */
/** @typedef {TimelineEntry & { readonly key: string }} Line */

/** What the page knows: the sum of the events so far. @typedef {ReturnType<typeof emptyState>} State */

export const emptyState = () => ({
  /** Null before the first event. @type {import('../overview/model.ts').About | null} */
  about: null,
  /** @type {import('../overview/model.ts').Condition | null} */
  condition: null,
  mayRevoke: false,
  signedIn: false,
  /** Oldest first. @type {Point[]} */
  points: [],
  /** Oldest first. @type {Line[]} */
  timeline: [],
  /** @type {Map<string, GrantRow>} */
  grants: new Map(),
  /** Null if the shared store does not say. @type {number | null} */
  grantTotal: null,
  /** Of the stream before; the first `grants` of a stream has all rows. */
  grantsAreOld: false,
})

/**
 * Adds points that follow the present ones. Older ones of the same time, as after a reconnection, are ignored.
 *
 * @param {State} state
 * @param {readonly Point[]} points
 */
function addPoints(state, points) {
  const last = state.points.at(-1)?.time ?? 0
  const all = [...state.points, ...points.filter(({ time }) => time > last)]
  const oldest = (all.at(-1)?.time ?? 0) - MEMORY
  state.points = all.filter(({ time }) => time > oldest)
}

/** @param {State} state @param {number} by ms */
function moveTimes(state, by) {
  state.points = state.points.map((point) => ({ ...point, time: point.time + by }))
}

/** Adds log lines, or replaces a line that came again. @param {State} state @param {readonly TimelineEntry[]} entries */
function addLines(state, entries) {
  const run = state.about?.run ?? ''
  const lines = new Map(state.timeline.map((line) => [line.key, line]))
  for (const entry of entries) {
    const key = `${run} ${entry.id}`
    lines.set(key, { ...entry, key })
  }
  state.timeline = [...lines.values()].slice(-LINES)
}

/**
 * Takes an event of the stream into the state.
 *
 * @template {keyof PageEvents} Name
 * @param {State} state
 * @param {Name} name
 * @param {PageEvents[Name]} data
 */
export function take(state, name, data) {
  HANDLERS[name](state, data)
}

/** @type {{ readonly [Name in keyof PageEvents]: (state: State, data: PageEvents[Name]) => void }} */
const HANDLERS = {
  start(state, { about, condition, mayRevoke, signedIn, now, points, timeline }) {
    const isRestarted = state.about !== null && state.about.run !== about.run
    Object.assign(state, { about, condition, mayRevoke, signedIn, grantsAreOld: true })
    if (isRestarted) state.timeline.push(restartAt(about.startedAt))
    // Points of the future: the clock of the sidecar was set back, and `start` has the whole history.
    if ((state.points.at(-1)?.time ?? 0) > now + STEP) state.points = []
    addPoints(state, points)
    addLines(state, timeline)
  },
  point(state, point) {
    const last = state.points.at(-1)
    // The stream sends each second once, in order: the clock of the sidecar was set back. Its history moves with the clock, too.
    if (last !== undefined && point.time < last.time) moveTimes(state, point.time - STEP - last.time)
    addPoints(state, [point])
  },
  condition: (state, condition) => void Object.assign(state, { condition }),
  timeline: addLines,
  grants(state, { total, changed, removed }) {
    if (state.grantsAreOld) state.grants.clear()
    state.grantsAreOld = false
    for (const id of removed) state.grants.delete(id)
    for (const row of changed) state.grants.set(row.id, row)
    state.grantTotal = total
  },
}

/** The page's own line: between two runs of the sidecar. @param {number} time @returns {Line} */
function restartAt(time) {
  const text = 'the sidecar was restarted'
  return { key: `restart ${time}`, id: 0, time, level: 'warn', text, details: '', times: 1 }
}
