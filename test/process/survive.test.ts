import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { stillClock } from '../support/clock.ts'
import { PASSWORD, type Tokens } from '../support/sidecar.ts'
import { prepareSite, type Status, tokensOf } from './serve.ts'

/** Every file below a folder, without sockets. */
function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}

const expiries = ({ grants }: Status): number[] => grants.map(({ expiresAt }) => expiresAt)

it('H71 every issued token works after a restart, although the sidecar is killed while it issues tokens', async () => {
  const site = await prepareSite()
  const issued: Tokens[] = []
  for (let round = 1; round <= 4; round++) {
    const sidecar = await site.serve()
    expect(sidecar.logged('token file: unusable, set aside; starting empty')).toEqual([])
    const access = await Promise.all(issued.map(({ access_token }) => sidecar.use(access_token)))
    expect(access).toEqual(issued.map(() => 200))
    const last = issued.slice(-20)
    const refreshed = await Promise.all(last.map(({ refresh_token }) => sidecar.refresh(refresh_token)))
    expect(refreshed.map(({ status }) => status)).toEqual(last.map(() => 200))

    const before = issued.length
    const clients = Array.from({ length: 4 }, async () => {
      for (;;) {
        issued.push(await sidecar.grant())
        // While requests of the other clients are in flight.
        if (issued.length === before + 13 * round) sidecar.signal('SIGKILL')
      }
    })
    await Promise.allSettled(clients)
    expect(await sidecar.exit).toEqual({ code: null, signal: 'SIGKILL' })
    expect(issued.length).toBeGreaterThanOrEqual(before + 13 * round)
  }
})

it('a token keeps its grant, its client and its expiry across a crash', async () => {
  const site = await prepareSite()
  const first = await site.serve()
  const pair = await first.grant()
  tokensOf(await first.refresh(pair.refresh_token))
  const other = tokensOf(
    await first.postToken({ grant_type: 'password', password: PASSWORD }, { method: 'POST' }),
  )
  const before = await first.status()
  await first.kill()

  const second = await site.serveHere()
  const after = await second.status()
  expect(after.tokens).toEqual(before.tokens)
  const facts = ({ grants }: Status): unknown[] =>
    grants.map(({ id, client, accessTokens }) => ({ id, client, accessTokens }))
  expect(facts(after)).toEqual(facts(before))
  expect(facts(after)).toMatchObject([
    { client: '127.0.0.1', accessTokens: 2 },
    { client: '127.0.0.1', accessTokens: 1 },
  ])
  for (const [i, expiry] of expiries(after).entries()) {
    // The wall clock and the monotonic clock drift apart a little, and the stored times are whole milliseconds.
    expect(Math.abs(expiry - (expiries(before)[i] ?? 0))).toBeLessThan(1000)
  }
  // A revocation by the id from before the restart revokes the tokens of this grant only.
  await second.revoke({ grant: before.grants[0]?.id })
  expect(await second.use(pair.access_token)).toBe(401)
  expect(await second.use(other.access_token)).toBe(200)
})

it('C7 a token that expired while the sidecar was down is invalid, and one with time left is valid', async () => {
  const site = await prepareSite()
  const first = await site.serveHere()
  const { access_token, refresh_token } = await first.grant()
  await first.stop()
  const clock = stillClock()
  await clock.leap(3_600_000)
  const second = await site.serveHere({ clock })
  const response = await second.request({ token: access_token })
  expect([response.status, response.json().error]).toEqual([401, 'invalid_token'])
  expect((await second.refresh(refresh_token)).status).toBe(200)
})

it('C8 a revoked token stays revoked after a kill, whether an operator or a client revoked it', async () => {
  const site = await prepareSite({ config: { oauth: { revocation_path: '/oauth/revoke' } } })
  const first = await site.serve()
  const grants = await Promise.all(Array.from({ length: 4 }, () => first.grant()))
  const [byOperator, byClient, kept] = grants as [Tokens, Tokens, Tokens]
  const refreshed = tokensOf(await first.refresh(byOperator.refresh_token))
  // One grant by its id: the only one with two access tokens.
  const { grants: listed } = await first.status()
  await first.revoke({ grant: listed.find(({ accessTokens }) => accessTokens === 2)?.id })
  await first.postToken({ token: byClient.refresh_token }, { path: '/oauth/revoke' })
  await first.kill() // right after the response

  const gone = [byOperator.access_token, refreshed.access_token, byClient.access_token]
  const second = await site.serve()
  expect(await Promise.all(gone.map((token) => second.use(token)))).toEqual([401, 401, 401])
  for (const { refresh_token } of [byOperator, byClient]) {
    const response = await second.refresh(refresh_token)
    expect([response.status, response.json().error]).toEqual([400, 'invalid_grant'])
  }
  expect(await second.use(kept.access_token)).toBe(200)
  expect((await second.status()).grants).toHaveLength(2)
  await second.revoke({ all: true })
  await second.kill()

  const third = await site.serveHere()
  expect(await Promise.all(grants.map(({ access_token }) => third.use(access_token)))).toEqual(
    grants.map(() => 401),
  )
  expect((await third.status()).tokens).toEqual({ access: 0, refresh: 0 })
})

it('H74 the state folder is 0700 and every file in it 0600, whatever the umask', async () => {
  const site = await prepareSite({ config: { listen: { tls: 'auto' } }, transport: 'tls' })
  const sidecar = await site.serve({ under: ['sh', '-c', 'umask 000; exec "$@"', 'sh'] })
  await sidecar.grant()
  const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8)
  expect(mode(site.stateDir)).toBe('700')
  const modes = Object.fromEntries(
    readdirSync(site.stateDir, { recursive: true }).map((name) => [
      String(name),
      mode(join(site.stateDir, String(name))),
    ]),
  )
  expect(modes).toEqual({
    'control.sock': '600',
    'sidecar.lock': '600',
    'sidecar.lock.holder': '600',
    tls: '700',
    'tls/cert.pem': '600',
    'tls/key.pem': '600',
    'tokens.db': '600',
    'tokens.db-wal': '600',
    'tokens.lock': '600',
  })
})

it('the state folder stores digests: none of its files contains a token or the password', async () => {
  const site = await prepareSite()
  const sidecar = await site.serveHere()
  const grants = await Promise.all(Array.from({ length: 10 }, () => sidecar.grant()))
  const refreshed = await Promise.all(
    grants.map(async ({ refresh_token }) => tokensOf(await sidecar.refresh(refresh_token))),
  )
  const secrets = [...grants, ...refreshed].flatMap(({ access_token, refresh_token }) => [
    Buffer.from(access_token),
    Buffer.from(refresh_token),
    Buffer.from(access_token, 'base64url'),
    Buffer.from(refresh_token, 'base64url'),
  ])
  secrets.push(Buffer.from(PASSWORD))
  const { grants: listed } = await sidecar.status()

  const expectNoSecrets = (): void => {
    const bytes = Buffer.concat(filesBelow(site.stateDir).map((file) => readFileSync(file)))
    for (const secret of secrets) expect(bytes.includes(secret)).toBe(false)
    // The search itself works: it finds the ids of the grants, which are stored in clear text.
    for (const { id } of listed) expect(bytes.includes(id)).toBe(true)
  }
  expectNoSecrets()
  await sidecar.stop()
  expectNoSecrets()
  const again = await site.serveHere()
  await again.stop()
  expectNoSecrets()
})

it('H258 a second sidecar on the same folder exits and names the one that runs, which continues', async () => {
  const site = await prepareSite()
  const first = await site.serve()
  const { access_token } = await first.grant()
  const second = await site.postern('serve')
  expect(second).toMatchObject({ code: 2, signal: null })
  const since = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`
  expect(second.stderr).toMatch(
    new RegExp(
      `^postern serve: another sidecar is using ${site.stateDir}: process ${first.pid} on ${hostname()}, since ${since}; give each its own state_dir\n$`,
    ),
  )
  expect(await first.use(access_token)).toBe(200)
  expect((await first.status()).grants).toHaveLength(1)
  await first.grant()
  await first.kill()
  // The kernel has released the lock, and the stale socket is no obstacle.
  const third = await site.serveHere()
  expect((await third.status()).grants).toHaveLength(2)
  expect(await third.use(access_token)).toBe(200)
})

it.each([
  ['keeps its tokens in memory', () => {}],
  [
    'cannot write its token file',
    (stateDir: string) => {
      for (const name of ['tokens.db', 'tokens.lock']) {
        rmSync(join(stateDir, name))
        mkdirSync(join(stateDir, name))
      }
    },
  ],
])('H258 a second sidecar on the same folder is refused while the first %s', async (what, harm) => {
  const site = await prepareSite({ config: what.includes('memory') ? { tokens: { store: 'memory' } } : {} })
  const first = await site.serveHere()
  harm(site.stateDir)
  await first.grant()
  const second = await site.postern('serve')
  expect(second).toMatchObject({ code: 2, stderr: expect.stringContaining(`process ${process.pid} on`) })
  const { access_token } = await first.grant()
  expect(await first.use(access_token)).toBe(200)
})

it('H258 what an earlier sidecar left does not name it as the one that runs', async () => {
  const site = await prepareSite()
  const first = await site.serve()
  await first.kill()
  const holder = join(site.stateDir, 'sidecar.lock.holder')
  const left = readFileSync(holder, 'utf8')
  expect(left).toContain(`process ${first.pid} on`)
  await site.serveHere()
  expect(readFileSync(holder, 'utf8')).toContain(`process ${process.pid} on`)
  writeFileSync(holder, left.slice(0, -5))
  const third = await site.postern('serve')
  expect(third.stderr).toBe(
    `postern serve: another sidecar is using ${site.stateDir}; give each its own state_dir\n`,
  )
})

it('H72 a token file that is empty, garbage, cut off or bit-flipped is set aside with an error in the log, and the sidecar serves', async () => {
  const site = await prepareSite()
  const database = join(site.stateDir, 'tokens.db')
  const damages: readonly (() => void)[] = [
    () => truncateSync(database, 0),
    () => writeFileSync(database, 'not a database, '.repeat(1000)),
    () => truncateSync(database, Math.floor(statSync(database).size / 2)),
    () => {
      const bytes = readFileSync(database)
      for (let i = 0; i < bytes.length; i += 97) bytes[i] = (bytes[i] ?? 0) ^ 0x10
      writeFileSync(database, bytes)
    },
  ]
  let sidecar = await site.serveHere()
  for (const [done, damage] of damages.entries()) {
    const { access_token } = await sidecar.grant()
    await sidecar.stop() // moves everything from the write-ahead log into the file
    damage()
    const damaged = readFileSync(database)
    sidecar = await site.serveHere()
    const line = await sidecar.waitForLog('token file: unusable, set aside; starting empty')
    expect(line).toMatchObject({ level: 50, fault: expect.stringMatching(/^(damaged|foreign)$/) })
    expect(String(line.path)).toMatch(/tokens\.db\.(damaged|foreign)-\d{4}-\d\d-\d\dT/)
    expect(readFileSync(String(line.path)).equals(damaged)).toBe(true)
    expect(statSync(String(line.path)).mode & 0o777).toBe(0o600)
    expect(readdirSync(site.stateDir).filter((name) => /damaged|foreign/.test(name))).toHaveLength(done + 1)
    expect(await sidecar.use(access_token)).toBe(401)
    expect(await sidecar.use((await sidecar.grant()).access_token)).toBe(200)
  }
  // The new token file is durable.
  await sidecar.stop()
  const last = await site.serve()
  const { access_token } = await last.grant()
  await last.kill()
  expect(await (await site.serveHere()).use(access_token)).toBe(200)
})
