import { endOfGrant, type Lifetimes, type Spent, type TokenKind } from '../tokens/grant-rules.ts'
import { type Digest, digestToken, type NewToken } from '../tokens/mint.ts'
import type { IssuedTokens } from '../tokens/state.ts'
import { tokenScript } from './scripts.ts'
import { openResponse } from './sealed-response.ts'
import { listOf, type SharedStore, type StoreOperation, type StoreReply } from './shared-store.ts'

/**
 * Reads a token of either kind, and the facts on which a change of its grant depends. `ARGV`: prefix, digest, most tokens of its grant,
 * lifetime of access tokens. Returns `{time, epoch, {kind, grant, client, granted, text}, {stored response, its time left}, over, {member,
 * expiry ...}, {member, expiry ...}}`, or `{time, epoch}` if there is no such token.
 *
 * `over`: the live tokens of the grant above the most. The first list of members has those of the grant that expire first; the second has
 * the first to expire of those that live longer than an access token. Each has `over + 1` members, at most 1000, so that a smaller capacity
 * does not block the server.
 */
const READ_TOKEN = tokenScript(
  'refresh',
  `
local digest = ARGV[2]
local reply = {string.format('%.0f', now), epoch or ''}
local kind, grant, client, granted = token(digest)
if not kind then return reply end
local set, response = p .. 'g:' .. grant, p .. 'r:' .. digest
reply[3] = {kind, grant, client, granted, redis.call('GET', p .. 't:' .. digest)}
reply[4] = {redis.call('GET', response) or '', redis.call('PTTL', response)}
reply[5] = redis.call('ZCARD', set) - ARGV[3]
if reply[5] > 0 then reply[5] = reply[5] - #redis.call('ZRANGEBYSCORE', set, '-inf', now) end
if reply[5] > 0 then
  for i, from in ipairs({'(' .. string.format('%.0f', now), string.format('%.0f', now + ARGV[4])}) do
    local most = math.min(reply[5] + 1, 1000)
    reply[5 + i] = redis.call('ZRANGEBYSCORE', set, from, '+inf', 'WITHSCORES', 'LIMIT', 0, most)
  end
end
return reply
`,
)

/**
 * Sets the tokens of one grant in one step: compare and set. `login` and `issued` open a new grant if the epoch is the expected one.
 * `refresh` changes the grant of a token if the token is still valid and its text is the one that was read.
 *
 * `ARGV`: prefix, `login`, `issued` or `refresh`, expected epoch, grant, client, digest and text of the presented token, response (empty:
 * the token is not spent), how long the response is kept (ms), how long a grant lasts (ms; empty: without end), label of an issued grant, the
 * most such grants, number of tokens to add, for each its kind, digest and lifetime, and members to drop. Returns `{'stale'}` if the
 * comparison failed, `{'full'}` if the maximum number of issued grants exists, or `{'set', time, evicted access tokens, evicted refresh
 * tokens, evicted grant ...}`.
 *
 * No added token ends after the grant. A login "in the future" shows that the server's clock was set back: from now on it counts as a login
 * of this moment, so that its grant ends.
 *
 * If there are too many logins, evicts those that expire first, at most 100 in one call, so that a smaller capacity does not block the
 * server. Among the first 1000, grants with an open stream go last. Issued grants do not count, and are never evicted. Both bounds are kept
 * here, because two sidecars that count first and add then would pass them.
 */
export const SET_GRANT = tokenScript(
  'refresh',
  `
local what, grant, client, digest, response, keeps = ARGV[2], ARGV[4], ARGV[5], ARGV[6], ARGV[8], tonumber(ARGV[9])
local most, login, at, kind = tonumber(ARGV[12]), now, 14, nil
if what ~= 'refresh' then
  if epoch ~= ARGV[3] then return {'stale'} end
else
  kind, grant, client, login = token(digest)
  if not kind or redis.call('GET', p .. 't:' .. digest) ~= ARGV[7] then return {'stale'} end
  login = math.min(tonumber(login), now)
end
local left = login + (tonumber(ARGV[10]) or math.huge) - now
if left <= 0 then return {'stale'} end
local granted, label, set = string.format('%.0f', login), what == 'issued' and ARGV[11] or nil, p .. 'g:' .. grant
if response ~= '' then
  redis.call('SET', p .. 't:' .. digest, text('s', grant, client, granted), 'KEEPTTL')
  redis.call('ZADD', set, redis.call('ZSCORE', set, kind .. digest), 's' .. digest)
  redis.call('ZREM', set, kind .. digest)
  local stored = string.format('%.0f %s', now, response)
  if keeps > 0 then redis.call('SET', p .. 'r:' .. digest, stored, 'PX', keeps) end
end
-- Before any command that deletes, so that a full server refuses it.
for _ = 1, tonumber(ARGV[13]) do
  add(ARGV[at], ARGV[at + 1], grant, client, granted, math.min(tonumber(ARGV[at + 2]), left), label)
  at = at + 3
end
redis.call('ZREMRANGEBYSCORE', set, '-inf', now)
for i = at, #ARGV do
  redis.call('DEL', p .. 't:' .. string.sub(ARGV[i], 2))
  redis.call('ZREM', set, ARGV[i])
end
local last, reply = keep(grant), {'set', string.format('%.0f', now), 0, 0}
if what == 'refresh' then return reply end
expire()
if label then
  if #issued() >= most then
    remove(grant)
    return {'full'}
  end
  redis.call('ZADD', p .. 'issued', last, grant)
end
local beside = redis.call('ZCARD', p .. 'issued')
local over = grants() - beside - most
if not label and over > 0 then
  local room, unused, used = math.min(over, 100), {}, {}
  for _, each in ipairs(redis.call('ZRANGE', p .. 'grants', 0, room + beside + 999)) do
    if #unused == room then break end
    if each ~= grant and each ~= epoch and not redis.call('ZSCORE', p .. 'issued', each) then
      local list = held(each) and used or unused
      list[#list + 1] = each
    end
  end
  for i = 1, room do
    local evicted = unused[i] or used[i - #unused]
    if not evicted then break end
    local _, count = remove(evicted)
    reply[3] = reply[3] + count.a
    reply[4] = reply[4] + count.r
    reply[#reply + 1] = evicted
  end
  announce('evicted', table.concat(reply, ' ', 5))
end
return reply
`,
)

/** A token as the server holds it. Times are the server's (ms). */
export interface StoredRecord {
  readonly kind: TokenKind
  readonly spent: Spent | undefined
  readonly digest: Digest
  /** Its record as the server has it, for compare and set. */
  readonly text: string
  readonly epoch: string
  readonly grant: string
  readonly client: string
  /** The time of the login. */
  readonly granted: number
  /** The stored response for a retry with a spent token. */
  readonly response: IssuedTokens | undefined
  /** The oldest members of the grant (see `memberOf`) if it has too many: `over + 1`, but at most 1000 of each list. */
  readonly oldest: readonly string[]
  /** The number of tokens above the most of the grant; negative if it has fewer. */
  readonly over: number
}

/** A change of one grant, for `SET_GRANT`. */
export type GrantChange = {
  readonly added: readonly NewToken[]
  /** As in `Lifetimes`. */
  readonly grantLifetime: Lifetimes['grantLifetime']
} & (
  | {
      readonly what: 'login' | 'issued'
      readonly grant: Pick<StoredRecord, 'epoch' | 'grant' | 'client'>
      /** Empty for a login. */
      readonly label: string
      /** The most logins, or the most issued grants. */
      readonly most: number
    }
  | {
      readonly what: 'refresh'
      /** The presented token, as it was read. */
      readonly token: StoredRecord
      /** What a retry with the presented token gets, sealed; empty if the presented token stays live. */
      readonly response: string
      /** How long the response is kept (ms). */
      readonly grace: number
      /** Members: see `memberOf`. */
      readonly dropped: readonly string[]
    }
)

/** The letters of the kinds on the server. */
const LETTERS: Readonly<Record<TokenKind, string>> = { access: 'a', refresh: 'r' }

/** The member that stands for a token in the set of its grant. */
export function memberOf(kind: TokenKind, digest: Digest): string {
  return LETTERS[kind] + digest
}

/**
 * The tokens of a shared store as records. Both steps wait for a replica, because a former primary must neither change nor refuse a token.
 * Both reject with `StoreUnavailable` if the store does not answer.
 */
export function createSharedRecords({ prefix, runDurably }: Pick<SharedStore, 'prefix' | 'runDurably'>) {
  const keys = [`${prefix}state`]

  return {
    /**
     * Reads a token of either kind, the time, and the epoch, empty if the server has none.
     *
     * @param name of the operation for which it is read
     * @param most the most tokens of its grant
     * @param lifetimes of tokens: lifetime less the time left is the age of a token, unless a reload has changed the lifetime since
     */
    async find(name: StoreOperation, presented: string, most: number, lifetimes: Lifetimes) {
      const digest = digestToken(presented)
      const args = [prefix, digest, most, lifetimes.accessLifetime]
      const reply = listOf(await runDurably({ ...READ_TOKEN, name }, keys, args))
      const [time, present, record, stored, above, ...members] = reply
      const [now, epoch] = [Number(time), String(present)]
      if (record === undefined) return { now, epoch, token: undefined }
      const [letter = '', grant = '', client = '', granted, text = ''] = listOf(record).map(String)
      const login = Math.min(Number(granted), now)
      // The tokens were issued under a policy with a longer `grantLifetime`.
      if (now >= endOfGrant(login, lifetimes)) return { now, epoch, token: undefined }
      const token: StoredRecord = {
        kind: letter === 'a' ? 'access' : 'refresh',
        ...(letter === 's'
          ? responseIn(listOf(stored), now, presented)
          : { spent: undefined, response: undefined }),
        ...{ digest, text, epoch, grant, client, granted: login },
        ...{ oldest: oldestOf(members, lifetimes), over: Number(above) },
      }
      return { now, epoch, token }
    },
    /**
     * Sets the tokens of a grant. `stale`: the comparison failed, so the grant is not changed: a later epoch has begun, or the token was
     * spent, or revoked with its grant, since it was read. `full`: the maximum number of issued grants exists.
     */
    async set(change: GrantChange) {
      const { what, added, grantLifetime } = change
      const { epoch, grant, client } = what === 'refresh' ? change.token : change.grant
      const lasts = typeof grantLifetime === 'number' ? grantLifetime : ''
      const tokens = added.flatMap((each) => [LETTERS[each.kind], each.digest, each.lifetime])
      const args =
        what === 'refresh'
          ? [change.token.digest, change.token.text, change.response, change.grace, lasts, '', 0]
          : ['', '', '', 0, lasts, change.label, change.most]
      const dropped = what === 'refresh' ? change.dropped : []
      const script = what === 'refresh' ? SET_GRANT : { ...SET_GRANT, name: 'issue' as const }
      const all = [prefix, what, epoch, grant, client, ...args, added.length, ...tokens, ...dropped]
      const [kind, at, access, refresh, ...evicted] = listOf(await runDurably(script, keys, all))
      if (kind !== 'set') return kind === 'full' ? kind : 'stale'
      return {
        at: Number(at),
        evicted: { access: Number(access), refresh: Number(refresh), grants: evicted.map(String) },
      }
    },
  }
}

/** The server has lost the response, and with it the time when the token was spent. */
const LONG_AGO: Spent = { at: Number.NEGATIVE_INFINITY, graceEnd: Number.NEGATIVE_INFINITY }

/** The stored response for a retry, and when the token was spent. A response that was changed in the store is as lost. */
function responseIn([stored, left]: readonly StoreReply[], now: number, presented: string) {
  const [, at, sealed = ''] = /^(\d+) (.+)$/.exec(String(stored)) ?? []
  const response = openResponse(sealed, presented)
  return {
    response,
    spent: response === undefined ? LONG_AGO : { at: Number(at), graceEnd: now + Number(left) },
  }
}

/** The oldest members first. A refresh token in its last hour may be missing. */
function oldestOf(lists: readonly StoreReply[], lifetimes: Lifetimes): readonly string[] {
  const issued = new Map<string, number>()
  for (const list of lists.map(listOf))
    for (let at = 0; at < list.length; at += 2) {
      const [member, end] = [String(list[at]), Number(list[at + 1])]
      const lifetime = member.startsWith('a') ? lifetimes.accessLifetime : lifetimes.refreshLifetime
      issued.set(member, end - lifetime)
    }
  const ages = [...issued].sort(([, one], [, other]) => one - other)
  return ages.map(([member]) => member)
}
