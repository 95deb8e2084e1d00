import type { Socket } from 'node:net'
import { Activity } from '../system/activity.ts'
import { afterTurn, type Clock, type Timer } from '../system/clock.ts'
import { IdleList, type Idling } from '../system/idle-list.ts'

/** The bounds on a lingering connection: its total time and its silence (ms), and the discarded bytes. */
interface Bounds {
  readonly time: number
  readonly silence: number
  readonly bytes: number
}

export interface LingeringBounds {
  readonly usual: Bounds
  /** For all connections while the sidecar stops, and for connections beyond `mostAtOnce`. */
  readonly brief: Bounds
  readonly mostAtOnce: number
}

/** The usual times are those of nginx (`lingering_time`, `lingering_timeout`). To discard 1 GiB costs a core 0.7 s, over TLS 1.2 s. */
const BOUNDS: LingeringBounds = {
  usual: { time: 30_000, silence: 5_000, bytes: 1024 ** 3 },
  brief: { time: 1_000, silence: 1_000, bytes: 256 * 1024 },
  mostAtOnce: 256,
}

/**
 * How many lingering connections are read in one turn of the event loop, at most 128 KiB from each. Without this bound, 64 clients that
 * send as fast as they can would delay all other clients by 160 ms.
 */
const READ_PER_TURN = 8

export type Lingering = ReturnType<typeof createLingering>

/** Closes connections whose client may still be sending, at a bounded cost. */
export function createLingering(
  clock: Pick<Clock, 'monotonic' | 'after'>,
  { usual, brief, mostAtOnce }: LingeringBounds = BOUNDS,
) {
  /** One function for each lingering connection. It sets the `brief` bounds. */
  const lingering = new Set<() => void>()
  /** Paused connections that wait for a later turn of the event loop. */
  const waiting: Socket[] = []
  let draining = false
  const silent = {
    usual: new IdleList(clock, usual.silence),
    brief: new IdleList(clock, brief.silence),
  }

  function readSome(): void {
    for (const socket of waiting.splice(0, READ_PER_TURN)) socket.resume()
    if (waiting.length > 0) afterTurn(readSome)
  }

  function waitForTurn(socket: Socket): void {
    socket.pause()
    if (waiting.push(socket) === 1) afterTurn(readSome)
  }

  /** Discards the input of a connection until it ends or a bound is reached. */
  function discard(socket: Socket, wire: Socket): void {
    let left = Number.POSITIVE_INFINITY
    let timer: Timer | undefined
    const activity = new Activity(socket, clock.monotonic())
    const noteActivity = (): void => activity.note(clock.monotonic())
    const close = (): void => {
      if (socket.writableFinished) socket.destroy()
      else endBroken(socket, wire)
    }
    const idling: Idling = { lastActive: (now) => activity.look(now), onIdle: close }
    const unwatch = (): void => {
      silent.usual.leave(idling)
      silent.brief.leave(idling)
    }
    const bound = (kind: 'usual' | 'brief', { time, bytes }: Bounds): void => {
      left = Math.min(left, bytes)
      unwatch()
      noteActivity()
      silent[kind].join(idling)
      timer?.cancel()
      timer = clock.after(time, close)
    }
    const tighten = (): void => bound('brief', brief)
    if (draining || lingering.size >= mostAtOnce) tighten()
    else bound('usual', usual)
    lingering.add(tighten)
    socket.removeAllListeners('data')
    socket.on('data', (chunk: Buffer) => {
      noteActivity()
      left -= chunk.length
      if (left < 0) close()
      else waitForTurn(socket)
    })
    // The client has closed its sending side, too. Queued bytes are written before the connection closes.
    socket.once('end', () => socket.destroySoon())
    socket.once('finish', noteActivity)
    socket.once('close', () => {
      lingering.delete(tighten)
      unwatch()
      timer?.cancel()
    })
    socket.resume()
  }

  return {
    /**
     * Sends the last bytes and closes the connection in steps (RFC 9112 §9.6): it closes the sidecar's sending side, discards the input of
     * the client within bounds, and then closes the connection. An immediate close would reset the connection, and the client could lose
     * the response. Nothing else reads the connection from here on, so no later byte is read as a request.
     *
     * @param wire the socket below `socket`, if that is a TLS socket
     */
    end(socket: Socket, lastBytes = '', wire = socket): void {
      if (socket.destroyed) return
      if (!socket.writableEnded) socket.end(lastBytes)
      discard(socket, wire)
    },
    /** Call this when the sidecar begins to stop: from now on connections linger only briefly. */
    drain(): void {
      draining = true
      for (const tighten of lingering) tighten()
    },
  }
}

/**
 * Closes a connection so that the client sees it broken: with a reset, unless `wire`, the socket below it, is a Unix socket. A reset also
 * frees the bytes that the kernel has queued. Otherwise the kernel would keep up to megabytes as long as a client reads nothing and stays.
 */
export function endBroken(socket: Socket, wire: Socket): void {
  // A Unix socket has no reset. The TLS socket closes when its wire has closed. To destroy both within a callback of the TLS connection
  // crashes the process (SIGSEGV in Node 26.10).
  if (wire.remoteAddress === undefined) socket.destroy()
  else wire.resetAndDestroy()
}
