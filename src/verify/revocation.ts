import type { Endpoint } from '../http/admission.ts'
import type { VerifyOptions } from './options.ts'
import { type Question, tokenRequest } from './question.ts'
import { described, type Received } from './received.ts'
import type { Records } from './records.ts'

export interface Revocation {
  /** Resolves to whether the server answered with 200. Once it has said that it takes no revocations, later calls do nothing. */
  revoke(token: string): Promise<boolean>
  /** A token still works although its revocation was answered with 200, so that no further one is sent. */
  noteIneffective(): void
  /**
   * Revokes each login that is not revoked yet, by its newest token, and says what became of the tokens. Never rejects because the run
   * was stopped.
   *
   * @param patience whether a used-up window is waited for
   */
  revokeAll(patience?: 'waiting' | 'without waiting'): Promise<string>
}

/** What a revocation needs of the server: requests that are sent also after the run was broken off. */
export interface Sender {
  readonly options: VerifyOptions
  readonly records: Records
  readonly signal: AbortSignal
  /** Sends a request also after the run was broken off. */
  sendAnyway(question: Question): Promise<Received>
  /** Waits until the window is over that responses told of. The next request opens a new one. */
  waitForWindow(endpoint: Endpoint, why: string): Promise<void>
}

const LEFT = 'the tokens of the run are left, and expire by themselves'

export function createRevocation(sender: Sender): Revocation {
  const { records, signal } = sender
  const { revocationPath: path } = sender.options
  const revoked = new Set<string>()
  /** Why no further token is revoked. */
  let refusal = path === undefined ? `not revoked: ${LEFT}` : undefined

  /** Resolves to the reason if the server did not answer with 200. A run that was stopped has tokens to revoke, too, but does not wait. */
  async function revoke(token: string, patience = 'waiting'): Promise<string | undefined> {
    if (refusal !== undefined || path === undefined) return refusal
    const question: Question = {
      ...tokenRequest([['token', token]], 'with a token', { path }),
      oddity: 'respelled',
    }
    let received = await sender.sendAnyway(question)
    if (received.status === 429 && !signal.aborted && patience === 'waiting') {
      const waited = sender.waitForWindow('oauth', 'to revoke the tokens')
      await waited.catch((error: unknown) => {
        if (!signal.aborted) throw error
      })
      if (!signal.aborted) received = await sender.sendAnyway(question)
    }
    if (received.status === 429)
      return `${path}: 429 Too Many Requests: revoke the tokens yourself, or wait until they expire`
    if (received.status === 200) revoked.add(token)
    else refusal = `${path}: ${described(received)}: ${LEFT}`
    return refusal
  }

  return {
    revoke: async (token) => (await revoke(token)) === undefined,
    noteIneffective() {
      refusal = `${path}: 200, but the token still works: ${LEFT}`
    },
    async revokeAll(patience) {
      if (records.logins.size === 0) return 'the run got no tokens'
      for (const token of records.logins.difference(revoked)) {
        const problem = await revoke(token, patience)
        if (problem !== undefined) return problem
      }
      return 'the server answered 200 to each revocation'
    },
  }
}
