import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { expect } from 'vitest'
import { COMMANDS } from '../../../src/fleet/server-report.ts'
import { KINDS } from '../../../src/overview/alarm-kinds.ts'
import { closeLater } from '../../support/cleanup.ts'
import { unusedPort } from '../../support/raw.ts'
import { type RedisOptions, type RedisServer, startRedis } from '../../support/redis.ts'
import { startSidecar } from '../../support/sidecar.ts'
import { needs } from '../../support/tools.ts'
import { type Case, casesOf, type Given } from './case.ts'

const SAFE = ['appendonly yes']
const LEAST = COMMANDS.map((command) => `+${command.replace(/ .*/, '').toLowerCase()}`).join(' ')
const USER = `user postern on nopass ~{postern}:* ${LEAST}`

/** A case with a server of its own. */
function at(
  row: string,
  title: string,
  options: RedisOptions,
  given: (redis: RedisServer) => Given | Promise<Given>,
): Case {
  return {
    part: 'shared store',
    row,
    title,
    async given() {
      needs('redis-server')
      const redis = await startRedis(options)
      const { set = [], ...rest } = await given(redis)
      return { set: [`tokens.store=valkey://${redis.at}`, ...set], ...rest }
    },
  }
}

/** A server that says it is a Redis of this version, and answers every script with one line. Resolves with its port. */
async function startScripted(version: string, reply: string): Promise<number> {
  const text = (value: string): string => `$${value.length}\r\n${value}\r\n`
  const facts = ['server', 'redis', 'version', version, 'mode', 'standalone', 'role', 'master']
  const hello = `*${facts.length}\r\n${facts.map(text).join('')}`
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      for (const [command] of bytes.toString('latin1').matchAll(/^(?:HELLO|EVAL)\r$/gm))
        socket.write(command.startsWith('HELLO') ? hello : `${reply}\r\n`)
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  closeLater(() => void server.close())
  return (server.address() as AddressInfo).port // listening on TCP
}

const template = (): string =>
  readFileSync(join(import.meta.dirname, '../../../deploy/fleet/users.acl.template'), 'utf8')

export const STORE_CASES: readonly Case[] = [
  ...casesOf('shared store', {
    'look failed': {
      async 'no server'() {
        const port = await unusedPort()
        return {
          set: [`tokens.store=valkey://127.0.0.1:${port}`],
          says: `connect ECONNREFUSED 127.0.0.1:${port}`,
          // The words of the alarm of a running sidecar.
          means: KINDS.PosternSharedStoreDown.meaning,
          remedy:
            'start the server, or correct the host, the port and TLS (valkeys://) in tokens.store, or store.tls.ca',
          result: 'failed',
        }
      },
      'a server that loads its data': async () => ({
        set: [
          `tokens.store=redis://127.0.0.1:${await startScripted('7.2.0', '-LOADING Redis is loading the dataset in memory')}`,
        ],
        says: 'the server loads its data after a start',
        remedy: 'wait until the server has its data',
        result: 'failed',
      }),
    },
    'hidden settings': {
      async 'the user of the ACL file that Postern comes with'() {
        needs('redis-server')
        const [user = ''] = /^user postern .*/m.exec(template()) ?? []
        const redis = await startRedis({ settings: [...SAFE, user.replace('#DIGEST', 'nopass')] })
        return { set: [`tokens.store=valkey://postern@${redis.at}`], says: /is Redis/, result: 'ok' }
      },
    },
    'too old': {
      async 'a server that is too old'() {
        const port = await startScripted('6.2.7', ':1')
        return {
          set: [`tokens.store=redis://127.0.0.1:${port}`],
          says: `127.0.0.1:${port} is Redis 6.2.7, which is too old`,
          remedy: 'update it to version 7 or later, of Redis or Valkey',
          result: 'failed',
        }
      },
    },
  }),
  at('good', 'a good server and its version', { settings: SAFE }, (redis) => ({
    says: new RegExp(`^${redis.at} is Redis \\d+\\.\\d+\\.\\d+$`),
    after: async () => expect(await redis.command('DBSIZE')).toBe('0'),
  })),
  at('good', 'the password line of the other sidecars', { settings: SAFE }, async ({ at: store }) => {
    const running = await startSidecar({ config: { tokens: { store: `valkey://${store}` } } })
    return { set: [`password.file=${running.passwordFile}`], says: /is Redis/, result: 'ok' }
  }),
  at('losing tokens', 'another password line', { settings: SAFE }, async ({ at: store }) => {
    await startSidecar({ config: { tokens: { store: `valkey://${store}` } } })
    return {
      says: /; another sidecar has stored another password there$/,
      remedy: 'give all sidecars with this store.prefix the same line in their password files',
      result: 'warning',
    }
  }),
  at(
    'losing tokens',
    'all that loses tokens, and replicas that are missing',
    { settings: ['maxmemory 100mb', 'maxmemory-policy volatile-lru'] },
    ({ at: store }) => ({
      set: ['store.replicas=1'],
      says: new RegExp(
        `^${store} is Redis [\\d.]+; it evicts keys when its memory is full \\(maxmemory-policy volatile-lru\\); it saves nothing to disk; it has 0 of 1 replicas$`,
      ),
      remedy:
        'set maxmemory-policy to noeviction; set appendonly to yes; start the replicas, or set store.replicas to 0',
      result: 'warning',
    }),
  ),
  at(
    'look failed',
    'a wrong password of the store, without it',
    { settings: ['requirepass right'], cli: ['-a', 'right', '--no-auth-warning'] },
    ({ at: store }) => ({
      set: [`tokens.store=valkey://:hunter2@${store}`],
      says: /^the server refuses the user or the password(?!.*hunter2)/,
      remedy: 'correct the user in tokens.store, or the password in store.password_file',
      result: 'failed',
    }),
  ),
  at('look failed', 'no file with the password of the store', {}, () => ({
    set: ['store.password_file=/none'],
    says: 'store.password_file: cannot read /none: there is no such file',
    exitCode: 2,
  })),
  at(
    'hidden settings',
    'H137 a user with no more than the rights that Postern needs',
    { settings: [...SAFE, USER] },
    ({ at: store }) => ({
      set: [`tokens.store=valkey://postern@${store}`],
      says: /; the user may not read its settings$/,
      result: 'ok',
    }),
  ),
  at('missing rights', 'H137 rights that are missing', { settings: [...SAFE, USER] }, async (redis) => {
    await redis.command('ACL', 'SETUSER', 'postern', '-zadd', '-xread')
    return {
      set: [`tokens.store=valkey://postern@${redis.at}`],
      says: 'the user may not run XREAD, ZADD',
      remedy: 'ACL SETUSER postern ~{postern}:* +xread +zadd',
      result: 'failed',
    }
  }),
  at(
    'look failed',
    'H137 a user who may not choose the database',
    { settings: [...SAFE, USER] },
    ({ at: store }) => ({
      set: [`tokens.store=valkey://postern@${store}/1`],
      says: 'the user of the server may not run SELECT; see its ACL',
      remedy: `ACL SETUSER postern ~{postern}:* ${LEAST} +select`,
      result: 'failed',
    }),
  ),
  at('look failed', 'H137 a user who may run no script', { settings: [...SAFE, USER] }, async (redis) => {
    await redis.command('ACL', 'SETUSER', 'postern', '-eval')
    return {
      set: [`tokens.store=valkey://postern@${redis.at}`],
      says: 'the user of the server may not run EVAL; see its ACL',
      remedy: `ACL SETUSER postern ~{postern}:* ${LEAST}`,
      result: 'failed',
    }
  }),
  at('look failed', 'a server that is full', { settings: [...SAFE, 'maxmemory 1'] }, () => ({
    says: 'the server is out of memory; raise its maxmemory',
    result: 'failed',
  })),
  at('look failed', 'a replica', { settings: SAFE }, async (redis) => {
    const replica = await startRedis({ settings: [`replicaof ${redis.at.replace(':', ' ')}`] })
    return {
      set: [`tokens.store=valkey://${replica.at}`],
      says: 'the server is a replica, which accepts no writes',
      result: 'failed',
    }
  }),
]
