import type { Clock } from '../system/clock.ts'
import { isExpired, matchesPath, type SessionCookie } from './session-cookies.ts'

/** The cookies that one login set. Responses update their expiry. */
export class KeptCookies {
  readonly #clock: Clock
  readonly names: ReadonlySet<string>
  #kept: readonly SessionCookie[]
  #replaced = false

  constructor(cookies: readonly SessionCookie[], clock: Clock) {
    this.#clock = clock
    this.#kept = cookies
    this.names = new Set(cookies.map(({ name }) => name))
  }

  /** None has expired, and no response has deleted one. */
  get complete(): boolean {
    return this.#kept.length >= this.names.size && !this.#kept.some((each) => this.isOver(each))
  }

  /** A response to a client has set another value. */
  get replaced(): boolean {
    return this.#replaced
  }

  valueOf(wanted: string): string | undefined {
    return this.#kept.findLast(({ name }) => name === wanted)?.value
  }

  /** Those that a request for this target carries. */
  for(target: string): readonly SessionCookie[] {
    return this.#kept.filter((each) => matchesPath(each, target) && !this.isOver(each))
  }

  /** Whether a response sets a cookie only to delete it. */
  isOver(cookie: SessionCookie): boolean {
    return cookie.value === '' || isExpired(cookie, this.#clock.monotonic())
  }

  /** @param own the response is to a request of the sidecar itself: only then another value is taken */
  take(cookie: SessionCookie, target: string, own: boolean): void {
    const same = this.#kept.filter(({ name }) => name === cookie.name)
    const sent = same.filter((each) => matchesPath(each, target))
    // The request did not carry the cookie, so its response says nothing about it.
    if (sent.length === 0) return
    const known = sent.find(({ value }) => value === cookie.value)
    const others = (): readonly SessionCookie[] => this.#kept.filter((each) => !same.includes(each))
    if (this.isOver(cookie)) {
      if (sent.some(({ path }) => path === cookie.path)) this.#kept = others()
    } else if (known !== undefined) {
      this.#kept = this.#kept.map((each) => (each === known ? { ...each, until: cookie.until } : each))
    } else if (own) this.#kept = [...others(), cookie]
    else this.#replaced = true
  }
}
