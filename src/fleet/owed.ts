import { namesInText } from '../http/scope.ts'
import type { Ending } from '../tokens/state.ts'

export interface OwedName {
  /** The latest epoch whose tokens are void; empty if this sidecar knew none yet. */
  readonly epoch: string
  /** As for `Tokens.revoke`. */
  readonly reason: string
}

export type OwedRevocations = ReturnType<typeof createOwedRevocations>

/**
 * The revocations of this sidecar that the shared store has not taken yet. They hold here at once. `agreement.ts` pays them whenever it has
 * read the state: names by an epoch, grants one by one. A restart forgets them.
 */
export function createOwedRevocations() {
  /**
   * Names whose tokens are void. They stay void if the password is the earlier one before the store answers (an account that was locked and
   * unlocked), or a reload brings the name back.
   */
  const names = new Map<string, OwedName>()
  /** Grants, and the reason. */
  const grants = new Map<string, string>()

  return {
    names,
    grants,
    get isEmpty(): boolean {
      return names.size === 0 && grants.size === 0
    },
    /** Whether the store has taken it. */
    hasPaid: (which: Ending): boolean =>
      'name' in which ? !names.has(which.name) : !which.grants.some((id) => grants.has(id)),
    /** Another sidecar has begun an epoch that voids the tokens of a name, too. */
    forgetVoided({ epoch, since }: { readonly epoch: string; readonly since: string }): void {
      const kept = namesInText(since)
      for (const [name, { epoch: last }] of names) {
        if (last !== '' && Number(kept.get(name) ?? epoch) > Number(last)) names.delete(name)
      }
    },
  }
}
