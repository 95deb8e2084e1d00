import type { Script, StoreOperation } from './shared-store.ts'

/**
 * The beginning of every script. `KEYS[1]` is the hash of the device's state, `ARGV[1]` the prefix of all keys of the device. Times are
 * the server's (ms).
 *
 * - `t:` and a digest: a token, as a text of kind (`a` access, `r` refresh, `s` spent refresh), epoch, grant, client, time of the login,
 *   and `named` if the grant has a name. For an issued grant, `issued`, its lifetime and its label follow.
 * - `g:` and a grant: the sorted set of kind and digest of its tokens, by their expiry.
 * - `r:` and the digest of a spent token: when it was spent, and the sealed response, for the grace.
 * - `grants`: the sorted set of the live grants, by their end, and of the epoch.
 * - `issued`: the sorted set of the issued grants, by their end.
 * - `held`: the sorted set of the grants with open streams, by the time until which they are evicted last.
 *
 * A token of an earlier epoch is void, unless `since` has its name (see `DeviceState.since`).
 *
 * The server may lose any key: another program fills the server, which then evicts keys, or deletes them itself. So a token counts only if
 * its grant lists it and `grants` lists the grant: a revocation that has removed one of these entries is complete, whatever else is
 * missing. If `grants` does not hold the epoch, the list is lost, and so the epoch is void. The entry `first` begins the stream of events:
 * a sidecar that reads it later knows that entries before it may be lost.
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
  if not redis.call('ZSCORE', p .. 'g:' .. grant, kind .. digest) then return nil end
  if not redis.call('ZSCORE', p .. 'grants', grant) then return nil end
  return kind, grant, client, granted, handout(text)
end

local function text(kind, grant, client, granted, label, lifetime)
  local named = string.find(grant, '.', 1, true) and ' named' or ''
  local tail = label and table.concat({' issued', lifetime, label}, ' ') or ''
  return table.concat({kind, epoch, grant, client, granted}, ' ') .. named .. tail
end

-- With a label the token is one of an issued grant.
local function add(kind, digest, grant, client, granted, lifetime, label)
  redis.call('SET', p .. 't:' .. digest, text(kind, grant, client, granted, label, lifetime), 'PX', lifetime)
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

/** A script about the tokens of one device. */
export function tokenScript(name: StoreOperation, body: string): Script {
  return { name, source: COMMON + body }
}

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
  local kind, grant, client, granted, lifetime, label = token(ARGV[i])
  reply[i + 1] = {}
  if kind == 'a' then
    reply[i + 1] = {grant, client, math.max(0, now - granted), redis.call('PTTL', p .. 't:' .. ARGV[i]), lifetime, label}
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
 * Says how long grants with open streams still last, and holds them: the server evicts a held grant after all others. A grant lasts until
 * its last token expires, and no longer than a login; a spent refresh token does not count.
 *
 * `ARGV`: prefix, time for which they are held (ms), how long a login lasts (ms; empty: without end), grant ... Returns `{epoch, time left
 * ...}`: 0 for a grant that is over.
 */
export const HOLD = tokenScript(
  'list',
  `
local lasts = tonumber(ARGV[3]) or math.huge

local function left(grant)
  if not redis.call('ZSCORE', p .. 'grants', grant) then return 0 end
  local at = -1
  while true do
    local last = redis.call('ZRANGE', p .. 'g:' .. grant, at, at, 'WITHSCORES')
    if not last[1] then return 0 end
    if string.sub(last[1], 1, 1) ~= 's' then
      local stored = redis.call('GET', p .. 't:' .. string.sub(last[1], 2))
      local granted = stored and tonumber(string.match(stored, '^%a %S+ %S+ %S+ (%d+)'))
      -- An issued grant is no login.
      if stored and handout(stored) then granted = nil end
      return math.max(0, math.min(tonumber(last[2]), (granted and math.min(granted, now) or math.huge) + lasts) - now)
    end
    at = at - 1
  end
end

redis.call('ZREMRANGEBYSCORE', p .. 'held', '-inf', now) -- first, for a full server
local reply = {epoch or ''}
for i = 4, #ARGV do
  reply[i - 2] = left(ARGV[i])
  if reply[i - 2] > 0 then redis.call('ZADD', p .. 'held', now + ARGV[2], ARGV[i]) end
end
redis.call('PEXPIRE', p .. 'held', ARGV[2])
return reply
`,
)
