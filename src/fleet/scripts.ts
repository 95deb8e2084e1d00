import {
  listOf,
  type Script,
  type SharedStore,
  type StoreOperation,
  type StoreReply,
} from './shared-store.ts'

/**
 * The beginning of every script. `KEYS[1]` is the hash of the device's state, `ARGV[1]` the prefix of all keys of the device. Times are
 * the server's (ms).
 *
 * - `t:` and a digest: a token, as a text of kind (`a` access, `r` refresh, `s` spent refresh), epoch, grant, client, time of the login,
 *   and `named` if the grant has a name. For an issued grant, `issued`, its lifetime and its label follow.
 * - `g:` and a grant: the sorted set of kind and digest of its tokens, by their expiry.
 * - `r:` and the digest of a spent token: when it was spent, when its grace ends, and the sealed response. The server keeps it for the grace.
 * - `grants`: the sorted set of the live grants, by their end, and of the epoch.
 * - `issued`: the sorted set of the issued grants, by their end.
 * - `held`: the sorted set of the grants with open streams, by the time until which they are evicted last.
 *
 * A token of an earlier epoch is void, unless `since` has its name (see `DeviceState.since`).
 *
 * The server may lose any key: another program fills the server, which then evicts keys, or deletes them itself. So a token counts only if its
 * grant lists it and `grants` lists the grant: a revocation that has removed one of these entries is complete, whatever else is missing. The
 * expiry in the list decides: the server keeps a key for one millisecond more. If `grants` does not hold the epoch, the list is lost, and so
 * the epoch is void. The entry `first` begins the stream of events: a sidecar that reads it later knows that entries before it may be lost.
 *
 * The server does not undo a script that fails half-way. So each script announces a revocation before it deletes the tokens: after a
 * failure the revocation can be repeated. A full server accepts a command that needs memory only after the script has run a command that
 * deletes, even one that found nothing. So `announce` begins with `expire`: a revocation must not need free memory.
 */
const COMMON = `
local p = ARGV[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if epoch and not redis.call('ZSCORE', p .. 'grants', epoch) then epoch = false end

local function expire()
  redis.call('ZREMRANGEBYSCORE', p .. 'grants', '-inf', now)
  redis.call('ZREMRANGEBYSCORE', p .. 'issued', '-inf', now)
end

local function announce(...)
  expire()
  local events = p .. 'events'
  if #redis.call('XREVRANGE', events, '+', '-', 'COUNT', 1) == 0 then redis.call('XADD', events, '*', 'first', '') end
  redis.call('XADD', events, 'MAXLEN', '~', 10000, '*', ...)
end

local function grants()
  return redis.call('ZCARD', p .. 'grants') - (epoch and 1 or 0)
end

-- The live issued grants. Another version may have revoked some without removing them here.
local function issued()
  local live = {}
  for _, grant in ipairs(redis.call('ZRANGE', p .. 'issued', 0, -1)) do
    if redis.call('ZSCORE', p .. 'grants', grant) then
      live[#live + 1] = grant
    else
      redis.call('ZREM', p .. 'issued', grant)
    end
  end
  return live
end

-- The lifetime and the label of an issued token.
local function handout(text)
  return string.match(text, ' issued (%d+) (.*)$')
end

local function first(since, grant)
  local name = string.match(grant, '^(.+)%.')
  local text = ' ' .. since
  local _, last = string.find(text, ' ' .. (name or '') .. '=', 1, true)
  return name and last and tonumber(string.match(text, '^%d+', last + 1))
end

local function holds(of, grant)
  if of == epoch then return true end
  local from = first(redis.call('HGET', KEYS[1], 'since') or '', grant)
  local number = tonumber(of)
  return from and epoch and number and number >= from and number <= tonumber(epoch)
end

local function token(digest)
  local text = redis.call('GET', p .. 't:' .. digest)
  if not text then return nil end
  local kind, of, grant, client, granted = string.match(text, '^(%a) (%S+) (%S+) (%S+) (%S+)')
  if not grant or not holds(of, grant) then return nil end
  local till = redis.call('ZSCORE', p .. 'g:' .. grant, kind .. digest)
  if not till or tonumber(till) <= now then return nil end
  if not redis.call('ZSCORE', p .. 'grants', grant) then return nil end
  return kind, grant, client, granted, tonumber(till), text
end

local function textOf(kind, grant, client, granted, label, lifetime)
  local named = string.find(grant, '.', 1, true) and ' named' or ''
  local tail = label and table.concat({' issued', lifetime, label}, ' ') or ''
  return table.concat({kind, epoch, grant, client, granted}, ' ') .. named .. tail
end

-- With a label the token is one of an issued grant.
local function add(kind, digest, grant, client, granted, lifetime, label)
  redis.call('SET', p .. 't:' .. digest, textOf(kind, grant, client, granted, label, lifetime), 'PX', lifetime)
  redis.call('ZADD', p .. 'g:' .. grant, now + lifetime, kind .. digest)
end

-- A grant ends with its last token. Returns that time.
local function keep(grant)
  local set = p .. 'g:' .. grant
  local last = redis.call('ZRANGE', set, -1, -1, 'WITHSCORES')
  redis.call('PEXPIREAT', set, last[2])
  redis.call('ZADD', p .. 'grants', last[2], grant)
  return last[2]
end

-- Whether a sidecar has an open stream of the grant.
local function held(grant)
  local till = redis.call('ZSCORE', p .. 'held', grant)
  return till and tonumber(till) > now
end

local function remove(grant)
  local set = p .. 'g:' .. grant
  local count = {a = 0, r = 0, s = 0}
  for _, member in ipairs(redis.call('ZRANGE', set, 0, -1)) do
    local kind, digest = string.sub(member, 1, 1), string.sub(member, 2)
    count[kind] = count[kind] + redis.call('DEL', p .. 't:' .. digest)
    if kind == 's' then redis.call('DEL', p .. 'r:' .. digest) end
  end
  redis.call('DEL', set)
  redis.call('ZREM', p .. 'issued', grant)
  local wasLive = redis.call('ZREM', p .. 'grants', grant)
  return wasLive, count
end
`

/** A script about the state of one device: it begins with `COMMON`. */
export function tokenScript(name: StoreOperation, body: string): Script {
  return { name, source: COMMON + body }
}

/** Runs a script of `tokenScript`; `args` follow the prefix. Rejects with `StoreUnavailable`. */
export function runScript(
  { run, prefix }: Pick<SharedStore, 'run' | 'prefix'>,
  script: Script,
  ...args: readonly (string | number)[]
): Promise<readonly StoreReply[]> {
  return run(script, [`${prefix}state`], [prefix, ...args]).then(listOf)
}

/** As `runScript`, by `SharedStore.runDurably`. */
export function runScriptDurably(
  { runDurably, prefix }: Pick<SharedStore, 'runDurably' | 'prefix'>,
  script: Script,
  ...args: readonly (string | number)[]
): Promise<readonly StoreReply[]> {
  return runScript({ run: runDurably, prefix }, script, ...args)
}

/**
 * Reads a token of either kind, and the facts on which a change of its grant depends. `ARGV`: prefix, digest, then, without which only the
 * token is read, the most tokens of its grant and the lifetime of access tokens. Returns `{time, epoch, {kind, grant, client, granted, text}, stored response, over, {member,
 * expiry ...}, {member, expiry ...}}`, or `{time, epoch}` if there is no such token.
 *
 * `over`: the live tokens of the grant above the most. The first list of members has those of the grant that expire first; the second has
 * the first to expire of those that live longer than an access token. Each has `over + 1` members, at most 1000, so that a smaller capacity
 * does not block the server.
 */
export const READ_TOKEN = tokenScript(
  'refresh',
  `
local digest = ARGV[2]
local reply = {string.format('%.0f', now), epoch or ''}
local kind, grant, client, granted, _, text = token(digest)
if not kind then return reply end
reply[3] = {kind, grant, client, granted, text}
if not ARGV[3] then return reply end
local set = p .. 'g:' .. grant
reply[4] = kind == 's' and redis.call('GET', p .. 'r:' .. digest) or ''
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
 * `ARGV`: prefix, `login`, `issued` or `refresh`, expected epoch, grant, client, label of an issued grant, the most such grants, then of a
 * `refresh` (otherwise empty): digest and text of the presented token, the response for a retry (empty: the token is not spent), how long the
 * response is kept (ms), time of the login, end of the login (empty: without end). Then the number of tokens to add, for each its kind, digest
 * and lifetime, and members to drop. Returns `{'stale'}` if the comparison failed, `{'full'}` if the maximum number of issued grants exists, or
 * `{'set', time, evicted access tokens, evicted refresh tokens, evicted grant ...}`. No added token ends after the login.
 *
 * If there are too many logins, evicts those that expire first, at most 100 in one call, so that a smaller capacity does not block the
 * server. Among the first 1000, grants with an open stream go last. Issued grants do not count, and are never evicted. Both bounds are kept
 * here, because two sidecars that count first and add then would pass them.
 */
export const SET_GRANT = tokenScript(
  'refresh',
  `
local what, grant, client, label, most = ARGV[2], ARGV[4], ARGV[5], nil, tonumber(ARGV[7])
local digest, response, keeps, at = ARGV[8], ARGV[10], tonumber(ARGV[11]), 15
local set, granted, left = p .. 'g:' .. grant, string.format('%.0f', now), math.huge
local kind, _, _, _, till, stored
if what == 'issued' then label = ARGV[6] end
if what ~= 'refresh' then
  if epoch ~= ARGV[3] then return {'stale'} end
else
  kind, _, _, _, till, stored = token(digest)
  if stored ~= ARGV[9] then return {'stale'} end
  granted, left = ARGV[12], (tonumber(ARGV[13]) or math.huge) - now
  if left <= 0 then return {'stale'} end
end
if response ~= '' then
  redis.call('SET', p .. 't:' .. digest, textOf('s', grant, client, granted), 'KEEPTTL')
  redis.call('ZADD', set, till, 's' .. digest)
  redis.call('ZREM', set, kind .. digest)
  local answer = string.format('%.0f %.0f %s', now, now + keeps, response)
  if keeps > 0 then redis.call('SET', p .. 'r:' .. digest, answer, 'PX', keeps) end
end
-- Before any command that deletes, so that a full server refuses it.
for _ = 1, tonumber(ARGV[14]) do
  add(ARGV[at], ARGV[at + 1], grant, client, granted, math.min(tonumber(ARGV[at + 2]), left), label)
  at = at + 3
end
if what == 'refresh' then
  redis.call('ZREMRANGEBYSCORE', set, '-inf', now)
  for i = at, #ARGV do
    redis.call('DEL', p .. 't:' .. string.sub(ARGV[i], 2))
    redis.call('ZREM', set, ARGV[i])
  end
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

/**
 * Looks up access tokens. `ARGV`: prefix, digest ... Returns `{epoch, since, found ...}`, with an empty epoch if there is no state.
 * Each `found` is `{grant, client, age of the login, time left}`, for an issued grant also lifetime and label, or `{}` if there is no such
 * access token.
 */
export const LOOK_UP = tokenScript(
  'lookup',
  `
local reply = {epoch or '', redis.call('HGET', KEYS[1], 'since') or ''}
for i = 2, #ARGV do
  local kind, grant, client, granted, till, text = token(ARGV[i])
  reply[i + 1] = {}
  if kind == 'a' then
    reply[i + 1] = {grant, client, math.max(0, now - granted), till - now, handout(text)}
  end
end
return reply
`,
)

/**
 * Revokes grants. `ARGV`: prefix, kind of the message (see `REVOKED`), grant ... Returns the grants that were live. Announces all of them,
 * because sidecars may have copies of tokens that the server has lost.
 */
export const REVOKE_GRANTS = tokenScript(
  'revoke',
  `
local revoked = {}
announce(ARGV[2], table.concat(ARGV, ' ', 3))
for i = 3, #ARGV do
  local wasLive = remove(ARGV[i])
  if wasLive == 1 then revoked[#revoked + 1] = ARGV[i] end
end
return revoked
`,
)

/**
 * Says how long the tokens of grants with open streams still last, and holds these grants: the server evicts a held grant after all others. A
 * spent refresh token does not count.
 *
 * `ARGV`: prefix, time for which they are held (ms), grant ... Returns `{epoch, {time left of the last token, age of the login} ...}`: `{0}` for a
 * grant without tokens, no age for an issued grant.
 */
export const HOLD = tokenScript(
  'list',
  `
local function left(grant)
  if not redis.call('ZSCORE', p .. 'grants', grant) then return {0} end
  local at = -1
  while true do
    local last = redis.call('ZRANGE', p .. 'g:' .. grant, at, at, 'WITHSCORES')
    if not last[1] then return {0} end
    if string.sub(last[1], 1, 1) ~= 's' then
      local stored = redis.call('GET', p .. 't:' .. string.sub(last[1], 2))
      local granted = stored and not handout(stored) and tonumber(string.match(stored, '^%a %S+ %S+ %S+ (%d+)'))
      return {math.max(0, last[2] - now), granted and math.max(0, now - granted) or nil}
    end
    at = at - 1
  end
end

redis.call('ZREMRANGEBYSCORE', p .. 'held', '-inf', now) -- first, for a full server
local reply = {epoch or ''}
for i = 3, #ARGV do
  reply[i - 1] = left(ARGV[i])
  if reply[i - 1][1] > 0 then redis.call('ZADD', p .. 'held', now + ARGV[2], ARGV[i]) end
end
redis.call('PEXPIRE', p .. 'held', ARGV[2])
return reply
`,
)
