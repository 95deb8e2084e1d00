import type { IncomingMessage, ServerResponse } from 'node:http'
import type { PageEvents, Point, TimelineEntry } from '../overview/model.ts'
import type { GrantRows, Overview } from '../overview/overview.ts'
import type { Clock } from '../system/clock.ts'
import { PAGE_FIELDS } from './page-documents.ts'

/** The viewer who gets a stream. */
export interface Viewer {
  /** Streams end with it; undefined if no login is needed. */
  readonly session: object | undefined
  /** A random id that a page gives all its streams; undefined if the client sends none. */
  readonly view: string | undefined
  readonly mayRevoke: boolean
  /** Asked once a second. The stream ends when it is false. */
  readonly mayView: () => boolean
}

/** The streams of `page/events`. */
export interface EventStreams {
  /**
   * Answers with a stream; false if there are `MOST_STREAMS` already. A new stream of a view replaces the one before, which may be on a
   * connection that broke without a sign: a phone that has changed its network.
   */
  open(req: IncomingMessage, res: ServerResponse, viewer: Viewer): boolean
  /** Ends the streams of a session; undefined ends all. */
  end(session?: object): void
}

interface Stream {
  readonly res: ServerResponse
  readonly viewer: Viewer
  /** The last condition that was sent. */
  condition: string
  /** The last rows that were sent. */
  grants: GrantSnapshot | undefined
}

const MOST_STREAMS = 16
/** A client that leaves more unread (bytes) is dropped. */
const MOST_UNREAD = 1 << 20
/** Time between two looks at the grants (ms); a little less than two seconds, so that every second point has one. */
const GRANTS_EVERY = 1_900
/** How long a client waits before it connects again (ms). */
const RETRY = 2_000
/** How long a client may take to read the end of its stream (ms). */
const LAST_READ = 2_000

/**
 * Sends the events to all viewers. What is the same for all is computed and written as JSON once a second; without a viewer nothing
 * runs. A viewer who does not read is dropped.
 */
export function createEventStreams(
  overview: Overview,
  clock: Clock,
  onBug: (error: unknown) => void,
): EventStreams {
  const streams = new Set<Stream>()
  let source: { close(): void } | undefined
  let newest: TimelineEntry | undefined
  let grants: GrantSnapshot | undefined
  let grantsAt = Number.NEGATIVE_INFINITY
  let asking = false

  function onPoint(point: Point): void {
    const pointText = eventText('point', point, point.time)
    const condition = JSON.stringify(overview.condition())
    const timelineText = newsOfTimeline()
    for (const stream of streams) {
      if (!stream.viewer.mayView()) {
        close(stream)
        continue
      }
      let text = pointText
      if (stream.condition !== condition) text += eventOf('condition', condition)
      stream.condition = condition
      write(stream, text + timelineText)
    }
    if (clock.monotonic() - grantsAt >= GRANTS_EVERY) askForGrants()
  }

  /** The new entries, and the last known one if it has changed. */
  function newsOfTimeline(): string {
    const known = newest
    const news = overview
      .timeline((known?.id ?? 1) - 1)
      .filter(({ id, times, time }) => id !== known?.id || times !== known.times || time !== known.time)
    newest = news.at(-1) ?? newest
    return news.length === 0 ? '' : eventText('timeline', news)
  }

  function askForGrants(): void {
    if (asking) return
    asking = true
    grantsAt = clock.monotonic()
    Promise.resolve()
      .then(() => overview.grants())
      .then((rows) => {
        if (streams.size === 0) return
        grants = snapshotOf(rows, grants)
        sendGrants()
      })
      .catch(onBug)
      .finally(() => {
        asking = false
      })
  }

  /** Streams that have the same snapshot get the same text. */
  function sendGrants(): void {
    const texts = new Map<GrantSnapshot | undefined, string | undefined>()
    for (const stream of streams) {
      const before = stream.grants
      if (grants === undefined || grants === before) continue
      if (!texts.has(before)) texts.set(before, grantChanges(before, grants))
      stream.grants = grants
      const changes = texts.get(before)
      if (changes !== undefined) write(stream, eventOf('grants', changes))
    }
  }

  function write(stream: Stream, text: string): void {
    if (stream.res.writableLength > MOST_UNREAD) drop(stream)
    else stream.res.write(text)
  }

  function drop(stream: Stream): void {
    forget(stream)
    stream.res.destroy()
  }

  function close(stream: Stream): void {
    forget(stream)
    // What is written may wait for a client that does not read.
    stream.res.socket?.setTimeout(LAST_READ)
    stream.res.end()
  }

  function forget(stream: Stream): void {
    if (!streams.delete(stream) || streams.size > 0) return
    source?.close()
    source = undefined
    grants = undefined
    grantsAt = Number.NEGATIVE_INFINITY
  }

  function start(viewer: Viewer, after: number, condition: string): string {
    const now = clock.wall()
    // Ids are times. One in the future is of an earlier clock.
    const points = overview.points(after > now ? 0 : after)
    const timeline = overview.timeline(0)
    const start: Omit<PageEvents['start'], 'condition'> = {
      about: overview.about,
      now,
      mayRevoke: viewer.mayRevoke,
      signedIn: viewer.session !== undefined,
      points,
      timeline,
    }
    newest ??= timeline.at(-1)
    const data = `${JSON.stringify(start).slice(0, -1)},"condition":${condition}}`
    return `retry: ${RETRY}\n${eventOf('start', data, points.at(-1)?.time)}`
  }

  return {
    open(req, res, viewer) {
      for (const stream of [...streams]) if (isSameView(stream.viewer, viewer)) drop(stream)
      if (streams.size >= MOST_STREAMS) return false
      const condition = JSON.stringify(overview.condition())
      const stream: Stream = { res, viewer, condition, grants: undefined }
      if (streams.size === 0) newest = undefined
      const first = start(viewer, lastEventId(req), condition)
      // The listener's timeout is for connections that wait for a request. A point follows every second here.
      req.socket.setTimeout(0)
      res.writeHead(200, {
        ...PAGE_FIELDS,
        'Content-Type': 'text/event-stream',
        'Cache-Control': 'no-store',
        'X-Accel-Buffering': 'no',
        Connection: 'close',
      })
      res.once('close', () => forget(stream))
      streams.add(stream)
      res.write(first)
      source ??= overview.onPoint((point) => {
        try {
          onPoint(point)
        } catch (error) {
          onBug(error)
        }
      })
      if (grants !== undefined) sendGrants()
      else askForGrants()
      return true
    },
    end(session) {
      for (const stream of [...streams]) {
        if (session === undefined || stream.viewer.session === session) close(stream)
      }
    },
  }
}

/** Sessions are compared, too, so nobody ends the stream of another session. */
function isSameView(a: Viewer, b: Viewer): boolean {
  return a.view !== undefined && a.view === b.view && a.session === b.session
}

/** The id of the last event that the client has; 0 if it names none. */
function lastEventId({ headersDistinct }: IncomingMessage): number {
  const [id = ''] = headersDistinct['last-event-id'] ?? []
  return /^\d{1,15}$/.test(id) ? Number(id) : 0
}

function eventText<Name extends keyof PageEvents>(name: Name, data: PageEvents[Name], id?: number): string {
  return eventOf(name, JSON.stringify(data), id)
}

/** JSON on one line is one `data` field. */
function eventOf(name: keyof PageEvents, data: string, id?: number): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${name}\ndata: ${data}\n\n`
}

/** The rows at one time, as JSON by id. It never changes, so several streams share one. */
interface GrantSnapshot {
  /** Null: the shared store did not say. The rows are then those before. */
  readonly total: number | null
  readonly rows: ReadonlyMap<string, string>
}

function snapshotOf(grants: GrantRows | 'unavailable', before: GrantSnapshot | undefined): GrantSnapshot {
  if (grants === 'unavailable') return { total: null, rows: before?.rows ?? new Map() }
  const rows = grants.rows.map((row) => [row.id, JSON.stringify(row)] as const)
  return { total: grants.total, rows: new Map(rows) }
}

/** The data of a `grants` event (JSON) for a stream that has `before`; undefined if nothing has changed. */
function grantChanges(before: GrantSnapshot | undefined, now: GrantSnapshot): string | undefined {
  if (before === now) return undefined
  const known: ReadonlyMap<string, string> = before?.rows ?? new Map()
  const changed = [...now.rows].flatMap(([id, row]) => (known.get(id) === row ? [] : [row]))
  const removed = [...known.keys()].filter((id) => !now.rows.has(id))
  if (before?.total === now.total && changed.length + removed.length === 0) return undefined
  const rest: Omit<PageEvents['grants'], 'changed'> = { total: now.total, removed }
  // The rows are JSON already.
  return `{"changed":[${changed.join()}],${JSON.stringify(rest).slice(1)}`
}
