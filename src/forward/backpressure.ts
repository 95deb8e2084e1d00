import type { Connection } from '../device/connections.ts'
import type { ClientSide } from '../http/exchange.ts'
import type { Timer } from '../system/clock.ts'
import { type Pace, watchPace } from './pace.ts'

/**
 * Pauses the device while the client has not read its backlog, so that a response does not pile up in memory, and cuts a client that reads
 * too slowly. It is made at the first pause of a response; most responses need none.
 */
export class Backpressure {
  readonly #client: Pick<ClientSide, 'cut'>
  /** Undefined after the end: the connection may then carry another request. */
  #device: Pick<Connection, 'pause' | 'resume'> | undefined
  #paused = false
  #drains = 0
  #watch: Timer | undefined

  constructor(
    client: Pick<ClientSide, 'cut' | 'onDrain'>,
    device: Pick<Connection, 'pause' | 'resume'>,
    pace: Pace,
  ) {
    this.#client = client
    this.#device = device
    client.onDrain(() => this.#drained())
    this.judgeBy(pace)
  }

  pause(): void {
    this.#device?.pause()
    this.#paused = true
  }

  /** From now on the client is judged by this pace. */
  judgeBy(pace: Pace): void {
    this.#watch?.cancel()
    this.#watch = watchPace(
      pace,
      0,
      () => (this.#paused ? this.#drains : undefined),
      () => this.#client.cut(),
    )
  }

  end(): void {
    this.#watch?.cancel()
    this.#device = undefined
  }

  #drained(): void {
    this.#paused = false
    this.#drains += 1
    this.#device?.resume()
  }
}
