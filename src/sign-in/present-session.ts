import type { Scheme, Session } from './scheme.ts'
import type { SessionNames } from './session-cookies.ts'

interface InUse {
  readonly session: Session
  readonly password: string
  /** A response to a client refused it before it ever worked: the password may be wrong, or that path is closed to it. */
  doubted: boolean
}

/** The session that requests use now, and what is left of the one before it. */
export class PresentSession {
  readonly #scheme: Scheme
  #inUse: InUse | undefined
  #names: SessionNames
  /** See `retireChallenged`. */
  #challenged: InUse | undefined
  /** Not used any more, but not yet ended at the device: many devices have four sessions and no more. */
  #retired: Session | undefined

  constructor(scheme: Scheme) {
    this.#scheme = scheme
    this.#names = scheme.names
  }

  get inUse(): InUse | undefined {
    return this.#inUse
  }

  /** The names of the last session. A client's own session must not take its place while there is none. */
  get names(): SessionNames {
    return this.#names
  }

  use(session: Session, password: string): void {
    this.#inUse = { session, password, doubted: false }
    this.#names = session.names ?? this.#scheme.names
  }

  retire(): void {
    this.#retired = this.#inUse?.session ?? this.#retired
    this.#inUse = undefined
  }

  /**
   * A response to a client refused the session. It is used again if the login that follows brings none: the path may be closed to every
   * account, and the device may answer 429 to a further login.
   */
  retireChallenged(): void {
    const session = this.#inUse?.session
    // A session that the sidecar ends at the device before the login cannot be used again.
    const mayLive = session?.end === undefined && session?.changed !== true && session?.expired !== true
    this.#challenged = mayLive ? this.#inUse : undefined
    this.retire()
  }

  /** Called after a login. If it brought no session, the challenged one is used again. */
  resumeChallenged(): void {
    this.#inUse ??= this.#challenged
    this.#challenged = undefined
  }

  /** The session that a response to a client refused is not used again. */
  forgetChallenged(): void {
    this.#challenged = undefined
  }

  async endRetired(): Promise<void> {
    const session = this.#retired
    this.#retired = undefined
    await session?.end?.()
  }
}
