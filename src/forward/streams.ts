import type { Connections } from '../device/connections.ts'
import type { DeviceHead } from '../device/request.ts'
import { fieldValues } from '../http/fields.ts'
import type { BoundedQueue, Leave } from '../system/bounded-queue.ts'
import type { Clock, Timer } from '../system/clock.ts'

/** The streams that are open at a device, also those of a service that a reload has replaced. */
export interface OpenStreams {
  all: number
  readonly clients: Map<string, number>
}

/** The places that a stream gives back. */
interface StreamPlaces {
  readonly queue: Pick<BoundedQueue, 'waiting'>
  /** The device takes one request at a time, so it has no room for another beside a stream. */
  readonly takesOne: boolean
}

export type Streams = ReturnType<typeof createStreams>

/** Why a stream is refused: there are too many. */
export const TOO_MANY_STREAMS: Error = new Error('too many streams')

/** How many looks there are in `after` (ms) while requests wait. */
const LOOKS = 4

/**
 * The responses that have become streams, such as video or events. They go on for hours, so they keep no place at the device. They have a
 * bound of their own, as tunnels have.
 *
 * @param after how long (ms) a response goes on before it is a stream
 * @param open counts those of the device
 */
export function createStreams(
  clock: Pick<Clock, 'every'>,
  { maxStreams: most }: { readonly maxStreams: number },
  after: number,
  places: StreamPlaces,
  connections: Connections,
  open: OpenStreams,
) {
  const mostOfOne = Math.max(1, Math.floor(most / 4))
  const { clients } = open
  let timer: Timer | undefined

  const tellAll = (): void => connections.each((handler) => handler.othersWait?.())

  function look(): void {
    tellAll()
    if (places.queue.waiting > 0) return
    timer?.cancel()
    timer = undefined
  }

  return {
    /** Whether a response may be a stream now. */
    get allowed(): boolean {
      return !places.takesOne
    },
    /**
     * Admits a stream, and returns the function that gives its place back. Undefined if there are too many, or a quarter of all is this
     * client's.
     */
    tryEnter(client: string): Leave | undefined {
      const own = clients.get(client) ?? 0
      if (open.all >= most || own >= mostOfOne) return undefined
      clients.set(client, own + 1)
      open.all += 1
      return () => {
        open.all -= 1
        const left = (clients.get(client) ?? 0) - 1
        if (left > 0) clients.set(client, left)
        else clients.delete(client)
      }
    },
    /** A request waits for a place. Responses that have become streams give theirs back, now and as long as requests wait. */
    onWait(): void {
      if (places.takesOne) return
      tellAll()
      timer ??= clock.every(Math.max(1, after / LOOKS), look)
    },
  }
}

/**
 * Where a response ends. `counted`: after its length. `open-ended`: it has none, and ends with its last chunk or its connection. `stream`:
 * its type says that it goes on until one side ends it.
 */
export type Extent = 'counted' | 'open-ended' | 'stream'

export function extentOf({ framing, isStream }: Pick<DeviceHead, 'framing' | 'isStream'>): Extent {
  if (isStream === true && framing !== 0) return 'stream'
  return framing === 'chunked' || framing === 'end' ? 'open-ended' : 'counted'
}

/**
 * When a response without a length becomes a stream (`Exchange.streamAt`): `after` ms after its head, which came at `now`. 0 for a download,
 * which never becomes one. A response whose type says that it is a stream is one from its head on: do not ask for it.
 */
export function streamStart(head: Pick<DeviceHead, 'fields'>, now: number, after: number): number {
  return isDownload(head) ? 0 : now + after
}

/** Whether a response is a file by its fields (RFC 6266 §4.2, RFC 2046 §4.5.1). Firmware sends its backups without a length. */
function isDownload({ fields }: Pick<DeviceHead, 'fields'>): boolean {
  const is = (name: string, pattern: RegExp): boolean => pattern.test(fieldValues(fields, name)[0] ?? '')
  return (
    is('content-disposition', /^attachment(?:[\s;]|$)/i) ||
    is('content-type', /^application\/octet-stream(?:[\s;]|$)/i)
  )
}
