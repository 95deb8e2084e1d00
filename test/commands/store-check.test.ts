import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import type { CheckResult } from '../../src/commands/check/finding.ts'
import { STORE } from '../../src/commands/check/store.ts'
import { loadConfig } from '../../src/config/load.ts'
import { COMMANDS } from '../../src/fleet/server-report.ts'
import { KINDS } from '../../src/overview/alarm-kinds.ts'
import { closeLater } from '../support/cleanup.ts'
import { unusedPort } from '../support/raw.ts'
import { startRedis } from '../support/redis.ts'
import { startSidecar } from '../support/sidecar.ts'
import { readTree } from '../support/source-tree.ts'
import { needs } from '../support/tools.ts'

const SAFE = ['appendonly yes']
const LEAST = COMMANDS.map((command) => `+${command.replace(/ .*/, '').toLowerCase()}`).join(' ')

/** Runs the check of a shared store. */
async function check(...sets: readonly string[]): Promise<CheckResult & { readonly exitCode: number }> {
  const device = ['upstream.url=http://127.0.0.1', 'password.file=/none']
  const config = loadConfig({ env: {}, sets: [...device, ...sets] })
  const asked = { config, file: undefined, places: {}, pages: [], uploads: undefined }
  const [run] = STORE.runs(asked, () => undefined)
  if (run === undefined) throw new Error('no check')
  const { result, exitCode } = await run()
  return { ...result, exitCode }
}

describe('the check of a shared store', () => {
  beforeEach(() => needs('redis-server'))

  it('names a good server and its version', async () => {
    const redis = await startRedis({ settings: SAFE })
    expect(await check(`tokens.store=valkey://${redis.at}`)).toEqual({
      name: 'shared store',
      result: 'ok',
      message: expect.stringMatching(new RegExp(`^${redis.at} is Redis \\d+\\.\\d+\\.\\d+$`)),
      meaning: null,
      remedy: null,
      exitCode: 0,
    })
    expect(await redis.command('DBSIZE')).toBe('0')
  })

  it('warns if the password file has another line than that of the other sidecars', async () => {
    const redis = await startRedis({ settings: SAFE })
    const store = `tokens.store=valkey://${redis.at}`
    const running = await startSidecar({ config: { tokens: { store: `valkey://${redis.at}` } } })
    expect(await check(store, `password.file=${running.passwordFile}`)).toMatchObject({ result: 'ok' })
    writeFileSync(join(running.directory, 'other'), 'another password\n', { mode: 0o600 })
    const other = await check(store, `password.file=${join(running.directory, 'other')}`)
    expect(other).toMatchObject({ result: 'warning', exitCode: 0 })
    expect(other.message).toContain('another sidecar has stored another password there')
  })

  it('fails without a server, and serve starts nevertheless', async () => {
    const port = await unusedPort()
    expect(await check(`tokens.store=valkey://127.0.0.1:${port}`)).toEqual({
      name: 'shared store',
      result: 'failed',
      message: `connect ECONNREFUSED 127.0.0.1:${port}`,
      // The words of the alarm of a running sidecar.
      meaning: KINDS.PosternSharedStoreDown.meaning,
      remedy:
        'start the server, or correct the host, the port and TLS (valkeys://) in tokens.store, or store.tls.ca',
      exitCode: 1,
    })
  })

  it('fails for a wrong password, and for a password file that keeps serve from starting', async () => {
    const redis = await startRedis({
      settings: ['requirepass right'],
      cli: ['-a', 'right', '--no-auth-warning'],
    })
    const wrong = await check(`tokens.store=valkey://:hunter2@${redis.at}`)
    expect(wrong).toMatchObject({
      result: 'failed',
      message: expect.stringMatching(/^the server refuses the user or the password/),
      remedy: 'correct the user in tokens.store, or the password in store.password_file',
      exitCode: 1,
    })
    expect(JSON.stringify(wrong)).not.toContain('hunter2')
    expect(await check(`tokens.store=valkey://${redis.at}`, 'store.password_file=/none')).toMatchObject({
      message: expect.stringMatching(/^store\.password_file: cannot read \/none: there is no such file$/),
      exitCode: 2,
    })
  })

  it('H137 accepts a user with no more than the rights that Postern needs, and names a right that is missing', async () => {
    const redis = await startRedis({ settings: [...SAFE, `user postern on nopass ~{postern}:* ${LEAST}`] })
    const url = `tokens.store=valkey://postern@${redis.at}`
    expect(await check(url)).toMatchObject({
      result: 'ok',
      message: expect.stringMatching(/; the user may not read its settings$/),
    })
    await redis.command('ACL', 'SETUSER', 'postern', '-zadd', '-xread')
    expect(await check(url)).toMatchObject({
      result: 'failed',
      message: 'the user may not run XREAD, ZADD',
      remedy: 'ACL SETUSER postern ~{postern}:* +xread +zadd',
    })
    expect(await check(`${url}/1`)).toMatchObject({
      message: 'the user of the server may not run SELECT; see its ACL',
      remedy: `ACL SETUSER postern ~{postern}:* ${LEAST} +select`,
    })
    await redis.command('ACL', 'SETUSER', 'postern', '-eval')
    expect(await check(url)).toMatchObject({
      message: 'the user of the server may not run EVAL; see its ACL',
      remedy: `ACL SETUSER postern ~{postern}:* ${LEAST}`,
    })
  })

  it('accepts the user of the ACL file that Postern comes with', async () => {
    const template = readFileSync(join(import.meta.dirname, '../../deploy/fleet/users.acl.template'), 'utf8')
    const [user = ''] = /^user postern .*/m.exec(template) ?? []
    const redis = await startRedis({ settings: [...SAFE, user.replace('#DIGEST', 'nopass')] })
    expect(await check(`tokens.store=valkey://postern@${redis.at}`)).toMatchObject({ result: 'ok' })
  })

  it('fails at a replica, and at a server that is full', async () => {
    const redis = await startRedis({ settings: [...SAFE, 'maxmemory 1'] })
    expect(await check(`tokens.store=valkey://${redis.at}`)).toMatchObject({
      result: 'failed',
      message: 'the server is out of memory; raise its maxmemory',
    })
    const replica = await startRedis({ settings: [`replicaof ${redis.at.replace(':', ' ')}`] })
    expect(await check(`tokens.store=valkey://${replica.at}`)).toMatchObject({
      result: 'failed',
      message: 'the server is a replica, which accepts no writes',
    })
  })

  it('fails at a server that is too old, and at one that still loads its data', async () => {
    const old = await startScripted('6.2.7', ':1')
    expect(await check(`tokens.store=redis://127.0.0.1:${old}`)).toMatchObject({
      result: 'failed',
      message: `127.0.0.1:${old} is Redis 6.2.7, which is too old`,
      remedy: 'update it to version 7 or later, of Redis or Valkey',
      exitCode: 1,
    })
    const loading = await startScripted('7.2.0', '-LOADING Redis is loading the dataset in memory')
    expect(await check(`tokens.store=redis://127.0.0.1:${loading}`)).toMatchObject({
      result: 'failed',
      message: 'the server loads its data after a start',
      remedy: 'wait until the server has its data',
    })
  })

  it('warns of what loses tokens, and of replicas that are missing', async () => {
    const redis = await startRedis({ settings: ['maxmemory 100mb', 'maxmemory-policy volatile-lru'] })
    const found = await check(`tokens.store=valkey://${redis.at}`, 'store.replicas=1')
    expect(found).toMatchObject({ result: 'warning', exitCode: 0 })
    expect(found.message.split('; ').slice(1)).toEqual([
      'it evicts keys when its memory is full (maxmemory-policy volatile-lru)',
      'it saves nothing to disk',
      'it has 0 of 1 replicas',
    ])
    expect(found.remedy?.split('; ')).toEqual([
      'set maxmemory-policy to noeviction',
      'set appendonly to yes',
      'start the replicas, or set store.replicas to 0',
    ])
  })
})

describe('the commands that check knows', () => {
  it('H137 are those of all scripts', () => {
    const root = join(import.meta.dirname, '../..')
    const known = new Set(COMMANDS.map((command) => command.replace(/ .*/, '')))
    const used = [...readTree(root, 'src').keys()].flatMap((file) =>
      [...readFileSync(join(root, file), 'utf8').matchAll(/redis\.p?call\('([A-Z]+)'/g)].map(
        ([, name]) => name,
      ),
    )
    expect(used.length).toBeGreaterThan(20)
    expect(used.filter((name) => name !== undefined && !known.has(name))).toEqual([])
  })
})

/** A server that says it is a Redis of this version, and answers every script with one line. Resolves with its port. */
async function startScripted(version: string, reply: string): Promise<number> {
  const text = (value: string): string => `$${value.length}\r\n${value}\r\n`
  const facts = ['server', 'redis', 'version', version, 'mode', 'standalone', 'role', 'master']
  const hello = `*${facts.length}\r\n${facts.map(text).join('')}`
  const server = net.createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      for (const [command] of bytes.toString('latin1').matchAll(/^(?:HELLO|EVAL)\r$/gm))
        socket.write(command.startsWith('HELLO') ? hello : `${reply}\r\n`)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closeLater(() => void server.close())
  const address = server.address()
  return address !== null && typeof address === 'object' ? address.port : 0
}
