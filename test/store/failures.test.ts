import { describe, expect, it } from 'vitest'
import { isAtWrongServer, noReply, ServerReplyError, unavailable } from '../../src/fleet/shared-store.ts'

describe('the failure of a question', () => {
  it.each([
    [
      "READONLY You can't write against a read only replica. script: 0a, on @user_script:1.",
      'read-only',
      true,
    ],
    [
      'UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)',
      'read-only',
      true,
    ],
    ["MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", 'read-only', true],
    [
      'MISCONF Redis is configured to save RDB snapshots, but is unable to persist to disk.',
      'read-only',
      false,
    ],
    ['NOREPLICAS Not enough good replicas to write.', 'read-only', false],
    ["OOM command not allowed when used memory > 'maxmemory'.", 'full', false],
    ['WRONGPASS invalid username-password pair or user is disabled.', 'refused', false],
    ['NOAUTH Authentication required.', 'refused', true],
    ["NOPERM User a has no permissions to run the 'eval' command", 'refused', false],
    ['LOADING Redis is loading the dataset in memory', 'loading', false],
    ['MOVED 3999 127.0.0.1:6381', 'error', false],
    ['BUSY Redis is busy running a script.', 'timeout', false],
    ['ERR unknown command', 'error', false],
    ['WRONGTYPE Operation against a key holding the wrong kind of value', 'error', false],
  ])('by the reply %j is %s', (text, failure, moved) => {
    const error = new ServerReplyError(text)
    expect(unavailable('lookup', error)).toMatchObject({ operation: 'lookup', failure })
    expect(isAtWrongServer(error)).toBe(moved)
  })

  it('by the end of the connection has its reason, under the name of each operation', () => {
    expect(unavailable('count', new Error('connect ECONNREFUSED'))).toMatchObject({
      operation: 'count',
      failure: 'disconnected',
      message: 'connect ECONNREFUSED',
    })
    const several = new AggregateError([new Error('connect ECONNREFUSED ::1:1'), new Error('x')])
    expect(unavailable('count', several).message).toBe('connect ECONNREFUSED ::1:1')
    expect(unavailable('follow', noReply(1500))).toMatchObject({
      operation: 'follow',
      failure: 'timeout',
      message: 'the server does not reply within 1500ms',
    })
  })

  it('H137 quotes no key and no argument', () => {
    const text =
      'ERR Error of \'hunter2\' and "hunter2" at {postern}:t:hunter2 script: hunter2, on @user_script:1.'
    const { message } = unavailable('lookup', new ServerReplyError(text))
    expect(message).not.toContain('hunter2')
  })
})
