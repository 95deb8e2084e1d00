import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { COMMANDS } from '../../src/fleet/server-report.ts'
import { makeCertificate, temporaryDirectory } from '../support/certificate.ts'
import { fencesOf, replaceIn, shellBlock } from '../support/pages.ts'
import { unusedPort } from '../support/raw.ts'
import { startRedis } from '../support/redis.ts'
import { startSidecar } from '../support/sidecar.ts'
import { isInstalled, needs, needsRoot, run } from '../support/tools.ts'
import { type FleetSite, startFleetSite } from './fleet-site.ts'
import { judgeCompose } from './judge-compose.ts'

const FLEET = join(import.meta.dirname, '../../deploy/fleet')
const text = readFileSync(join(FLEET, 'compose.yaml'), 'utf8')
const compose = parse(text, { merge: true })
const services = Object.entries<{
  readonly volumes?: readonly string[]
  readonly secrets?: readonly string[]
}>(compose.services)

/** A copy of `deploy/fleet` in which an operator has run the commands of the page, up to Docker. */
async function prepared(): Promise<string> {
  needs('openssl')
  const root = temporaryDirectory()
  const folder = join(root, 'deploy/fleet')
  cpSync(FLEET, folder, { recursive: true })
  const docker = join(root, 'docker')
  writeFileSync(docker, '#!/bin/sh\ncase "$1" in run) cat;; *) echo "$@" > asked;; esac\n', { mode: 0o755 })
  const block = shellBlock('docs/fleet.md', 'docker compose up')
  const script = `stty() { :; }\n${process.getuid?.() === 0 ? '' : 'chgrp() { :; }\n'}${block}`
  const made = await run('sh', ['-e', '-c', script], {
    cwd: root,
    env: { PATH: `${root}:${process.env.PATH}` },
    input: 'secret\n',
  })
  expect(made).toMatchObject({ code: 0, stderr: 'Password: ' })
  expect(readFileSync(join(folder, 'asked'), 'utf8')).toBe('compose up -d\n')
  return folder
}

describe('deploy/fleet/compose.yaml', () => {
  it('is one that docker-compose takes', async () => {
    expect(await judgeCompose(text)).toBe('')
  })

  it('names only files of its folder, and those that the commands of the page make, which Git ignores', async () => {
    const mounted = services.flatMap(([, { volumes = [] }]) =>
      volumes.map((each) => each.split(':')[0] ?? ''),
    )
    expect(mounted.filter((each) => each.startsWith('./') && !existsSync(join(FLEET, each)))).toEqual([])
    const volumes = mounted.filter((each) => !each.startsWith('./'))
    expect(volumes.toSorted()).toEqual(Object.keys(compose.volumes).toSorted())
    const secrets = Object.keys(compose.secrets)
    expect(new Set(services.flatMap(([, { secrets = [] }]) => secrets))).toEqual(new Set(secrets))
    const folder = await prepared()
    expect(secrets.filter((name) => !existsSync(join(folder, compose.secrets[name].file)))).toEqual([])
    expect(existsSync(join(folder, 'key.pem'))).toBe(false)
    const ignored = readFileSync(join(FLEET, '../../.gitignore'), 'utf8').split('\n')
    expect(ignored).toEqual(expect.arrayContaining(secrets.map((name) => `/deploy/fleet/${name}`)))
    expect(existsSync(join(FLEET, compose.services['postern-1'].build.context, 'deploy/Dockerfile'))).toBe(
      true,
    )
  })

  it('lets only the sidecars reach Valkey and the device, and only the entry be reached', () => {
    const networksOf = (name: string): readonly string[] => {
      const { networks } = compose.services[name]
      return Array.isArray(networks) ? networks : Object.keys(networks)
    }
    expect(Object.fromEntries(services.map(([name]) => [name, networksOf(name)]))).toEqual({
      entry: ['clients', 'inside'],
      'postern-1': ['inside', 'store', 'device'],
      'postern-2': ['inside', 'store', 'device'],
      valkey: ['store'],
      device: ['device'],
    })
    expect(services.filter(([, service]) => 'ports' in service).map(([name]) => name)).toEqual(['entry'])
    for (const name of ['inside', 'store', 'device']) expect(compose.networks[name].internal).toBe(true)
  })
})

describe('the account of the sidecars at the store', () => {
  it('H137 has the rights to the commands that sidecars use, and to no others', () => {
    const template = readFileSync(join(FLEET, 'users.acl.template'), 'utf8')
    const granted = [...template.matchAll(/ \+(\S+)/g)].map(([, name]) => name)
    expect(granted).toEqual(COMMANDS.map((command) => command.replace(/ .*/, '').toLowerCase()))
  })

  it('H137 may do what sidecars do with the keys of its prefix, and nothing else', async () => {
    for (const tool of ['redis-server', 'redis-cli']) needs(tool)
    const folder = await prepared()
    const settings = readFileSync(join(FLEET, 'valkey.conf'), 'utf8')
      .replace('/run/secrets', folder)
      .replace(/^port .*/m, '')
    const { port } = await startRedis({ settings: [settings] })
    const REDISCLI_AUTH = readFileSync(join(folder, 'store-password'), 'utf8').trim()
    const ask = async (...command: readonly string[]): Promise<string> => {
      const flags = ['-p', String(port), '--no-auth-warning', '--user', 'postern', ...command]
      return (await run('redis-cli', flags, { env: { PATH: process.env.PATH, REDISCLI_AUTH } })).stdout.trim()
    }
    const script = "redis.call('HSET', KEYS[1], 'epoch', 1) return redis.call('TIME')[1]"
    expect(await ask('EVAL', script, '1', '{postern}:state')).toMatch(/^\d{10,}$/)
    expect(await ask('XADD', '{postern}:events', '*', 'a', 'b')).toMatch(/^\d+-\d$/)
    expect(await ask('XREAD', 'BLOCK', '10', 'STREAMS', '{postern}:events', '$')).toBe('')
    expect(await ask('WAIT', '0', '10')).toBe('0')
    for (const command of [
      'GET other',
      'GET postern:x',
      'KEYS *',
      'SCAN 0',
      'RANDOMKEY',
      'DBSIZE',
      'SCRIPT FLUSH',
      'FUNCTION FLUSH',
      'CLIENT LIST',
      'FLUSHALL',
      'CONFIG GET *',
      'ACL LIST',
      'MONITOR',
      'SHUTDOWN',
      'REPLICAOF a 1',
    ]) {
      expect([command, await ask(...command.split(' '))]).toEqual([command, expect.stringMatching(/^NOPERM/)])
    }
    const anonymous = await run('redis-cli', ['-p', String(port), 'PING'])
    expect(anonymous.stdout).toContain('NOAUTH')
    expect(await ask('INFO', 'persistence')).toMatch(/^NOPERM/)
  })
})

describe('the store on a machine of its own', () => {
  it('H137 serves sidecars by TLS alone, with the settings of the page behind those of Debian', async () => {
    needs('redis-server')
    const [block] = fencesOf('docs/fleet.md').filter(({ text }) => text.includes('tls-port'))
    const { certFile, keyFile } = await makeCertificate()
    const [cleartext, port] = [await unusedPort(), await unusedPort()]
    const settings = [
      ['192.0.2.11', '127.0.0.2'],
      ['/etc/redis/tls/cert.pem', certFile],
      ['/etc/redis/tls/key.pem', keyFile],
      ['tls-port 6379', `tls-port ${port}`],
    ].reduce((lines, [text = '', by = '']) => replaceIn(lines, text, by), block?.text ?? '')
    await startRedis({ port: cleartext, settings: ['protected-mode yes', settings] })
    const sidecar = await startSidecar({
      config: {
        tokens: { store: `valkeys://127.0.0.1:${port}` },
        store: { tls: { ca: certFile } },
      },
      bounds: { store: { timeout: 10_000 } },
    })
    expect((await sidecar.request({ token: await sidecar.token() })).status).toBe(200)
    expect(await Promise.all([connectsTo(port, '127.0.0.2'), connectsTo(port, '127.0.0.3')])).toEqual([
      true,
      false,
    ])
    expect(await connectsTo(cleartext, '127.0.0.1')).toBe(false)
  })
})

/** Whether a server listens there. */
function connectsTo(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(port, host)
    socket
      .once('error', () => resolve(false))
      .once('connect', () => {
        socket.destroy()
        resolve(true)
      })
  })
}

const TOOLS = ['haproxy', 'redis-server', 'ip', 'nsenter', 'unshare', 'curl', 'openssl']

describe('the fleet of deploy/fleet', () => {
  let site: FleetSite | undefined

  beforeAll(async () => {
    if (process.getuid?.() !== 0 || !TOOLS.every(isInstalled)) return
    site = await startFleetSite(await prepared(), compose)
  })

  function fleet(): FleetSite {
    needsRoot()
    for (const tool of TOOLS) needs(tool)
    return site ?? expect.fail('beforeAll starts it')
  }

  it('has an entry whose configuration HAProxy accepts without a warning', async () => {
    const { inside, folder } = fleet()
    expect(await inside('haproxy', '-c', '-q', '-f', join(folder, 'haproxy.cfg'))).toMatchObject({
      code: 0,
      stderr: '',
    })
  })

  it('has sidecars that are healthy, and both get requests', async () => {
    const { sidecars, status, postern } = fleet()
    for (const { env } of sidecars) expect(await postern(env, 'healthy')).toMatchObject({ code: 0 })
    for (let i = 0; i < 10; i += 1) expect(await status('127.0.0.2')).toBe(401)
    for (const { requests } of sidecars) expect(await requests()).toBeGreaterThan(0)
  })

  it('counts each client once for both, whatever it claims in X-Forwarded-For', async () => {
    const { remaining } = fleet()
    const left: number[] = []
    for (let i = 0; i < 5; i += 1) left.push(await remaining('127.0.0.3'))
    expect(left).toEqual([59, 58, 57, 56, 55])
    expect(await remaining('127.0.0.4', 'X-Forwarded-For: 127.0.0.3')).toBe(59)
  })

  it('accepts a token of one sidecar at both', async () => {
    const { use, sidecars } = fleet()
    const before = await Promise.all(sidecars.map(({ requests }) => requests()))
    expect(await use('127.0.0.6', 10)).toEqual(Array(10).fill(200))
    for (const [i, { requests }] of sidecars.entries())
      expect(await requests()).toBeGreaterThan(before[i] ?? 0)
  })

  it('goes on when a sidecar is killed', async () => {
    const { sidecars, status } = fleet()
    await sidecars[0]?.kill()
    for (let i = 0; i < 10; i += 1) expect(await status('127.0.0.5')).toBe(401)
  })
})
