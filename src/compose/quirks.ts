import type { Malformed, Quirk } from '../device/connections.ts'
import type { QuirkCondition } from '../overview/model.ts'
import type { Logger } from '../record/log.ts'
import type { Clock } from '../system/clock.ts'

const LINES: Readonly<Record<Quirk, string>> = {
  stray: 'the device sends bytes after its response; late ones may reach the next client: see upstream.reuse',
  tolerant: 'the device sends malformed HTTP: from now on parsed tolerantly, with one connection per request',
  delayed:
    'a kept connection costs 40 ms a request (delayed acknowledgements): from now on one connection per request; set upstream.reuse: never',
}

/** The quirks that the responses of one service have shown. Each is written to the log when it is found. */
export class Quirks {
  readonly #clock: Clock
  readonly #log: Pick<Logger, 'warn'>
  readonly #found: { readonly kind: Quirk; readonly at: number; readonly malformed: Malformed | null }[] = []

  constructor(clock: Clock, log: Pick<Logger, 'warn'>) {
    this.#clock = clock
    this.#log = log
  }

  /** Call this once for each quirk. */
  found(kind: Quirk, malformed?: Malformed): void {
    this.#found.push({ kind, at: this.#clock.monotonic(), malformed: malformed ?? null })
    this.#log.warn({ ...malformed }, LINES[kind])
  }

  /** The quirks in the order in which they were found. `since`: ms since the Unix epoch. */
  all(): readonly QuirkCondition[] {
    const ahead = this.#clock.wall() - this.#clock.monotonic()
    return this.#found.map(({ kind, at, malformed }) => ({ kind, since: Math.round(ahead + at), malformed }))
  }
}
