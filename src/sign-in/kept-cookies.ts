import type { Clock } from '../system/clock.ts'
import { type DeviceCookie, isExpired, matchesPath } from './session-cookies.ts'

/** What a cookie means, by its name. */
interface Meaning {
  /** The cookie is the session, or a part of it. Without the cookie the session is over. */
  isVital(name: string): boolean
  /** Another value of the cookie means another session. */
  tells(name: string): boolean
}

/** The cookies of one session. Some are the session itself, the others are only sent along. Responses update their expiry. */
export class KeptCookies {
  readonly #clock: Clock
  readonly #meaning: Meaning
  #kept: readonly DeviceCookie[]
  #deleted = false
  #replaced = false

  constructor(cookies: readonly DeviceCookie[], meaning: Meaning, clock: Clock) {
    this.#clock = clock
    this.#meaning = meaning
    this.#kept = cookies
  }

  /** A cookie that is the session has expired, or a response has deleted it. */
  get over(): boolean {
    return this.#deleted || this.#kept.some((each) => this.#meaning.isVital(each.name) && this.#isOver(each))
  }

  /** A response to a client has set another session. */
  get replaced(): boolean {
    return this.#replaced
  }

  /** The cookies that a request for this target carries. */
  for(target: string): readonly DeviceCookie[] {
    return this.#kept.filter((each) => matchesPath(each, target) && !this.#isOver(each))
  }

  /** The value of a cookie, whatever its path; undefined if there is none. */
  valueOf(name: string): string | undefined {
    return this.#kept.findLast((each) => each.name === name && !this.#isOver(each))?.value
  }

  /** @param own the response is to a request of the sidecar itself. Only such a response may change the value */
  take(cookie: DeviceCookie, target: string, own: boolean): void {
    const same = this.#kept.filter(({ name }) => name === cookie.name)
    const sent = same.filter((each) => matchesPath(each, target))
    // The request did not carry the cookie, so its response says nothing about it.
    if (sent.length === 0) return
    const others = (): readonly DeviceCookie[] => this.#kept.filter((each) => !same.includes(each))
    const known = sent.find(({ value }) => value === cookie.value)
    if (this.#isOver(cookie)) {
      if (!sent.some(({ path }) => path === cookie.path)) return
      this.#kept = others()
      this.#deleted ||= this.#meaning.isVital(cookie.name)
    } else if (known !== undefined) {
      this.#kept = this.#kept.map((each) => (each === known ? { ...each, until: cookie.until } : each))
    } else if (own) this.#kept = [...others(), cookie]
    else this.#replaced ||= this.#meaning.tells(cookie.name)
  }

  /** An empty value deletes a cookie, too. */
  #isOver(cookie: DeviceCookie): boolean {
    return cookie.value === '' || isExpired(cookie, this.#clock.monotonic())
  }
}
