import { prefix48 } from '../http/ip.ts'
import type { Clock } from '../system/clock.ts'

/** The length of a span (ms). A wrong password is forgotten after one to two spans. */
const SPAN = 300_000

/** The most addresses of a span. One more begins the next span early, so the latest addresses are kept. */
const MOST_ADDRESSES = 5_000

/** The most addresses in a summary. */
const MOST_TOLD = 10

/** More wrong passwords than this are guesses, not typing errors. The alarm PosternPasswordGuessing has the same threshold. */
export const GUESSING = 20

/** The wrong passwords of the last five to ten minutes. */
export interface GuessSummary {
  readonly wrong: number
  /** The number of addresses that they came from. An IPv6 /48 counts as one. */
  readonly addresses: number
  /** The addresses with the most wrong passwords, ten at most. */
  readonly from: readonly string[]
}

/** The wrong passwords of a span of time, by address. */
class Span {
  sum = 0
  readonly byAddress = new Map<string, number>()

  of(address: string): number {
    return this.byAddress.get(address) ?? 0
  }
}

/** The wrong passwords of the last five to ten minutes, by address. They are kept in two spans of time, so nothing expires one by one. */
export class WrongPasswords {
  readonly #clock: Clock
  #before = new Span()
  #now = new Span()
  #endsAt: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#endsAt = clock.monotonic() + SPAN
  }

  get sum(): number {
    this.#advance()
    return this.#before.sum + this.#now.sum
  }

  /** @param client its key */
  add(client: string): void {
    this.#advance()
    const address = prefix48(client)
    const { byAddress } = this.#now
    if (byAddress.size >= MOST_ADDRESSES && !byAddress.has(address)) this.#next()
    this.#now.byAddress.set(address, this.#now.of(address) + 1)
    this.#now.sum += 1
  }

  /** @param address `prefix48` of the key of a client */
  of(address: string): number {
    this.#advance()
    return this.#now.of(address) + this.#before.of(address)
  }

  all(): GuessSummary {
    const wrong = this.sum
    const addresses = new Set([...this.#before.byAddress.keys(), ...this.#now.byAddress.keys()])
    const most = [...addresses].sort((a, b) => this.of(b) - this.of(a))
    return { wrong, addresses: most.length, from: most.slice(0, MOST_TOLD) }
  }

  #advance(): void {
    const late = this.#clock.monotonic() - this.#endsAt
    if (late < 0) return
    this.#next()
    if (late >= SPAN) this.#before = new Span()
  }

  #next(): void {
    this.#before = this.#now
    this.#now = new Span()
    this.#endsAt = this.#clock.monotonic() + SPAN
  }
}
