import type { IncomingMessage, ServerResponse } from 'node:http'
import type { PageEvents, Point, TimelineEntry } from '../overview/model.ts'
import type { GrantRows, Overview } from '../overview/overview.ts'
import type { Clock } from '../system/clock.ts'
import { streamBegan, streamEnds } from './admin-wire.ts'
import { PAGE_FIELDS } from './answer.ts'

/** Who watches by one stream. */
export interface StreamViewer {
  /** Streams end with it; undefined if no login is needed. */
  readonly session: object | undefined
  /** A random id that a page gives all its streams; undefined if the client sends none. */
  readonly view: string | undefined
  readonly mayRevoke: boolean
  /** Asked once a second. The stream ends when it is false. */
  readonly mayView: () => boolean
}

const MOST_STREAMS = 16
/** A client that leaves more unread (bytes) is dropped. */
const MOST_UNREAD = 1 << 20
/** Time between two looks at the grants (ms); a little less than two seconds, so that every second point has one. */
const GRANTS_EVERY = 1_900
/** How long a client waits before it connects again (ms). */
const RETRY = 2_000

/**
 * Sends the same events to all viewers: they are computed and written as JSON once a second. Without a viewer nothing runs. A viewer who
 * does not read is dropped.
 */
export function createEventStreams(overview: Overview, clock: Clock, onBug: (error: unknown) => void) {
  const streams = new Map<ServerResponse, StreamViewer>()
  let source: { close(): void } | undefined
  /** The condition that all viewers have; empty if one may have another. */
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

  /** The entries that are new or have changed: a changed one is another object. */
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
    // Ids are times. One in the future is of an earlier clock.
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
     * Answers with a stream; false if there are `MOST_STREAMS` already. A new stream of a view replaces the one before, which may be on a
     * connection that broke without a sign: a phone that has changed its network.
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
    /** What the viewers have not read (bytes). */
    unread: (): number => streams.keys().reduce((sum, { writableLength }) => sum + writableLength, 0),
    end(session?: object): void {
      for (const [stream, viewer] of [...streams])
        if (session === undefined || viewer.session === session) close(stream)
    },
  }
}

/** Sessions are compared, too, so nobody ends the stream of another session. */
function isSameView(a: StreamViewer, b: StreamViewer): boolean {
  return a.view !== undefined && a.view === b.view && a.session === b.session
}

/** The id of the last event that the client has; 0 if it names none. */
function lastEventId({ headersDistinct }: IncomingMessage): number {
  const [id = ''] = headersDistinct['last-event-id'] ?? []
  return /^\d{1,15}$/.test(id) ? Number(id) : 0
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

/** The `grants` event for a viewer who has `before`; empty if nothing has changed. */
function grantsEvent(before: GrantSnapshot | undefined, now: GrantSnapshot): string {
  const known: ReadonlyMap<string, string> = before?.rows ?? new Map()
  const changed = [...now.rows].flatMap(([id, row]) => (known.get(id) === row ? [] : [row]))
  const removed = [...known.keys()].filter((id) => !now.rows.has(id))
  if (before?.total === now.total && changed.length + removed.length === 0) return ''
  const rest: Omit<PageEvents['grants'], 'changed'> = { total: now.total, removed }
  // The rows are JSON already.
  return eventOf('grants', `{"changed":[${changed.join()}],${JSON.stringify(rest).slice(1)}`)
}
