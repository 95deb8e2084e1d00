import type { RedisServer } from '../support/redis.ts'

/** Time passes for the windows of a server: each of them closes so much (ms) earlier. */
export async function passOnServer(redis: RedisServer, ms: number): Promise<void> {
  const script = `
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left > 0 then redis.call('PEXPIRE', key, left - tonumber(ARGV[1])) end
end`
  await redis.command('EVAL', script, '0', String(ms))
}
