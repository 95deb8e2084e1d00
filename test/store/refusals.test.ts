import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import tls from 'node:tls'
import { beforeEach, describe, expect, it } from 'vitest'
import { COMMANDS } from '../../src/fleet/server-report.ts'
import { makeCertificate, temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { unusedPort } from '../support/raw.ts'
import { startRedis, until } from '../support/redis.ts'
import { needs } from '../support/tools.ts'
import { ADD, failureOf, KEY, open, READ, REVOKE } from './opened.ts'
import { startRelay } from './relay.ts'

beforeEach(() => needs('redis-server'))

/** What a user of the server needs for the connection; the others run in scripts. */
const CONNECTION = ['eval', 'evalsha', 'xread', 'wait']
const ALL = COMMANDS.map((command) => command.replace(/ .*/, '').toLowerCase())
const userWith = (commands: readonly string[]): string =>
  `user postern on >secret ~{postern}:* ${commands.map((each) => `+${each}`).join(' ')}`
/** How often a server that refuses commands is asked whether it still does (ms). */
const ASKED_EVERY = 1_000
const LOGIN = 'see the user in tokens.store, and store.password_file'

describe('a login', () => {
  it('H137 with a wrong password is tried again, is reported once, and appears in no message', async () => {
    const redis = await startRedis({
      settings: ['requirepass hunter2'],
      cli: ['-a', 'hunter2', '--no-auth-warning'],
    })
    const wrong = await open(`valkey://:hunter3@${redis.at}`)
    await wrong.tryAgain()
    expect(wrong.failures.length).toBeGreaterThan(1)
    expect(wrong.transitions).toEqual([
      `down: refused: the server refuses the user or the password; ${LOGIN}`,
    ])
    expect(JSON.stringify(wrong.failures.map(({ message, stack }) => message + stack))).not.toMatch(/hunter/)
    const none = await open(`valkey://${redis.at}`)
    expect(none.transitions).toEqual([`down: refused: the server requires a password; ${LOGIN}`])
    await redis.command('CONFIG', 'SET', 'requirepass', 'hunter3')
    await wrong.connectAgain()
  })

  it('H137 takes the password from the file at each connection', async () => {
    const redis = await startRedis({ settings: ['user postern on >first ~* +@all'] })
    const passwordFile = join(temporaryDirectory(), 'password')
    writeFileSync(passwordFile, 'first\n')
    const { store, connectAgain } = await open(`valkey://postern@${redis.at}`, { passwordFile })
    expect(store.up).toBe(true)
    await redis.command('ACL', 'SETUSER', 'postern', 'resetpass', '>second')
    await redis.command('CLIENT', 'KILL', 'USER', 'postern')
    await expect.poll(() => store.up).toBe(false)
    writeFileSync(passwordFile, 'second\n')
    await connectAgain()
    expect(store.up).toBe(true)
  })

  it('is not attempted at start with a file that cannot be read', async () => {
    const passwordFile = join(temporaryDirectory(), 'none')
    await expect(open('valkey://127.0.0.1:1', { passwordFile })).rejects.toThrow(
      `store.password_file: cannot read ${passwordFile}: there is no such file`,
    )
    writeFileSync(passwordFile, 'no certificate')
    const tls = { ca: passwordFile }
    await expect(open('valkeys://127.0.0.1:1', { tls })).rejects.toThrow(`store.tls.ca: ${passwordFile}`)
  })

  it('as a user without a password works', async () => {
    const redis = await startRedis({ settings: ['user open on nopass ~* +@all'] })
    const { store } = await open(`valkey://open@${redis.at}`)
    expect(await store.run(ADD, [KEY], [1])).toBe(1)
  })
})

describe('a user of the server', () => {
  it('H137 needs only a few commands, and the keys of the prefix', async () => {
    const redis = await startRedis({
      settings: [userWith(ALL)],
    })
    const { store, transitions } = await open(`valkey://postern:secret@${redis.at}`, {
      replicas: 1,
      timeout: 1_000,
    })
    expect(transitions).toEqual(['up'])
    expect(await store.run(ADD, [KEY], [1])).toBe(1)
    expect(await store.run(READ, [KEY], [])).toBe('1')
    expect(await store.runDurably(REVOKE, ['{postern}:events'], ['a'])).toMatch(/^\d+-0$/)
    expect(await store.follow('{postern}:events', '0-0')).toHaveLength(1)
    const other = await store.run(ADD, ['{other}:n'], [1]).catch((error) => error)
    expect(other).toMatchObject({
      failure: 'refused',
      message: 'the user of the server may not reach the keys with store.prefix; see its ACL',
    })
    expect(store.up).toBe(true)
    await redis.command('ACL', 'SETUSER', 'postern', '-xread')
    const error = await store.follow('{postern}:events', '0-0').catch((each) => each)
    expect(error).toMatchObject({
      failure: 'refused',
      message: 'the user of the server may not run XREAD; see its ACL',
    })
  })

  it.each(CONNECTION)('H137 without %s is refused from the start', async (command) => {
    const redis = await startRedis({ settings: [userWith(ALL.filter((each) => each !== command))] })
    const { store, transitions, clock, connectAgain } = await open(`valkey://postern:secret@${redis.at}`)
    const message = `the user of the server may not run ${command.toUpperCase()}; see its ACL`
    const told = command === 'eval' ? [`down: refused: ${message}`] : ['up', `refusing: refused: ${message}`]
    await expect.poll(() => transitions).toEqual(told)
    await redis.command('ACL', 'SETUSER', 'postern', `+${command}`)
    await connectAgain()
    await clock.advance(ASKED_EVERY)
    await expect.poll(() => store.trouble).toBe(undefined)
    expect(transitions).toEqual([...told, command === 'eval' ? 'up' : 'accepting'])
  })

  it.each([
    ['SCAN', '0'],
    ['RANDOMKEY'],
    ['KEYS', '*'],
    ['SCRIPT', 'FLUSH'],
    ['FUNCTION', 'FLUSH'],
    ['GET', '{other}:n'],
  ])('H137 has no right to %s %s', async (...question) => {
    const redis = await startRedis({
      settings: [userWith(ALL)],
      cli: ['--user', 'postern', '--pass', 'secret', '--no-auth-warning'],
    })
    await expect(redis.command(...question)).rejects.toThrow('NOPERM')
  })
})

describe('a server that refuses writes', () => {
  it('H147 because it is out of memory says so once, and still reads', async () => {
    const redis = await startRedis()
    const { store, transitions, clock } = await open(`valkey://${redis.at}`)
    await store.run(ADD, [KEY], [1])
    await redis.command('CONFIG', 'SET', 'maxmemory', '1')
    const error = await store.run(ADD, [KEY], [1]).catch((each) => each)
    expect(error).toMatchObject({
      failure: 'full',
      message: 'the server is out of memory; raise its maxmemory',
    })
    expect(store.up).toBe(true)
    expect(store.trouble).toBe(error.message)
    expect(await store.run(READ, [KEY], [])).toBe('1')
    // A sidecar that begins now knows it without a login.
    const late = await open(`valkey://${redis.at}`)
    await expect.poll(() => late.store.trouble).toBe(error.message)
    await redis.command('CONFIG', 'SET', 'maxmemory', '0')
    expect(await store.run(ADD, [KEY], [1])).toBe(2)
    for (const each of [{ store, transitions, clock }, late]) {
      await each.clock.advance(ASKED_EVERY)
      await expect.poll(() => each.store.trouble).toBe(undefined)
      expect(each.transitions).toEqual(['up', `refusing: full: ${error.message}`, 'accepting'])
    }
  })

  it('H147 is asked again after a question that failed otherwise', async () => {
    const redis = await startRedis({ settings: ['lua-time-limit 50'] })
    const relay = await startRelay(redis.port)
    const url = `valkey://127.0.0.1:${relay.port}`
    const { store, transitions, clock } = await open(url, { timeout: 60_000 })
    await redis.command('CONFIG', 'SET', 'maxmemory', '1')
    expect(await failureOf(store.run(ADD, [KEY], [1]))).toBe('full')
    const busy = redis.command('EVAL', 'while true do end', '0').catch(() => {})
    await until(async () => (await failureOf(store.run(READ, [KEY], []))) === 'timeout')
    const before = relay.packets()
    await clock.advance(ASKED_EVERY)
    await expect.poll(() => relay.packets()).toBeGreaterThan(before)
    await redis.command('SCRIPT', 'KILL')
    await busy
    await redis.command('CONFIG', 'SET', 'maxmemory', '0')
    // The reply that the server is busy may still be on its way: then there is no timer yet.
    const trouble = async (): Promise<string | undefined> => {
      await clock.advance(ASKED_EVERY)
      return store.trouble
    }
    await expect.poll(trouble).toBe(undefined)
    expect(transitions.map((each) => each.split(':')[0])).toEqual(['up', 'refusing', 'accepting'])
  })

  it('H147 because it has too few replicas says so', async () => {
    const redis = await startRedis({ settings: ['min-replicas-to-write 1'] })
    const { store } = await open(`valkey://${redis.at}`)
    expect(await failureOf(store.run(ADD, [KEY], [1]))).toBe('read-only')
    expect(store.trouble).toMatch('too few replicas')
    await redis.command('CONFIG', 'SET', 'min-replicas-to-write', '0')
    expect(await store.run(ADD, [KEY], [1])).toBe(1)
  })
})

describe('the way to the server', () => {
  it('is a Unix socket', async () => {
    const path = join(temporaryDirectory(), 'redis.sock')
    await startRedis({ settings: [`unixsocket ${path}`] })
    const { store } = await open(`valkey+unix:${path}`)
    expect(await store.run(ADD, [KEY], [1])).toBe(1)
  })

  it('H137 is TLS, with a verified certificate', async () => {
    const { certFile, keyFile } = await makeCertificate()
    const port = await unusedPort()
    await startRedis({
      settings: [
        `tls-port ${port}`,
        `tls-cert-file ${certFile}`,
        `tls-key-file ${keyFile}`,
        'tls-auth-clients no',
      ],
    })
    for (const host of ['127.0.0.1', 'localhost']) {
      const { store, connectAgain } = await open(`valkeys://${host}:${port}`, { tls: { ca: certFile } })
      // Node gives up an address of `localhost` after 250 ms of its own, which a busy machine may need.
      await connectAgain()
      expect(await store.run(READ, [KEY], [])).toBe(null)
    }
    const unknown = await open(`valkeys://127.0.0.1:${port}`)
    expect(unknown.transitions).toEqual([
      expect.stringMatching(/^down: disconnected: .*self-signed certificate/),
    ])
  })

  it('H137 is TLS to the name of the URL alone', async () => {
    const { cert, key, certFile } = await makeCertificate()
    const server = tls.createServer({ cert, key }, (socket) => {
      socket.on('error', () => {})
      socket.once('data', () => expect.fail('the password reaches a server of another name'))
    })
    closeLater(() => void server.close())
    await once(server.listen(0, '127.0.0.2'), 'listening')
    const { port } = server.address() as net.AddressInfo
    const another = await open(`valkeys://:secret@127.0.0.2:${port}`, {
      tls: { ca: certFile },
    })
    expect(another.transitions).toEqual([expect.stringMatching(/^down: disconnected: .*altnames/)])
  })

  it('H137 is TLS 1.2 or 1.3', async () => {
    const { cert, key, certFile } = await makeCertificate()
    const ciphers = 'DEFAULT@SECLEVEL=0'
    const server = tls.createServer({ cert, key, minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers })
    const faults: string[] = []
    server.on('tlsClientError', ({ code }: NodeJS.ErrnoException) => faults.push(`${code}`))
    closeLater(() => void server.close())
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as net.AddressInfo
    const old = await open(`valkeys://127.0.0.1:${port}`, { tls: { ca: certFile } })
    expect(old.transitions).toEqual([expect.stringMatching(/^down: disconnected: /)])
    expect(faults[0]).toBe('ERR_SSL_UNSUPPORTED_PROTOCOL')
  })

  it('to a server that speaks another protocol fails', async () => {
    const server = net.createServer((socket) =>
      socket.on('error', () => {}).end('HTTP/1.1 400 Bad Request\r\n\r\n'),
    )
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    closeLater(() => void server.close())
    const address = server.address()
    const port = address !== null && typeof address === 'object' ? address.port : 0
    const { transitions } = await open(`valkey://127.0.0.1:${port}`)
    expect(transitions).toEqual([expect.stringMatching(/^down: disconnected: /)])
  })
})
