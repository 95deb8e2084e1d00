import type { GrantSummary, RecentGrants } from '../tokens/grant-table.ts'
import { type IssuedGrant, issuedOf } from '../tokens/handout.ts'
import type { TokenCopies } from './copies.ts'
import { REVOKED } from './operator-words.ts'
import { REVOKE_GRANTS, runScript, runScriptDurably, tokenScript } from './scripts.ts'
import { listOf, type SharedStore, type StoreReply } from './shared-store.ts'

/**
 * Lists grants. `ARGV`: prefix, most. Returns the number of all grants, the ids of at most `most` of them (those whose last token expires
 * last), the epoch, empty if there is no state, and the issued grants.
 */
const LIST_GRANTS = tokenScript(
  'list',
  `
expire()
local count = grants()
local listed = redis.call('ZRANGE', p .. 'grants', string.format('%.0f', -ARGV[2] - 1), -1)
if listed[#listed] == epoch then
  table.remove(listed)
elseif #listed > tonumber(ARGV[2]) then
  table.remove(listed, 1)
end
return {count, listed, epoch or '', issued()}
`,
)

/**
 * Describes grants. `ARGV`: prefix, grant ... Returns for each live grant: id, client, time of the login, expiry of its last token, numbers
 * of its access tokens and of its refresh tokens that are not spent, and the label of an issued grant.
 */
export const DESCRIBE_GRANTS = tokenScript(
  'list',
  `
local list = {}
for argument = 2, #ARGV do
  local grant = ARGV[argument]
  local set = p .. 'g:' .. grant
  local members = redis.call('ZRANGEBYSCORE', set, '(' .. string.format('%.0f', now), '+inf', 'WITHSCORES')
  local count, client, granted, label = {a = 0, r = 0, s = 0}, nil, nil, nil
  for i = 1, #members, 2 do
    local kind, _, of, at, _, text = token(string.sub(members[i], 2))
    if kind then
      count[kind] = count[kind] + 1
      client, granted, _, label = of, at, handout(text)
    end
  end
  if client then list[#list + 1] = {grant, client, granted, members[#members], count.a, count.r, label} end
end
return list
`,
)

/** The grants in pages, one page for each call of a script: a long call would delay every other sidecar. */
export function* pagesOf(grants: readonly string[]): Iterable<readonly string[]> {
  for (let at = 0; at < grants.length; at += 500) yield grants.slice(at, at + 500)
}

/** `page`: grants that the server has revoked in one call. `held`: those of them that were live at the server. */
interface RevokedPage {
  readonly page: readonly string[]
  readonly held: readonly string[]
}

/**
 * Revokes grants at the server, page by page. Rejects with `StoreUnavailable` if the store does not answer.
 *
 * @param said the kind of the message; it tells the other sidecars whether an operator revokes: see `sayRevoked`
 */
export async function* revokeAtServer(
  store: Pick<SharedStore, 'runDurably' | 'prefix'>,
  grants: readonly string[],
  said: string = REVOKED,
): AsyncIterable<RevokedPage> {
  const pages = [...pagesOf(grants)]
  // The revocation of a client by an operator is announced even if the client has no live grant any more.
  if (pages.length === 0 && said !== REVOKED) pages.push([])
  for (const page of pages) {
    const held = await runScriptDurably(store, REVOKE_GRANTS, said, ...page)
    yield { page, held: held.map(String) }
  }
}

/** As this sidecar sees the use of grants. */
type Uses = Pick<TokenCopies, 'usedAt'>

/**
 * The summaries of these grants, without those that are not live, with the uses that this sidecar saw. As the functions below, rejects with
 * `StoreUnavailable` if the store does not answer.
 */
export async function describeGrants(
  store: SharedStore,
  { usedAt }: Uses,
  ids: readonly string[],
): Promise<readonly GrantSummary[]> {
  const found: StoreReply[] = []
  for (const page of pagesOf(ids)) found.push(...(await runScript(store, DESCRIBE_GRANTS, ...page)))
  return found.map((each) => {
    const [id, client, issuedAt, expiresAt, accessTokens, refreshTokens, label] = listOf(each)
    return {
      id: String(id),
      client: String(client),
      issuedAt: Number(issuedAt),
      expiresAt: Number(expiresAt),
      usedAt: usedAt(String(id)),
      accessTokens: Number(accessTokens),
      refreshTokens: Number(refreshTokens),
      ...(label === undefined ? {} : { label: String(label) }),
    }
  })
}

/** The number of all live grants, the ids of at most `most` of them, the first to expire first, the epoch, and the ids of issued grants. */
async function list(store: SharedStore, most: number) {
  const [total, ...others] = await runScript(store, LIST_GRANTS, most)
  const [ids = [], issued = []] = [others[0], others[2]].map((each) => listOf(each).map(String))
  return { total: Number(total), ids, epoch: String(others[1]), issued }
}

/** The live issued grants of all sidecars. */
export async function listIssued(store: SharedStore, uses: Uses): Promise<readonly IssuedGrant[]> {
  return issuedOf(await describeGrants(store, uses, (await list(store, 0)).issued))
}

/**
 * All live grants, the first to expire first, the ids of the lost grants, and the epoch. A lost grant is one that the server lists, though it
 * has lost the tokens.
 */
export async function listAll(store: SharedStore, uses: Uses) {
  // More grants than a server can hold.
  const { ids, epoch } = await list(store, 2 ** 32)
  const grants = await describeGrants(store, uses, ids)
  const live = new Set(grants.map(({ id }) => id))
  return { epoch, grants, lost: ids.filter((id) => !live.has(id)) }
}

/**
 * The number of all live grants, and at most `most` of them: first those that this sidecar used last, then those whose last token expires
 * last.
 */
export async function listGrants(
  store: SharedStore,
  copies: Pick<TokenCopies, 'recent' | 'usedAt'>,
  most: number,
): Promise<RecentGrants> {
  const { total, ids } = await list(store, most)
  const all = new Set([...copies.recent(most), ...ids.reverse()])
  return { total, grants: await describeGrants(store, copies, [...all].slice(0, most)) }
}
