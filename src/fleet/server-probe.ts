import { listOf, type StoreReply } from './shared-store.ts'

/** Every command that Postern sends or runs in a script, with the fewest arguments that are valid; `KEY` stands for a key. */
export const COMMANDS: readonly string[] = [
  'DEL KEY',
  'EVAL x 0',
  'EVALSHA x 0',
  'EXISTS KEY',
  'GET KEY',
  'HGET KEY a',
  'HMGET KEY a',
  'HSET KEY a 1',
  'INCRBY KEY 1',
  'PEXPIRE KEY 1',
  'PEXPIREAT KEY 1',
  'PTTL KEY',
  'SET KEY 1',
  'TIME',
  'UNLINK KEY',
  'WAIT 1 1',
  'XADD KEY * a 1',
  'XRANGE KEY - +',
  'XREAD STREAMS KEY 0',
  'XREVRANGE KEY + -',
  'ZADD KEY 1 a',
  'ZCARD KEY',
  'ZRANGE KEY 0 1',
  'ZRANGEBYSCORE KEY 0 1',
  'ZREM KEY a',
  'ZREMRANGEBYSCORE KEY 0 1',
  'ZSCORE KEY a',
]

/**
 * Lists the commands that the user may not run (since version 7, a script can ask that). If there are none, it writes, and fails if the
 * server is full or accepts no writes. It changes nothing.
 */
const PROBE = `
  local forbidden = {}
  for _, line in ipairs(ARGV) do
    local call = {}
    for word in string.gmatch(line, '%S+') do
      call[#call + 1] = word == 'KEY' and KEYS[1] or word
    end
    if not redis.acl_check_cmd(unpack(call)) then forbidden[#forbidden + 1] = call[1] end
  end
  if #forbidden == 0 then
    redis.call('SET', KEYS[1], '1', 'PX', '1')
    redis.call('DEL', KEYS[1])
  end
  return forbidden`

/** Asks a server of version 7 or later whether it lets its user do all that Postern needs. */
export function probeQuestion(prefix: string): readonly string[] {
  return ['EVAL', PROBE, '1', `{${prefix}}:check`, ...COMMANDS]
}

/** The names of the commands that the user may not run, in the reply to that question. */
export function forbiddenIn(reply: StoreReply): readonly string[] {
  return listOf(reply).map(String)
}
