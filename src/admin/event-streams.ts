import type { IncomingMessage, ServerResponse } from 'node:http'
import type { PageEvents, Point, TimelineEntry } from '../overview/model.ts'
import type { GrantRows, Overview } from '../overview/overview.ts'
import type { Clock } from '../system/clock.ts'
import { PAGE_FIELDS } from './admin-response.ts'
import { streamBegan, streamEnds } from './admin-wire.ts'

/** The viewer of one stream. */
interface StreamViewer {
  /** The session with which the stream ends; undefined if no login is needed. */
  readonly session: object | undefined
  /** A random id that a page sends with all its streams; undefined if the client sends none. */
  readonly view: string | undefined
  readonly mayRevoke: boolean
  /** Called once a second. The stream ends when it returns false. */
  readonly mayView: () => boolean
}

const MOST_STREAMS = 16
/** A client with more unread bytes than this is disconnected. */
const MOST_UNREAD = 1 << 20
/** The least time between two reads of the grants (ms): a little less than two seconds, so that every second point has one. */
const GRANTS_EVERY = 1_900
/** How long a client waits before it connects again (ms). */
const RETRY = 2_000

/**
 * Sends the same events to all viewers: each event is computed and turned into JSON once. Without a viewer nothing runs. A viewer who does
 * not read is disconnected.
 */
export function createEventStreams(overview: Overview, clock: Clock, onBug: (error: unknown) => void) {
  const streams = new Map<ServerResponse, StreamViewer>()
  let source: { close(): void } | undefined
  /** The condition that all viewers have, as JSON; empty if a viewer may have another one. */
  let condition = ''
  let known: readonly TimelineEntry[] = []
  let grants: GrantSnapshot | undefined
  let grantsAt = Number.NEGATIVE_INFINITY
  let asking = false

  function onPoint(point: Point): void {
    for (const [stream, viewer] of streams) if (!viewer.mayView()) close(stream)
    const present = JSON.stringify(overview.condition())
    const changed = present === condition ? '' : eventOf('condition', present)
    condition = present
    sendAll(eventOf('point', JSON.stringify(point), point.time) + changed + newsOfTimeline())
    if (clock.monotonic() - grantsAt >= GRANTS_EVERY) askForGrants()
  }

  function sendAll(text: string): void {
    for (const stream of streams.keys()) write(stream, text)
  }

  /** The event with the entries that are new or have changed; empty without any. A changed entry is a new object. */
  function newsOfTimeline(): string {
    const before = new Set(known)
    known = overview.timeline(0)
    const news = known.filter((entry) => !before.has(entry))
    return news.length === 0 ? '' : eventOf('timeline', JSON.stringify(news))
  }

  async function askForGrants(): Promise<void> {
    if (asking) return
    asking = true
    grantsAt = clock.monotonic()
    try {
      const now = snapshotOf(await overview.grants(), grants)
      if (streams.size === 0) return
      sendAll(grantsEvent(grants, now))
      grants = now
    } catch (error) {
      onBug(error)
    } finally {
      asking = false
    }
  }

  function write(stream: ServerResponse, text: string): void {
    if (stream.writableLength > MOST_UNREAD) drop(stream)
    else stream.write(text)
  }

  function drop(stream: ServerResponse): void {
    forget(stream)
    stream.destroy()
  }

  function close(stream: ServerResponse): void {
    forget(stream)
    if (stream.socket !== null) streamEnds(stream.socket)
    stream.end()
  }

  function forget(stream: ServerResponse): void {
    if (!streams.delete(stream) || streams.size > 0) return
    source?.close()
    source = undefined
    grants = undefined
    grantsAt = Number.NEGATIVE_INFINITY
  }

  function start(viewer: StreamViewer, after: number): string {
    const now = clock.wall()
    // Ids are times. An id in the future comes from before the clock was set back.
    const points = overview.points(after > now ? 0 : after)
    const timeline = overview.timeline(0)
    if (streams.size === 0) known = timeline
    const present = overview.condition()
    condition = streams.size === 0 ? JSON.stringify(present) : ''
    const start: PageEvents['start'] = {
      about: overview.about,
      now,
      mayRevoke: viewer.mayRevoke,
      signedIn: viewer.session !== undefined,
      points,
      timeline,
      condition: present,
    }
    return `retry: ${RETRY}\n${eventOf('start', JSON.stringify(start), points.at(-1)?.time)}`
  }

  return {
    /**
     * Answers with a stream; returns false if `MOST_STREAMS` are open already. A new stream of a view replaces the previous one, which may
     * be on a dead connection that was never closed: the phone has changed its network.
     */
    open(req: IncomingMessage, res: ServerResponse, viewer: StreamViewer): boolean {
      for (const [stream, other] of [...streams]) if (isSameView(other, viewer)) drop(stream)
      if (streams.size >= MOST_STREAMS) return false
      const first = start(viewer, lastEventId(req))
      streamBegan(req.socket)
      res.writeHead(200, {
        ...PAGE_FIELDS,
        'Content-Type': 'text/event-stream',
        'Cache-Control': 'no-store',
        'X-Accel-Buffering': 'no',
        Connection: 'close',
      })
      res.once('close', () => forget(res))
      streams.set(res, viewer)
      res.write(first)
      source ??= overview.onPoint((point) => {
        try {
          onPoint(point)
        } catch (error) {
          onBug(error)
        }
      })
      if (grants === undefined) askForGrants()
      else write(res, grantsEvent(undefined, grants))
      return true
    },
    /** The bytes that viewers have not read. */
    unread: (): number => streams.keys().reduce((sum, { writableLength }) => sum + writableLength, 0),
    /** Ends the streams of a session; without a session, all streams. */
    end(session?: object): void {
      for (const [stream, viewer] of [...streams])
        if (session === undefined || viewer.session === session) close(stream)
    },
  }
}

/** Whether two streams belong to one view. Sessions are compared, too: a viewer cannot end the stream of another session by its id. */
function isSameView(a: StreamViewer, b: StreamViewer): boolean {
  return a.view !== undefined && a.view === b.view && a.session === b.session
}

/** The id of the last event that the client has (`Last-Event-ID`); 0 without one. */
function lastEventId({ headersDistinct }: IncomingMessage): number {
  const [id = ''] = headersDistinct['last-event-id'] ?? []
  return /^\d{1,15}$/.test(id) ? Number(id) : 0
}

/** An event in the format of server-sent events. `data` is JSON on one line, so it is one `data` field. */
function eventOf(name: keyof PageEvents, data: string, id?: number): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${name}\ndata: ${data}\n\n`
}

/** The grant rows at one time, as JSON by id. It never changes, so streams can share it. */
interface GrantSnapshot {
  /** Null if the shared store did not answer. The rows are then the previous ones. */
  readonly total: number | null
  readonly rows: ReadonlyMap<string, string>
}

function snapshotOf(grants: GrantRows | 'unavailable', before: GrantSnapshot | undefined): GrantSnapshot {
  if (grants === 'unavailable') return { total: null, rows: before?.rows ?? new Map() }
  const rows = grants.rows.map((row) => [row.id, JSON.stringify(row)] as const)
  return { total: grants.total, rows: new Map(rows) }
}

/** The `grants` event for a viewer who has `before`; empty if nothing has changed. */
function grantsEvent(before: GrantSnapshot | undefined, now: GrantSnapshot): string {
  const known: ReadonlyMap<string, string> = before?.rows ?? new Map()
  const changed = [...now.rows].flatMap(([id, row]) => (known.get(id) === row ? [] : [row]))
  const removed = [...known.keys()].filter((id) => !now.rows.has(id))
  if (before?.total === now.total && changed.length + removed.length === 0) return ''
  const rest: Omit<PageEvents['grants'], 'changed'> = { total: now.total, removed }
  // Joined as text, because the rows are JSON already.
  return eventOf('grants', `{"changed":[${changed.join()}],${JSON.stringify(rest).slice(1)}`)
}
