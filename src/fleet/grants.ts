import type { GrantSummary, RecentGrants } from '../tokens/state.ts'
import type { TokenCopies } from './copies.ts'
import { DESCRIBE_GRANTS, LIST_GRANTS } from './scripts.ts'
import { listOf, type SharedStore } from './shared-store.ts'

/** Grants per call of a script: a long call would delay every other sidecar. */
export const GRANTS_PER_CALL = 500

/** More grants than a server can hold. */
const ALL = 2 ** 32

/** The grants in a shared store. Both functions reject with `StoreUnavailable` if the store does not answer. */
export function createSharedGrants({ run, prefix }: SharedStore, copies: TokenCopies) {
  const keys = [`${prefix}state`]

  /** The number of all grants, and the ids of those whose last token expires last, that one at the end. */
  async function list(most: number): Promise<{ readonly total: number; readonly ids: readonly string[] }> {
    const [total, ids] = listOf(await run(LIST_GRANTS, keys, [prefix, most]))
    return { total: Number(total), ids: listOf(ids).map(String) }
  }

  async function describe(ids: readonly string[]): Promise<readonly GrantSummary[]> {
    const found: GrantSummary[] = []
    for (let at = 0; at < ids.length; at += GRANTS_PER_CALL) {
      const some = ids.slice(at, at + GRANTS_PER_CALL)
      for (const each of listOf(await run(DESCRIBE_GRANTS, keys, [prefix, ...some]))) {
        const [id, client, granted, expires, accessTokens, refreshTokens] = listOf(each)
        found.push({
          id: String(id),
          client: String(client),
          issuedAt: Number(granted),
          expiresAt: Number(expires),
          usedAt: copies.usedAt(String(id)),
          accessTokens: Number(accessTokens),
          refreshTokens: Number(refreshTokens),
        })
      }
    }
    return found
  }

  return {
    all: async (): Promise<readonly GrantSummary[]> => describe((await list(ALL)).ids),
    /** As `Tokens.recentGrants`. */
    async recent(most: number): Promise<RecentGrants> {
      const { total, ids } = await list(most)
      const recent = new Set([...copies.recent(most), ...ids.toReversed()])
      return { total, grants: await describe([...recent].slice(0, most)) }
    },
  }
}
