import type { Scheme, Session } from './scheme.ts'
import type { SessionNames } from './session-cookies.ts'

interface InUse {
  readonly session: Session
  readonly password: string
  /** A response to a client refused the session before it ever worked: the password may be wrong, or that path is closed to the account. */
  doubted: boolean
}

/** The session that requests use now, and those that are still to be ended at the device. */
export class PresentSession {
  readonly #scheme: Scheme
  #inUse: InUse | undefined
  #names: SessionNames
  /** The session that a response to a client refused, while a login runs. See `retireChallenged`. */
  #challenged: InUse | undefined
  /** Sessions that are no longer used, and not yet ended at the device: many devices allow only four at once. */
  #retired: Session[] = []

  constructor(scheme: Scheme) {
    this.#scheme = scheme
    this.#names = scheme.names
  }

  get inUse(): InUse | undefined {
    return this.#inUse
  }

  /** The names of the session, or of the last one while there is none: a client's own session must not take its place. */
  get names(): SessionNames {
    return this.#names
  }

  use(session: Session, password: string): void {
    this.retire()
    this.#inUse = { session, password, doubted: false }
    this.#names = session.names ?? this.#scheme.names
  }

  retire(): void {
    if (this.#inUse !== undefined) this.discard(this.#inUse.session)
    this.#inUse = undefined
  }

  /** Takes a session that is not used, to be ended by `endRetired`. */
  discard(session: Session): void {
    this.#retired.push(session)
  }

  /**
   * A response to a client refused the session. It is used again if the next login brings none: the path may be closed to every account,
   * and the device may answer a further login with 429.
   */
  retireChallenged(): void {
    const session = this.#inUse?.session
    // A session that ends at the device before the login cannot be used again.
    const mayLive = session?.end === undefined && session?.changed !== true && session?.expired !== true
    this.#challenged = mayLive ? this.#inUse : undefined
    this.retire()
  }

  /** Called after a login. If it brought no session, the refused one is used again. */
  resumeChallenged(): void {
    this.#inUse ??= this.#challenged
    this.#challenged = undefined
  }

  /** The session that a response to a client refused is not used again. */
  forgetChallenged(): void {
    this.#challenged = undefined
  }

  /** Ends the discarded sessions at the device. Resolves when all have ended. */
  async endRetired(): Promise<void> {
    await Promise.all(this.#retired.splice(0).map((session) => session.end?.()))
  }
}
