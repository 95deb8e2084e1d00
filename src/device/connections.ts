import type { Clock } from '../system/clock.ts'
import { type ConnectionSettings, DeviceConnection, type DeviceRequest } from './device-connection.ts'
import { createDeviceRules } from './device-rules.ts'
import { createIdleMemory, type IdleMemory } from './idle-memory.ts'
import { createSocketOpener } from './open-socket.ts'
import type { ResponseHandler, Transfer } from './response-handler.ts'
import type { UpstreamDeadlines, UpstreamTarget } from './target.ts'

/** A connection to the device, lent to one request at a time. */
export interface Connection extends Transfer {
  /** It was open when it was lent, and nothing has come since: if it now breaks, the device had closed it meanwhile. */
  readonly reused: boolean
  send(request: DeviceRequest, handler: ResponseHandler): void
  /**
   * Gives it back; `answered` when a response came over it, so that it is known to have been alive. One that is still
   * being opened is kept all the same: whoever only comes to leave again costs the device no connection each time.
   */
  release(answered: boolean): void
}

export interface Connections {
  /** `repeatable`: for a request that is sent once more should the device have closed the connection meanwhile. */
  borrow(repeatable: boolean): Connection
  /** The device's responses are read tolerantly, and each request has a connection of its own. */
  readonly tolerant: boolean
  close(): Promise<void>
}

export interface ConnectionsEvents {
  /** See `ConnectionSettings`. */
  readonly onStray?: () => void
  /** Called once, when a device whose responses are read strictly has proved sloppy. */
  readonly onTolerant?: () => void
}

/** Nobody keeps a connection for so short a time (ms) that it must not be used again within it, unless it says so. */
const KEPT_FOR = 4_000
/** The end of the time that a device has named (ms) is left to its clock, and to what is on the way. */
const MARGIN = 2_000
const LONGEST_KEPT = 600_000

interface Pool {
  readonly settings: ConnectionSettings
  readonly idle: PooledConnection[]
  readonly all: Set<PooledConnection>
  readonly memory: IdleMemory
  readonly clock: Clock
  onEmpty: () => void
}

const ignore = (): void => {}

/**
 * Keep-alive connections to the device, the one used last first, so that after a burst the others go idle and close.
 * How many are lent at once is the in-flight guard's affair. With `reuse: never` none is kept that has carried a request.
 */
export function createConnections(
  target: UpstreamTarget,
  deadlines: UpstreamDeadlines,
  clock: Clock,
  { onStray = ignore, onTolerant = ignore }: ConnectionsEvents = {},
): Connections {
  const pool: Pool = {
    settings: {
      opener: createSocketOpener(target),
      host: new URL(target.origin).host,
      deadlines,
      reuse: target.reuse,
      rules: createDeviceRules(target.parser, onTolerant),
      onStray,
    },
    idle: [],
    all: new Set(),
    memory: createIdleMemory(clock),
    clock,
    onEmpty: ignore,
  }
  return {
    get tolerant() {
      return pool.settings.rules.current === 'tolerant'
    },
    borrow(repeatable) {
      const idle = pool.idle.pop()
      if (idle?.lend(repeatable)) return idle
      return new PooledConnection(pool)
    },
    close() {
      return new Promise((resolve) => {
        pool.onEmpty = resolve
        for (const connection of pool.all) connection.destroy(new Error('the sidecar is stopping'))
        if (pool.all.size === 0) resolve()
      })
    },
  }
}

/** A connection of the pool, and what is known of it while it is lent and after. */
class PooledConnection extends DeviceConnection implements Connection {
  readonly #pool: Pool
  #lent = true
  #openWhenLent = false
  /** When it was given back, and how long ago that was when it was lent again. */
  #since = 0
  #idleFor = 0
  #answered = false
  #keptFor = 0
  #idleTimer: NodeJS.Timeout | undefined

  constructor(pool: Pool) {
    super(pool.settings)
    this.#pool = pool
    pool.all.add(this)
  }

  /** False where it had better not be used any more, and has been closed. */
  lend(repeatable: boolean): boolean {
    const { clock, memory, settings } = this.#pool
    this.#idleFor = clock.monotonic() - this.#since
    this.#lent = true
    this.#openWhenLent = !this.opening
    const sloppy = settings.rules.current === 'tolerant'
    const trusted = !this.#openWhenLent || (!sloppy && memory.trusts(this.#idleFor, repeatable))
    if (this.usable && trusted) return true
    this.close()
    return false
  }

  get reused(): boolean {
    return this.#openWhenLent && !this.heard
  }

  release(answered: boolean): void {
    if (answered && this.#answered) this.#pool.memory.carried(this.#idleFor)
    this.#lent = false
    this.#since = this.#pool.clock.monotonic()
    if (this.opening) {
      // Behind all those that are open.
      this.#pool.idle.unshift(this)
      this.#limitIdleness(KEPT_FOR)
    } else if (answered && this.usable) {
      this.#answered = true
      this.#keep(Math.min((this.keptFor ?? KEPT_FOR + MARGIN) - MARGIN, LONGEST_KEPT))
    } else this.close()
  }

  /** @param time ms */
  #keep(time: number): void {
    if (time <= 0) {
      this.close()
      return
    }
    this.#limitIdleness(time)
    this.#pool.idle.push(this)
  }

  /** A timer that is begun for every request costs more than one that looks, when it fires, whether it is time. */
  #limitIdleness(time: number): void {
    if (time !== this.#keptFor) this.#stopTimer()
    this.#keptFor = time
    this.#idleTimer ??= setTimeout(this.#checkIdleness, time).unref()
  }

  readonly #checkIdleness = (): void => {
    this.#idleTimer = undefined
    if (this.#lent) return
    const left = this.#since + this.#keptFor - this.#pool.clock.monotonic()
    if (left <= 0) this.close()
    else this.#idleTimer = setTimeout(this.#checkIdleness, left).unref()
  }

  #stopTimer(): void {
    clearTimeout(this.#idleTimer)
    this.#idleTimer = undefined
  }

  /** Between two requests, or when the second came: what the first was answered with has nothing to do with it. */
  protected override closedByDevice(): void {
    const { memory, clock } = this.#pool
    if (!this.#answered) return
    if (!this.#lent) memory.closed(clock.monotonic() - this.#since)
    else if (this.reused) memory.closed(this.#idleFor)
  }

  protected override closed(): void {
    const { idle, all } = this.#pool
    this.#stopTimer()
    const place = idle.indexOf(this)
    if (place >= 0) idle.splice(place, 1)
    all.delete(this)
    if (all.size === 0) this.#pool.onEmpty()
  }
}
