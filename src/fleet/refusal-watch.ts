import { listOf, type SharedStoreListener, type StoreReply, StoreUnavailable } from './shared-store.ts'

/** How often a server that refuses commands is asked whether it still does (ms). */
const PROBE_INTERVAL = 1_000

type Ask = (question: readonly string[]) => Promise<StoreReply>

/**
 * Whether a server that answers refuses commands: it is full, accepts no writes, or its user lacks a right. Asks such a server once a
 * second until it accepts all commands. Requests cannot tell: a load balancer sends none to a sidecar that is not ready, and a script that
 * succeeds may have written nothing.
 */
export function watchRefusals(
  ask: Ask,
  prefix: string,
  { refusing, accepting }: Pick<SharedStoreListener, 'refusing' | 'accepting'>,
) {
  let present: StoreUnavailable | undefined
  let timer: NodeJS.Timeout | undefined

  async function probe(): Promise<void> {
    timer = undefined
    try {
      // A refusal of the probe itself arrives as an event of the connection.
      const forbidden = await forbiddenCommands(ask, prefix)
      if (forbidden.length > 0) {
        const message = `the user of the server may not run ${forbidden.join(', ')}; see its ACL`
        return refused(new StoreUnavailable('connect', 'refused', message))
      }
    } catch {
      return
    }
    if (present === undefined) return
    present = undefined
    accepting()
  }

  function refused(error: StoreUnavailable): void {
    timer ??= setTimeout(probe, PROBE_INTERVAL)
    if (present !== undefined) return
    present = error
    refusing(error)
  }

  return {
    get present(): StoreUnavailable | undefined {
      return present
    },
    /** A connection is open: asks at once, so that a sidecar without logins knows it, too. */
    opened: () => void probe(),
    refused,
    closed(): void {
      clearTimeout(timer)
      timer = undefined
      present = undefined
    },
  }
}

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

/** The names of the commands of Postern that its user may not run. Asks a server of version 7 or later. */
export async function forbiddenCommands(ask: Ask, prefix: string): Promise<readonly string[]> {
  return listOf(await ask(['EVAL', PROBE, '1', `{${prefix}}:check`, ...COMMANDS])).map(String)
}
