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

/** The time for an answer (ms). A RADIUS server that does not answer, and PAM with a wrong password, take seconds. */
export const HOOK_DEADLINE = 10_000
