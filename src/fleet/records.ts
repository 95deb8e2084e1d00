import { endOfGrant, type Lifetimes, type Spent, type TokenKind } from '../tokens/grant-rules.ts'
import type { Digest, NewToken } from '../tokens/mint.ts'
import { tokenScript } from './scripts.ts'
import { listOf, type SharedStore, type StoreReply } from './shared-store.ts'

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
 * Changes a grant if the token is still valid and its text is the one that was read: compare and set. Spends that token, stores a response
 * for a retry with it, adds tokens, and drops members.
 *
 * `ARGV`: prefix, digest and text of the token, response (empty: the token is not spent), how long the response is kept (ms), how long a
 * grant lasts (ms; empty: without end), number of tokens to add, for each its kind, digest and lifetime, and members to drop. Returns 1 if
 * it has changed the grant, 0 if not.
 *
 * No added token ends after the grant. A login "in the future" shows that the server's clock was set back: from now on it counts as a login
 * of this moment, so that its grant ends.
 */
const CHANGE_GRANT = tokenScript(
  'refresh',
  `
local digest, response, keeps, at = ARGV[2], ARGV[4], tonumber(ARGV[5]), 8
local kind, grant, client, granted = token(digest)
if not kind or redis.call('GET', p .. 't:' .. digest) ~= ARGV[3] then return 0 end
granted = string.format('%.0f', math.min(tonumber(granted), now))
local left = granted + (tonumber(ARGV[6]) or math.huge) - now
if left <= 0 then return 0 end
local set = p .. 'g:' .. grant
if response ~= '' then
  redis.call('SET', p .. 't:' .. digest, text('s', grant, client, granted), 'KEEPTTL')
  redis.call('ZADD', set, redis.call('ZSCORE', set, kind .. digest), 's' .. digest)
  redis.call('ZREM', set, kind .. digest)
  local stored = string.format('%.0f %s', now, response)
  if keeps > 0 then redis.call('SET', p .. 'r:' .. digest, stored, 'PX', keeps) end
end
for _ = 1, tonumber(ARGV[7]) do
  add(ARGV[at], ARGV[at + 1], grant, client, granted, math.min(tonumber(ARGV[at + 2]), left))
  at = at + 3
end
redis.call('ZREMRANGEBYSCORE', set, '-inf', now)
for i = at, #ARGV do
  redis.call('DEL', p .. 't:' .. string.sub(ARGV[i], 2))
  redis.call('ZREM', set, ARGV[i])
end
keep(grant)
return 1
`,
)

/** A token as the server holds it. Times are the server's (ms). */
export interface StoredToken {
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
  readonly response: string
  /** The oldest members of the grant (see `memberOf`) if it has too many: `over + 1`, but at most 1000 of each list. */
  readonly oldest: readonly string[]
  /** The number of tokens above the most of the grant; negative if it has fewer. */
  readonly over: number
}

/** A change of a grant. `response`: what a retry with the presented token gets; undefined if the presented token stays live. */
export interface GrantChange {
  readonly added: readonly NewToken[]
  /** Members: see `memberOf`. */
  readonly dropped: readonly string[]
  readonly response: string | undefined
  /** How long the response is kept (ms). */
  readonly grace: number
  /** As in `Lifetimes`. */
  readonly grantLifetime: Lifetimes['grantLifetime']
}

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
     * @param most the most tokens of its grant
     * @param lifetimes of tokens: lifetime less the time left is the age of a token, unless a reload has changed the lifetime since
     */
    async find(digest: Digest, most: number, lifetimes: Lifetimes) {
      const args = [prefix, digest, most, lifetimes.accessLifetime]
      const reply = listOf(await runDurably(READ_TOKEN, keys, args))
      const [time, present, record, stored, above, ...members] = reply
      const [now, epoch] = [Number(time), String(present)]
      if (record === undefined) return { now, epoch, token: undefined }
      const [letter = '', grant = '', client = '', granted, text = ''] = listOf(record).map(String)
      const login = Math.min(Number(granted), now)
      // The tokens were issued under a policy with a longer `grantLifetime`.
      if (now >= endOfGrant(login, lifetimes)) return { now, epoch, token: undefined }
      const { response, spent } = responseIn(listOf(stored), now)
      const token: StoredToken = {
        kind: letter === 'a' ? 'access' : 'refresh',
        spent: letter === 's' ? spent : undefined,
        ...{ digest, text, epoch, grant, client, granted: login, response },
        ...{ oldest: oldestOf(members, lifetimes), over: Number(above) },
      }
      return { now, epoch, token }
    },
    /** Returns whether the grant was changed. It was not if the token was spent, or revoked with its grant, since it was read. */
    async change(
      token: StoredToken,
      { added, dropped, response = '', grace, grantLifetime }: GrantChange,
    ): Promise<boolean> {
      const { digest, text } = token
      const tokens = added.flatMap((each) => [LETTERS[each.kind], each.digest, each.lifetime])
      const lasts = typeof grantLifetime === 'number' ? grantLifetime : ''
      const args = [digest, text, response, grace, lasts, added.length, ...tokens, ...dropped]
      return (await runDurably(CHANGE_GRANT, keys, [prefix, ...args])) === 1
    },
  }
}

/** The server has lost the response, and with it the time when the token was spent. */
const LONG_AGO: Spent = { at: Number.NEGATIVE_INFINITY, graceEnd: Number.NEGATIVE_INFINITY }

/** The stored response for a retry, and when the token was spent. */
function responseIn([stored, left]: readonly StoreReply[], now: number) {
  const [, at, response = ''] = /^(\d+) (.+)$/.exec(String(stored)) ?? []
  if (response === '') return { response, spent: LONG_AGO }
  return { response, spent: { at: Number(at), graceEnd: now + Number(left) } }
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
