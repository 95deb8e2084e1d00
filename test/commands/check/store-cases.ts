import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { expect } from 'vitest'
import { COMMANDS } from '../../../src/fleet/server-report.ts'
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
          // The words of the alarm of a running sidecar.
        }
      },
      'a server that loads its data': async () => ({
        set: [
          `tokens.store=redis://127.0.0.1:${await startScripted('7.2.0', '-LOADING Redis is loading the dataset in memory')}`,
        ],
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
        }
      },
    },
  }),
  at('good', 'a good server and its version', { settings: SAFE }, (redis) => ({
    after: async () => expect(await redis.command('DBSIZE')).toBe('0'),
  })),
  at('good', 'the password line of the other sidecars', { settings: SAFE }, async ({ at: store }) => {
    const running = await startSidecar({ config: { tokens: { store: `valkey://${store}` } } })
    return { set: [`password.file=${running.passwordFile}`] }
  }),
  at('losing tokens', 'another password line', { settings: SAFE }, async ({ at: store }) => {
    await startSidecar({ config: { tokens: { store: `valkey://${store}` } } })
    return {}
  }),
  at(
    'losing tokens',
    'all that loses tokens, and replicas that are missing',
    { settings: ['maxmemory 100mb', 'maxmemory-policy volatile-lru'] },
    () => ({
      set: ['store.replicas=1'],
    }),
  ),
  at(
    'look failed',
    'a wrong password of the store, without it',
    { settings: ['requirepass right'], cli: ['-a', 'right', '--no-auth-warning'] },
    ({ at: store }) => ({
      set: [`tokens.store=valkey://:hunter2@${store}`],
    }),
  ),
  at('look failed', 'no file with the password of the store', {}, () => ({
    set: ['store.password_file=/none'],
  })),
  at(
    'hidden settings',
    'H137 a user with no more than the rights that Postern needs',
    { settings: [...SAFE, USER] },
    ({ at: store }) => ({
      set: [`tokens.store=valkey://postern@${store}`],
    }),
  ),
  at('missing rights', 'H137 rights that are missing', { settings: [...SAFE, USER] }, async (redis) => {
    await redis.command('ACL', 'SETUSER', 'postern', '-zadd', '-xread')
    return {
      set: [`tokens.store=valkey://postern@${redis.at}`],
    }
  }),
  at(
    'look failed',
    'H137 a user who may not choose the database',
    { settings: [...SAFE, USER] },
    ({ at: store }) => ({
      set: [`tokens.store=valkey://postern@${store}/1`],
    }),
  ),
  at('look failed', 'H137 a user who may run no script', { settings: [...SAFE, USER] }, async (redis) => {
    await redis.command('ACL', 'SETUSER', 'postern', '-eval')
    return {
      set: [`tokens.store=valkey://postern@${redis.at}`],
    }
  }),
  at('look failed', 'a server that is full', { settings: [...SAFE, 'maxmemory 1'] }, () => ({})),
  at('look failed', 'a replica', { settings: SAFE }, async (redis) => {
    const replica = await startRedis({ settings: [`replicaof ${redis.at.replace(':', ' ')}`] })
    return {
      set: [`tokens.store=valkey://${replica.at}`],
    }
  }),
]
