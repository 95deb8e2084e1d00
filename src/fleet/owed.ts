import { namesInText } from '../http/scope.ts'
import type { Ending } from '../tokens/revocation.ts'

export interface OwedName {
  /** The latest epoch whose tokens are void; empty if this sidecar knew none yet. */
  readonly epoch: string
  /** As for `Tokens.revoke`. */
  readonly reason: string
}

/**
 * The revocations of this sidecar that the shared store does not have yet. At this sidecar they apply at once. `agreement.ts` sends them
 * after each read of the state: names by a new epoch, grants in pages. A restart forgets them.
 */
export function createOwedRevocations() {
  /**
   * Names whose tokens are void. The tokens stay void even if the former password returns before the store answers (an account is locked
   * and unlocked), or a reload brings the name back.
   */
  const names = new Map<string, OwedName>()
  /** The reasons of the revocations, by the ids of the grants. */
  const grants = new Map<string, string>()

  return {
    names,
    grants,
    get isEmpty(): boolean {
      return names.size === 0 && grants.size === 0
    },
    /** Whether the store has this revocation. */
    hasPaid: (which: Ending): boolean =>
      'name' in which ? !names.has(which.name) : !which.grants.some((id) => grants.has(id)),
    /** Forgets the names whose tokens are void by this epoch: another sidecar has begun it. */
    forgetVoided({ epoch, since }: { readonly epoch: string; readonly since: string }): void {
      const kept = namesInText(since)
      for (const [name, { epoch: last }] of names) {
        if (last !== '' && Number(kept.get(name) ?? epoch) > Number(last)) names.delete(name)
      }
    },
  }
}
