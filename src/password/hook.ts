/** A question to the hook. `user`: the `username` of the login; null if it has none. */
export type HookQuestion =
  | { readonly user: string | null; readonly password: string }
  | { readonly fingerprint: true }

/**
 * The answer of the hook. `fingerprint`: another one after each change of the password. `failed`: why there is no answer; it may be logged,
 * and quotes neither question nor answer.
 */
export type HookAnswer =
  | { readonly verdict: 'right'; readonly fingerprint?: string | undefined }
  | { readonly verdict: 'wrong' }
  | { readonly failed: string }

/** What checks passwords outside of Postern: a program of the operator, or functions of the program that embeds Postern. */
export interface Hook {
  /** Names it in messages. */
  readonly where: string
  /** Rejects with `SetupError` if passwords must not be sent there. */
  ready(): Promise<void>
  /** Rejects only for a bug. */
  ask(question: HookQuestion): Promise<HookAnswer>
  /** Ends the questions that are open. */
  close(): void
}

/** Functions of the program that embeds Postern. Their promises have ten seconds. */
export interface PasswordFunctions {
  /**
   * Whether a password is right. A rejection is no verdict: the client gets 500, and nothing is counted as a guess.
   *
   * @param username the `username` of the login; undefined if it has none
   */
  readonly verify: (username: string | undefined, password: string) => boolean | Promise<boolean>
  /**
   * A text of at most 512 characters that differs after each change of the password. It is asked for with each login and once a minute,
   * and another one ends all tokens. Without this function, no change of the password ends tokens.
   */
  readonly fingerprint?: (() => string | Promise<string>) | undefined
}

/** The time for an answer (ms). A RADIUS server that does not answer, and PAM with a wrong password, take seconds. */
export const HOOK_DEADLINE = 10_000
