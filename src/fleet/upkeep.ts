import type { Clock } from '../system/clock.ts'
import { STEP } from '../system/clock-steps.ts'
import { regularQuestion } from './regular-question.ts'
import { runScript, tokenScript } from './scripts.ts'
import type { SharedStore } from './shared-store.ts'

interface Dependencies {
  readonly store: SharedStore
  readonly clock: Clock
  /** Of access and refresh tokens (ms). */
  readonly lifetimes: readonly [number, number]
  /** How long a login lasts now (ms); empty: without end. */
  readonly grantLasts: () => number | ''
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
 * - A token that outlives its login (it is of an earlier policy): from now on it ends with the login, or in a second if the login is over.
 * - A token of a login "in the future" (the server's clock was set back): from now on it has at most its lifetime.
 * - An issued grant that is missing in the list `issued`: added again.
 *
 * `ARGV`: prefix, offset, most grants, lifetimes of access and refresh tokens, how long a login lasts (ms; empty: without end). Returns
 * `{time, remaining, lost tokens}`. `remaining`: the checked grants that still exist; -1 at the end of the list.
 */
const LOOK_AFTER = tokenScript(
  'upkeep',
  `
-- A key may expire a moment before its entry in the list.
local soon = now + 1000
local lifetimes = {a = tonumber(ARGV[4]), r = tonumber(ARGV[5]), s = tonumber(ARGV[5])}
local lasts = tonumber(ARGV[6]) or math.huge

local function lookAfter(grant)
  local set, lost, live, isChanged, isIssued = p .. 'g:' .. grant, 0, 0, false, false
  local members = redis.call('ZRANGEBYSCORE', set, '(' .. string.format('%.0f', soon), '+inf', 'WITHSCORES')
  for i = 1, #members, 2 do
    local member, kind, key = members[i], string.sub(members[i], 1, 1), p .. 't:' .. string.sub(members[i], 2)
    local stored = redis.call('GET', key)
    local granted = stored and tonumber(string.match(stored, '^%a %S+ %S+ %S+ (%d+)'))
    if not stored then
      redis.call('ZREM', set, member)
      lost = lost + 1
    else
      live = live + 1
      local own = handout(stored)
      local lifetime = tonumber(own) or lifetimes[kind]
      isIssued = own ~= nil
      local last = math.huge
      if granted and granted > soon and lifetime then last = now + lifetime end
      if granted and not own then last = math.min(last, math.max(soon, math.min(granted, now) + lasts)) end
      if tonumber(members[i + 1]) > last then
        redis.call('PEXPIREAT', key, last)
        redis.call('ZADD', set, last, member)
        isChanged = true
      end
    end
  end
  if isChanged then keep(grant) end
  local ends = isIssued and redis.call('ZSCORE', p .. 'grants', grant)
  if ends and redis.call('ZSCORE', p .. 'issued', grant) ~= ends then
    redis.call('ZREM', p .. 'issued', grant) -- first, for a full server
    redis.call('ZADD', p .. 'issued', ends, grant)
  end
  return lost, live
end

local reply = {string.format('%.0f', now), 0, 0}
if not epoch then return reply end
local offset = tonumber(ARGV[2])
local listed = redis.call('ZRANGE', p .. 'grants', offset, offset + ARGV[3] - 1, 'WITHSCORES')
for i = 1, #listed, 2 do
  local grant, lost, live = listed[i], 0, 1
  if grant ~= epoch and tonumber(listed[i + 1]) > soon then lost, live = lookAfter(grant) end
  if live > 0 then
    reply[2] = reply[2] + 1
  else
    lost = math.max(lost, 1)
    announce('revoked', grant)
    remove(grant)
  end
  reply[3] = reply[3] + lost
end
if #listed < 2 * ARGV[3] then reply[2] = -1 end
return reply
`,
)

/**
 * Checks the tokens on the server, some grants every ten seconds. So their loss is noticed (H277), and a login at a wrong time leaves no
 * tokens that live for decades after the server's clock is set back (H278). Also notices that the server's clock was set.
 */
export function lookAfterTokens({
  store,
  clock,
  lifetimes,
  grantLasts,
  onLost,
  onClockSet,
  onBug,
}: Dependencies) {
  let offset = 0
  const askInTime = regularQuestion({ clock, every: EVERY, onBug })
  /** The bounds of the server's clock less the monotonic one (ms). The round trip of the question is their distance. */
  let ahead = { least: Number.NEGATIVE_INFINITY, most: Number.POSITIVE_INFINITY }

  async function ask(): Promise<void> {
    const asked = clock.monotonic()
    const reply = await runScript(store, LOOK_AFTER, offset, MOST, ...lifetimes, grantLasts())
    const [time, remaining, lost] = reply.map(Number)
    if (time === undefined || remaining === undefined || lost === undefined) return
    offset = remaining < 0 ? 0 : offset + remaining
    if (lost > 0) onLost(lost)
    const next = { least: time - clock.monotonic(), most: time - asked }
    if (next.least - ahead.most >= STEP) onClockSet(next.least - ahead.most)
    else if (ahead.least - next.most >= STEP) onClockSet(next.most - ahead.least)
    ahead = next
  }

  /** Checks the next grants if it is time. Call it about once a second. */
  return function sweep(): void {
    if (store.up) askInTime(ask)
  }
}
