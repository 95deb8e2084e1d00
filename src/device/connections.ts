import { pathOf } from '../http/request-path.ts'
import type { Deviation } from '../http1/deviation.ts'
import { HeadMemory } from '../http1/head-memory.ts'
import type { ResponseRules } from '../http1/response-reader.ts'
import type { Clock } from '../system/clock.ts'
import { NAMES, type Names } from '../system/lookup.ts'
import { type ConnectionEvents, type ConnectionSettings, DeviceConnection } from './device-connection.ts'
import {
  createIdleMemory,
  type DelayedAcks,
  type IdleMemory,
  SHORTEST_DELAYED,
  watchDelayedAcks,
} from './kept-connections.ts'
import { createSocketOpener } from './open-socket.ts'
import type { ResponseHandler } from './request.ts'
import type { UpstreamDeadlines, UpstreamTarget } from './target.ts'
import { AMPLE_CAPACITY, type Capacity, Turns } from './turns.ts'

/** The part of a device connection that its borrower uses. */
export type Connection = Pick<DeviceConnection, 'uploaded' | 'send' | 'pause' | 'resume' | 'abort'>

/** A borrowed connection, and the way to give it back. */
export interface Loan extends Pick<PooledConnection, 'release'> {
  readonly connection: Connection
}

export type Connections = Readonly<ReturnType<typeof createConnections>>

/**
 * What the pool has found out about the device. `stray`: it sends bytes after its response. `tolerant`: it sends malformed HTTP. `delayed`:
 * it is faster with a new connection for each request (see `DelayedAcks`).
 */
export type Quirk = 'stray' | 'tolerant' | 'delayed'

/** A deviation from HTTP in a response, with the request that it answers. */
export interface Malformed extends Deviation {
  /** Method and path. The query is cut off, because it may hold a secret. */
  readonly request: string
}

export interface ConnectionsOptions {
  /** Default: the device takes any number of connections. */
  readonly capacity?: Capacity
  /** Called once for each quirk. */
  readonly onQuirk?: (quirk: Quirk, malformed?: Malformed) => void
  /** Resolves the host name of the device. Default: the resolver that the process shares. */
  readonly names?: Names
  /** Ends all requests: the commands of an operator do not wait for a device as long as a service does. */
  readonly signal?: AbortSignal
}

/** How long (ms) an idle connection is kept if the device announces no time. Few devices close one sooner. */
const KEPT_FOR = 4_000
/**
 * An idle connection is closed this long (ms) before the `timeout` that the device announces: clocks differ, and bytes may be in flight.
 */
const MARGIN = 2_000
/** The longest time (ms) that an idle connection is kept, whatever the device announces. */
const LONGEST_KEPT = 600_000

/** A reported path is cut to this length (characters). */
const LONGEST_PATH = 256

/** How many response heads of the device are remembered. A head with a `Date` repeats within one second only. */
const HEADS_KNOWN = 64

interface Pool extends ConnectionSettings {
  rules: ResponseRules
  reuses: boolean
  readonly acks: DelayedAcks
  readonly idle: PooledConnection[]
  readonly all: Set<PooledConnection>
  readonly memory: IdleMemory
  onEmpty: () => void
  /** No connection is kept any more. */
  retired: boolean
}

const ignore = (): void => {}

/**
 * A pool of keep-alive connections to the device. It lends the most recently used connection first, so the connections that only a burst
 * needed become idle and are closed. The queue of `forward/` bounds how many are in use.
 *
 * With `reuse: never` a connection carries one request. Then, or if the device can take no more connections, a new one opens only after the
 * end, on both sides, of one that is closing.
 */
export function createConnections(
  target: UpstreamTarget,
  deadlines: UpstreamDeadlines,
  clock: Clock,
  { capacity = AMPLE_CAPACITY, onQuirk = ignore, names = NAMES, signal }: ConnectionsOptions = {},
) {
  const { version = '1.1', reuse, parser } = target
  const inOrder = (): boolean => reuse === 'never' || capacity.isFull()
  const memory = createIdleMemory(clock)
  let strayed = false
  const pool: Pool = {
    clock,
    deadlines,
    reuses: reuse === 'shared',
    version,
    capacity,
    memory,
    turns: new Turns(clock, inOrder, deadlines.connect, memory.startAnew),
    openSocket: createSocketOpener(target, names),
    host: new URL(target.origin).host,
    rules: parser,
    acks: watchDelayedAcks(() => {
      pool.reuses = false
      onQuirk('delayed')
    }),
    known: new HeadMemory(HEADS_KNOWN),
    onStray() {
      if (!strayed) onQuirk('stray')
      strayed = true
    },
    onMalformed(deviation, { method, target }) {
      // Another connection may have found it first.
      if (pool.rules !== 'auto') return
      pool.rules = 'tolerant'
      connections.tolerant = true
      onQuirk('tolerant', { ...deviation, request: `${method} ${pathOf(target).slice(0, LONGEST_PATH)}` })
    },
    idle: [],
    all: new Set(),
    onEmpty: ignore,
    retired: false,
  }
  const destroyAll = (): void => {
    for (const { connection } of pool.all) connection.destroy(new Error('the sidecar is stopping'))
  }
  const connections = {
    clock,
    /** No request is sent any more. */
    get ended(): boolean {
      return signal?.aborted === true
    },
    /** Responses are read by the tolerant rules. */
    tolerant: parser === 'tolerant',
    /** The HTTP version of requests. 1.0 has neither chunks nor upgrades. */
    version,
    /**
     * Lends an idle connection, or opens one.
     *
     * @param repeatable the caller sends the request again if the device closed the connection while it was idle
     * @param upgrade the connection may become a tunnel, so it is a new one. If connections open one after the other, an idle one closes first
     * @param now ms, monotonic
     */
    borrow(repeatable: boolean, upgrade = false, now = clock.monotonic()): Loan {
      const idle = upgrade && !inOrder() ? undefined : pool.idle.pop()
      if (upgrade) idle?.connection.close()
      else if (idle?.lend(repeatable, now)) return idle
      return new PooledConnection(pool, repeatable, upgrade, now)
    },
    /** Calls `tell` with the handler of each request at the device. */
    each(tell: (handler: ResponseHandler) => void): void {
      for (const { connection } of pool.all) if (connection.handler !== undefined) tell(connection.handler)
    },
    /** Closes the connections that no request has borrowed, now, and each of the others when its request gives it back. */
    retire(): void {
      pool.retired = true
      connections.closeIdle()
    },
    /** How many connections that hold a place are at the device, closing ones included. */
    get present(): number {
      return pool.turns.present
    },
    /** Closes the connections that no request has borrowed. */
    closeIdle(): void {
      for (const { connection } of [...pool.idle]) connection.close()
    },
    /** Whether no connection is open. */
    get unused(): boolean {
      return pool.all.size === 0
    },
    /** Closes all connections and fails their requests. Resolves when all have closed. */
    close(): Promise<void> {
      return new Promise((resolve) => {
        pool.onEmpty = resolve
        destroyAll()
        if (pool.all.size === 0) resolve()
      })
    },
  }
  signal?.addEventListener('abort', destroyAll)
  return connections
}

/**
 * - `new`: lent, before its first complete response
 * - `spare`: given back without a response. It may still be opening, for the next request
 * - `lent`: again, after a complete response
 * - `kept`: given back after a complete response
 */
type LoanState = 'new' | 'spare' | 'lent' | 'kept'

/** A connection that requests borrow, one at a time. The pool forgets it when it has closed. */
class PooledConnection implements ConnectionEvents {
  readonly connection: DeviceConnection
  readonly #pool: Pool
  #state: LoanState = 'new'
  /** When it was last lent or given back. */
  #since: number
  /** When its idle time ends (ms). Its timer may be late after a stall of this process, so `lend` compares the time, too. */
  #keptUntil = Number.POSITIVE_INFINITY
  /** How long the connection had been idle when it was last lent (ms). */
  #idleFor = 0

  constructor(pool: Pool, repeatable: boolean, upgrade: boolean, now: number) {
    this.#pool = pool
    this.#since = now
    this.connection = new DeviceConnection(pool, this, repeatable, upgrade)
    pool.all.add(this)
  }

  /** Lends the connection. Returns false if the device may have closed it; the connection is then closed here too. */
  lend(repeatable: boolean, now: number): boolean {
    const { memory, rules, deadlines } = this.#pool
    const { connection } = this
    this.#state = this.#state === 'spare' ? 'new' : 'lent'
    this.#idleFor = now - this.#since
    this.#since = now
    connection.wait(deadlines.response, now)
    if (connection.state === 'opening') return true
    const isTrusted = this.#idleFor < memory.safe || memory.trusts(this.#idleFor, repeatable)
    if (isTrusted && now < this.#keptUntil && connection.state === 'idle' && rules !== 'tolerant') return true
    connection.close()
    return false
  }

  /**
   * Gives the connection back. A connection that is still opening is kept too: otherwise each client that leaves early would
   * cost the device a connection.
   *
   * @param responded the connection carried a complete response
   */
  release(responded: boolean): void {
    const { memory, clock, acks, turns, all, idle, retired } = this.#pool
    const { load } = this.#pool.capacity
    const { connection } = this
    // A tunnel ends later than it began.
    const now = responded && connection.state !== 'switched' ? connection.heardAt : clock.monotonic()
    const isFirst = this.#state === 'new'
    let delayed = false
    if (responded) {
      const took = now - this.#since
      delayed =
        (acks.suspected || took >= SHORTEST_DELAYED) &&
        acks.carried(took, !isFirst, all.size - idle.length, now)
      turns.worked = now
      if (isFirst) connection.accepted(all.size === 1)
      else if (this.#idleFor > memory.safe) memory.carried(this.#idleFor)
    }
    this.#state = isFirst && !responded ? 'spare' : 'kept'
    this.#since = now
    const { keptFor } = connection
    const time = keptFor === undefined ? KEPT_FOR : Math.min(keptFor - MARGIN, LONGEST_KEPT)
    const isKept =
      !retired &&
      responded &&
      connection.state === 'idle' &&
      !delayed &&
      load.inside <= load.places &&
      time > 0
    // At the front, because `pop` takes from the end, and open connections are better.
    if (connection.state === 'opening' && !retired) idle.unshift(this)
    else if (isKept) idle.push(this)
    else connection.close()
    this.#keptUntil = now + time
    connection.wait(time, now)
  }

  /**
   * The device closed the connection while it was idle, or when its next request arrived. The idle time is remembered only if the
   * connection had carried a complete response.
   */
  onClosedByDevice(heard: boolean): void {
    if (!heard || this.#state === 'kept') this.onTimedOut()
    if (this.#state === 'new' && !heard) this.#pool.capacity.reset()
  }

  /** The device closed the connection because it was idle for too long. Remembers for how long. */
  onTimedOut(): void {
    const { memory, clock } = this.#pool
    if (this.#state === 'kept') memory.closed(clock.monotonic() - this.#since)
    else if (this.#state === 'lent') memory.closed(this.#idleFor)
  }

  onClosed(): void {
    const { idle, all, onEmpty } = this.#pool
    const index = idle.indexOf(this)
    if (index >= 0) idle.splice(index, 1)
    all.delete(this)
    if (all.size === 0) onEmpty()
  }
}
