import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  type Configuration,
  createSidecar,
  type PasswordFunctions,
  type Sidecar,
  type Source,
} from '../src/api.ts'
import { clientOf } from './process/serve.ts'
import { temporaryDirectory } from './support/certificate.ts'
import { closeLater } from './support/cleanup.ts'
import { type Device, startDevice } from './support/device.ts'
import { rawConnection, unusedPort } from './support/raw.ts'
import { HASHED_PASSWORD } from './support/sidecar.ts'

interface Place {
  readonly device: Device
  readonly directory: string
  readonly config: Configuration
}

/** A device and a configuration of a sidecar in front of it, as a program would write it. */
async function preparePlace(): Promise<Place> {
  const device = await startDevice()
  const directory = temporaryDirectory()
  const file = join(directory, 'password')
  writeFileSync(file, `${HASHED_PASSWORD}\n`, { mode: 0o600 })
  const config = {
    listen: { address: `127.0.0.1:${await unusedPort()}`, tls: 'off' },
    admin: { address: '127.0.0.1:0' },
    upstream: { url: device.url, health: { path: '/health' } },
    password: { file },
    limits: { wrong_passwords: 'slow' },
    realm: undefined,
    state_dir: join(directory, 'state'),
  }
  return { device, directory, config }
}

async function create(
  source: Source & Partial<PasswordFunctions>,
): Promise<Sidecar & { readonly lines: readonly string[] }> {
  const lines: string[] = []
  const sidecar = await createSidecar({ ...source, log: { write: (line) => lines.push(line) } })
  closeLater(() => sidecar.stop(0))
  return { ...sidecar, lines }
}

describe('a sidecar within another program', () => {
  it('that cannot be created, because the password of its store cannot be read, leaves nothing open', async () => {
    const { config, directory } = await preparePlace()
    const open = (): number =>
      process.getActiveResourcesInfo().filter((each) => /^TCP(Socket|Connect)Wrap$/.test(each)).length
    const before = open()
    const passwordFile = join(directory, 'none')
    const shared = { tokens: { store: 'valkey://127.0.0.1:1' }, store: { password_file: passwordFile } }
    const creating = createSidecar({ config: { ...config, ...shared } })
    await expect(creating).rejects.toThrow(`store.password_file: cannot read ${passwordFile}`)
    await expect.poll(open).toBe(before)
  })

  it('starts from an object, admits with a token, and logs lines of JSON', async () => {
    const { config, directory } = await preparePlace()
    const sidecar = await create({ config })
    const { public: url, admin } = await sidecar.start()
    const client = clientOf(url, admin ?? '', 'http1', join(directory, 'state'))
    expect(await client.ready()).toBe(200)
    const { access_token: token } = await client.grant()
    expect(await client.use(token)).toBe(200)
    expect((await client.status()).grants).toHaveLength(1)
    await sidecar.stop()
    expect(sidecar.lines.map((line) => JSON.parse(line).msg)).toEqual([
      'listening',
      'memory for clients',
      'request',
      'request',
      'stopped',
    ])
  })

  it('H360 C8 asks functions of the program for the password, and ends the tokens when their fingerprint is another one', async () => {
    const { config } = await preparePlace()
    const { password: _, ...others } = config
    const asked: unknown[] = []
    let fingerprint = 'one'
    const sidecar = await create({
      config: others,
      async verify(username, password) {
        asked.push([username, password])
        if (password === 'broken') throw new Error(`no verdict about ${password}`)
        return password === 'right'
      },
      fingerprint: () => fingerprint,
    })
    const { public: url } = await sidecar.start()
    const client = clientOf(url, '', 'http1', '')
    const { access_token: token } = await client.grant('right')
    expect(await client.use(token)).toBe(200)
    expect((await client.login('wrong')).status).toBe(400)
    expect((await client.login('broken')).status).toBe(500)
    expect(asked).toEqual([
      [undefined, 'right'],
      [undefined, 'wrong'],
      [undefined, 'broken'],
    ])
    fingerprint = 'two'
    const { access_token: later } = await client.grant('right')
    expect([await client.use(token), await client.use(later)]).toEqual([401, 200])
    await sidecar.reload({ config: others })
    expect(await client.use(later)).toBe(200)
    expect(sidecar.lines.join('')).toContain('password hook verify: it threw an error')
    expect(sidecar.lines.join('')).not.toContain('no verdict about')
  })

  it('H360 refuses functions beside a password, with a shared store, and a fingerprint alone', async () => {
    const { config } = await preparePlace()
    const { password: _, ...others } = config
    const verify = (): boolean => true
    const shared = { ...others, tokens: { store: 'valkey://127.0.0.1:1' } }
    await expect(createSidecar({ config, verify })).rejects.toThrow(
      'password: must be left out with the function verify, which checks the password',
    )
    await expect(createSidecar({ config: shared, verify })).rejects.toThrow(
      'tokens.store: must be file or memory with verify',
    )
    await expect(createSidecar({ config: others, fingerprint: () => '' })).rejects.toThrow(
      'fingerprint: needs verify beside it',
    )
    await expect(createSidecar({ config: others })).rejects.toThrow('password: is missing')
  })

  it('reloads another configuration, and reads its file again', async () => {
    const { config, directory } = await preparePlace()
    const configFile = join(directory, 'postern.yaml')
    const write = (requests: number): void =>
      writeFileSync(configFile, JSON.stringify({ ...config, limits: { api: { requests } } }))
    write(10)
    const sidecar = await create({ configFile })
    const { public: url } = await sidecar.start()
    const limit = async (): Promise<string | undefined> =>
      (await clientOf(url, '', 'http1', '').request()).header('x-ratelimit-limit')
    expect(await limit()).toBe('10')
    write(20)
    expect(await sidecar.reload()).toEqual({ live: ['limits.api.requests'], restart: [] })
    expect(await limit()).toBe('20')
    const other = { ...config, limits: { api: { requests: 30 } }, tokens: { store: 'memory' } }
    expect(await sidecar.reload({ config: other })).toEqual({
      live: ['limits.api.requests'],
      restart: ['tokens.store'],
    })
    expect(await limit()).toBe('30')
    write(-1)
    await expect(sidecar.reload()).rejects.toThrow(`${configFile}:1: limits.api.requests: must be`)
    expect(await limit()).toBe('30')
  })

  it('applies overlapping reloads in the order of the calls, and none after a stop', async () => {
    const { config } = await preparePlace()
    const sidecar = await create({ config })
    const { public: url } = await sidecar.start()
    const reload = (requests: number, more: Partial<Configuration> = {}) =>
      sidecar.reload({ config: { ...config, ...more, limits: { api: { requests } } } })
    // A secret in a file takes longer to read than none.
    const slow = { upstream: { ...config.upstream, headers: { 'X-Key': { file: config.password?.file } } } }
    for (let round = 0; round < 20; round++) {
      await Promise.all([reload(10 + round, slow as Partial<Configuration>), reload(100 + round)])
      const response = await clientOf(url, '', 'http1', '').request()
      expect(response.header('x-ratelimit-limit')).toBe(String(100 + round))
    }
    const reloading = reload(1)
    const stopped = sidecar.stop()
    await expect(reloading).rejects.toMatchObject({ name: 'SetupError', exitCode: 1 })
    await stopped
    await expect(sidecar.reload()).rejects.toThrow('the sidecar was stopped')
  })

  it.each<[string, unknown, string]>([
    ['no source', {}, 'name a configuration: { config: { upstream, password } } or { configFile: path }'],
    ['an empty configuration', { config: {} }, 'upstream.url: is missing'],
    ['a text', { config: 'upstream:' }, 'configuration: must be a mapping of keys'],
    ['a wrong key', { config: { upstrem: {} } }, 'upstrem: unknown key; did you mean'],
    [
      'a function',
      { config: { upstream: { url: () => '' } } },
      'configuration: upstream.url: must be text, a number, true or false, null, a list or a mapping',
    ],
    [
      'a missing file',
      { configFile: '/nowhere/postern.yaml' },
      '/nowhere/postern.yaml: there is no such file',
    ],
  ])('refuses %s with a SetupError', async (_what, source, problem) => {
    // The cast holds for programs in JavaScript, which no compiler checks.
    const creating = createSidecar(source as Source)
    await expect(creating).rejects.toMatchObject({ name: 'SetupError', exitCode: 2 })
    await expect(creating).rejects.toThrow(problem)
  })

  it('starts once, even if it is told twice, and not again after a stop', async () => {
    const { config } = await preparePlace()
    const sidecar = await create({ config })
    const [first, second] = await Promise.all([sidecar.start(), sidecar.start()])
    expect(second).toEqual(first)
    expect(await sidecar.start()).toEqual(first)
    const client = clientOf(first.public, '', 'http1', '')
    expect(await client.use((await client.grant()).access_token)).toBe(200)
    await sidecar.stop()
    await expect(sidecar.start()).rejects.toMatchObject({ name: 'SetupError', exitCode: 1 })
    await expect(rawConnection(first.public)).rejects.toThrow('ECONNREFUSED')
  })

  it('changes nothing of another one that uses the state folder', async () => {
    const { config, directory } = await preparePlace()
    const named = (name: string) => ({
      ...config,
      listen: { address: '127.0.0.1:0', tls: { names: [name] } },
    })
    await create({ config: named('one.example') })
    const cert = join(directory, 'state', 'tls', 'cert.pem')
    const before = readFileSync(cert, 'utf8')
    await expect(create({ config: named('two.example') })).rejects.toThrow('another')
    expect(readFileSync(cert, 'utf8')).toBe(before)
  })

  it('stops once, even if it is told twice', async () => {
    const { config } = await preparePlace()
    const sidecar = await create({ config })
    await sidecar.start()
    await Promise.all([sidecar.stop(), sidecar.stop()])
    expect(sidecar.lines.filter((line) => line.includes('"stopped"'))).toHaveLength(1)
  })
})

describe('H118 nothing of a sidecar is left', () => {
  it('when it is stopped while it starts', async () => {
    const { config, directory } = await preparePlace()
    const listen = { address: `unix:${join(directory, 'public.sock')}`, tls: 'off' }
    const sidecar = await create({ config: { ...config, listen } })
    const starting = sidecar.start()
    const refused = expect(starting).rejects.toThrow('the sidecar was stopped')
    await sidecar.stop()
    await refused
    expect(sidecar.lines.map((line) => JSON.parse(line).msg)).toEqual(['stopped'])
    expect(readdirSync(directory)).not.toContain('public.sock')
    await expect(sidecar.start()).rejects.toThrow('the sidecar was stopped')
  })

  it.each<[string, (place: Place) => Configuration]>([
    [
      'the password file is missing',
      ({ config }) => ({ ...config, password: { file: '/nowhere/password' } }),
    ],
    [
      'the file of a route is missing',
      ({ config, device }) => {
        const headers = { 'X-Secret': { file: '/nowhere/secret' } }
        return {
          ...config,
          upstream: { ...config.upstream, routes: { '/stream/': { url: device.url, headers } } },
        }
      },
    ],
  ])('when %s: the health check of the device ends', async (_what, broken) => {
    const place = await preparePlace()
    const { device, config } = place
    const checkedAt = (path: string) => ({ url: device.url, health: { path, interval: '10ms' } })
    const checks = (path: string): number => device.requests.filter(({ target }) => target === path).length
    const refused = broken({ ...place, config: { ...config, upstream: checkedAt('/refused') } })
    await expect(create({ config: refused })).rejects.toThrow('/nowhere/')
    // The state folder is not locked.
    const sidecar = await create({ config: { ...config, upstream: checkedAt('/running') } })
    await sidecar.start()
    await expect.poll(() => checks('/running')).toBeGreaterThan(5)
    const before = checks('/refused')
    await expect.poll(() => checks('/running')).toBeGreaterThan(25)
    expect(checks('/refused')).toBe(before)
    await sidecar.stop()
    await device.waitForOpenConnections(0)
  })

  it('when its address is taken', async () => {
    const { config, directory, device } = await preparePlace()
    const first = await create({ config })
    const { public: url } = await first.start()
    const state_dir = join(directory, 'other')
    const taken = { address: new URL(url).host, tls: 'off' }
    const second = await create({ config: { ...config, listen: taken, state_dir } })
    await expect(second.start()).rejects.toThrow(`${taken.address}`)
    await first.stop()
    await device.waitForOpenConnections(0)
    await expect(rawConnection(url)).rejects.toThrow('ECONNREFUSED')
    expect(existsSync(join(state_dir, 'control.sock'))).toBe(false)
    rmSync(directory, { recursive: true })
  })
})
