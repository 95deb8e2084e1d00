import type { Clock } from '../system/clock.ts'
import { STEP } from '../system/clock-steps.ts'
import { type Lifetimes, latestEnd } from '../tokens/grant-rules.ts'
import { regularQuestion } from './regular-question.ts'
import { runScript, tokenScript } from './scripts.ts'
import { listOf, type SharedStore, type StoreReply } from './shared-store.ts'

interface Dependencies {
  readonly store: SharedStore
  readonly clock: Clock
  /** The present policy. */
  readonly policy: () => Lifetimes
  /** The server has lost tokens of live grants: another program has evicted or deleted their keys. */
  readonly onLost: (tokens: number) => void
  /** The clock of the server was set by this time (ms), or another server with another clock answers. */
  readonly onClockSet: (by: number) => void
  readonly onBug: (error: unknown) => void
}

/** How often a sidecar checks grants on the server (ms), and how many each time. */
const EVERY = 10_000
const MOST = 50

/**
 * Checks some grants, from an offset in their list on.
 *
 * - A token that its grant lists and the server has lost: counted, and removed from the list. A grant without tokens is revoked at every
 *   sidecar.
 * - An issued grant that is missing in the list `issued`: added again.
 *
 * `ARGV`: prefix, offset, most grants. Returns `{time, remaining, lost tokens, {grant, login, lifetime, end of access, end of refresh} ...}`.
 *
 * - `remaining`: the checked grants that still exist; -1 at the end of the list.
 * - `login`: the latest time of the login that a token names: a refresh while the clock is set back writes the time of the refresh.
 * - `lifetime`: of an issued token; otherwise empty.
 * - the ends: of the last access token, and of the last refresh token, spent or not; 0 without one.
 */
const LOOK_AFTER = tokenScript(
  'upkeep',
  `
-- A key may expire a moment before its entry in the list.
local soon = string.format('(%.0f', now + 1000)

local function lookAfter(grant)
  local set, lost, login, lifetime, last = p .. 'g:' .. grant, 0, 0, '', {}
  local members = redis.call('ZRANGEBYSCORE', set, soon, '+inf', 'WITHSCORES')
  for i = 1, #members, 2 do
    local stored = redis.call('GET', p .. 't:' .. string.sub(members[i], 2))
    if not stored then
      redis.call('ZREM', set, members[i])
      lost = lost + 1
    else
      last[string.sub(members[i], 1, 1) == 'a' and 'access' or 'refresh'] = members[i + 1]
      login = math.max(login, tonumber(string.match(stored, '^%a %S+ %S+ %S+ (%d+)')) or 0)
      lifetime = handout(stored) or lifetime
    end
  end
  local ends = lifetime ~= '' and redis.call('ZSCORE', p .. 'grants', grant)
  if ends and redis.call('ZSCORE', p .. 'issued', grant) ~= ends then
    redis.call('ZREM', p .. 'issued', grant) -- first, for a full server
    redis.call('ZADD', p .. 'issued', ends, grant)
  end
  local isLive = last.access or last.refresh
  return lost, isLive and {grant, string.format('%.0f', login), lifetime, last.access or 0, last.refresh or 0}
end

local reply = {string.format('%.0f', now), 0, 0}
if not epoch then return reply end
local offset = tonumber(ARGV[2])
local listed = redis.call('ZRANGE', p .. 'grants', offset, offset + ARGV[3] - 1, 'WITHSCORES')
for i = 1, #listed, 2 do
  local grant, lost, found = listed[i], 0, nil
  local isChecked = grant ~= epoch and tonumber(listed[i + 1]) > now + 1000
  if isChecked then lost, found = lookAfter(grant) end
  if isChecked and not found then
    lost = math.max(lost, 1)
    announce('revoked', grant)
    remove(grant)
  else
    reply[2] = reply[2] + 1
    reply[#reply + 1] = found
  end
  reply[3] = reply[3] + lost
end
if #listed < 2 * ARGV[3] then reply[2] = -1 end
return reply
`,
)

/**
 * Ends tokens earlier. `ARGV`: prefix, then for each grant its id, and the latest end of its access tokens and of its refresh tokens. A token
 * ends in a second at the earliest, so that the next check does not take it for lost. A grant that was revoked meanwhile stays revoked.
 */
const SHORTEN = tokenScript(
  'upkeep',
  `
for i = 2, #ARGV, 3 do
  local grant, latest, isChanged = ARGV[i], {access = ARGV[i + 1], refresh = ARGV[i + 2]}, false
  local set = p .. 'g:' .. grant
  local isLive = redis.call('ZSCORE', p .. 'grants', grant)
  local members = isLive and redis.call('ZRANGE', set, 0, -1, 'WITHSCORES') or {}
  for at = 1, #members, 2 do
    local member = members[at]
    local last = math.max(now + 1000, latest[string.sub(member, 1, 1) == 'a' and 'access' or 'refresh'])
    if tonumber(members[at + 1]) > last then
      redis.call('PEXPIREAT', p .. 't:' .. string.sub(member, 2), last)
      redis.call('ZADD', set, last, member)
      isChanged = true
    end
  end
  if isChanged then redis.call('ZADD', p .. 'issued', 'XX', keep(grant), grant) end
end
return {}
`,
)

/** The arguments of `SHORTEN` for what `LOOK_AFTER` said of a grant; none if no token of the grant lasts too long. */
function tooLong(said: StoreReply, now: number, policy: Lifetimes): readonly (string | number)[] {
  const [grant, login, own, ...ends] = listOf(said).map(String)
  const found = { granted: Number(login), lifetime: own === '' ? undefined : Number(own) }
  const [access = 0, refresh = 0] = ends.map(Number)
  const latest = {
    access: Math.min(access, latestEnd('access', found, now, policy)),
    refresh: Math.min(refresh, latestEnd('refresh', found, now, policy)),
  }
  const isTooLong = latest.access < access || latest.refresh < refresh
  return isTooLong ? [String(grant), latest.access, latest.refresh] : []
}

/**
 * Checks the tokens on the server, some grants every ten seconds. So their loss is noticed (H277). A token that lasts longer than the rules
 * allow (`latestEnd`) ends earlier: it is of an earlier policy (H311), or of a login at a wrong time, whose tokens would live for decades
 * after the server's clock is set back (H278). Also notices that the server's clock was set.
 */
export function lookAfterTokens({ store, clock, policy, onLost, onClockSet, onBug }: Dependencies) {
  let offset = 0
  const askInTime = regularQuestion({ clock, every: EVERY, onBug })
  /** The bounds of the server's clock less the monotonic one (ms). The round trip of the question is their distance. */
  let ahead = { least: Number.NEGATIVE_INFINITY, most: Number.POSITIVE_INFINITY }

  async function ask(): Promise<void> {
    const asked = clock.monotonic()
    const reply = await runScript(store, LOOK_AFTER, offset, MOST)
    const [time, remaining, lost] = reply.slice(0, 3).map(Number)
    if (time === undefined || remaining === undefined || lost === undefined) return
    offset = remaining < 0 ? 0 : offset + remaining
    if (lost > 0) onLost(lost)
    const next = { least: time - clock.monotonic(), most: time - asked }
    if (next.least - ahead.most >= STEP) onClockSet(next.least - ahead.most)
    else if (ahead.least - next.most >= STEP) onClockSet(next.most - ahead.least)
    ahead = next
    const shortened = reply.slice(3).flatMap((grant) => tooLong(grant, time, policy()))
    if (shortened.length > 0) await runScript(store, SHORTEN, ...shortened)
  }

  /** Checks the next grants if it is time. Call it about once a second. */
  return function sweep(): void {
    if (store.up) askInTime(ask)
  }
}
