import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { logInAs, makeNames, type Names, OF_MONITOR, passwordOf } from '../support/passwords.ts'
import type { YamlPart } from '../support/sidecar.ts'
import { openWebSocket } from '../support/websocket.ts'
import { prepareSite, type Serving, type Site, tokensOf } from './serve.ts'
import { holdResponses, openStreams } from './streams.ts'

const CHANGED = 'the password has changed'
const EVERYTHING = { admin: undefined, monitor: undefined, backup: undefined }

interface Started {
  readonly names: Names
  readonly site: Site
  readonly sidecar: Serving
}

async function start(allows: Readonly<Record<string, unknown>>, config: YamlPart = {}): Promise<Started> {
  const names = makeNames(allows)
  const site = await prepareSite({ transport: 'tls', config: { ...names.config, ...config } })
  holdResponses(site.device)
  return { names, site, sidecar: await site.serveHere() }
}

const statusOfRefresh = async (sidecar: Serving, token: string): Promise<number> =>
  (await sidecar.refresh(token)).status

/** Reloads the configuration without these names, or with another `allow`. */
async function reload(
  { site, names, sidecar }: Started,
  allows: Readonly<Record<string, unknown>>,
): Promise<void> {
  const known = sidecar.logged('configuration reloaded').length
  const passwords = Object.entries(allows).map(([name, allow]) => ({ name, file: names.files[name], allow }))
  site.configure({ passwords })
  await expect.poll(() => sidecar.logged('configuration reloaded').length).toBe(known + 1)
}

describe('C8 H194 several passwords', () => {
  it('C8 H194 one that changes ends the tokens, streams and logins of its name, and of no other', async () => {
    const { names, sidecar } = await start(EVERYTHING)
    const [admin, monitor] = [await logInAs(sidecar, 'admin'), await logInAs(sidecar, 'monitor')]
    const kept = await openStreams(sidecar, admin.access_token)
    const ended = await openStreams(sidecar, monitor.access_token)
    names.set('monitor', 'another password')
    await Promise.all(ended.map((stream) => stream.broken))
    expect(await sidecar.use(monitor.access_token)).toBe(401)
    expect(await statusOfRefresh(sidecar, monitor.refresh_token)).toBe(400)
    expect((await sidecar.login(passwordOf('monitor'))).status).toBe(400)
    expect(await sidecar.use(admin.access_token)).toBe(200)
    expect(await statusOfRefresh(sidecar, admin.refresh_token)).toBe(200)
    expect(kept.every((stream) => stream.open)).toBe(true)
    expect(await sidecar.use((await logInAs(sidecar, 'monitor', 'another password')).access_token)).toBe(200)
    expect(await sidecar.waitForLog(CHANGED)).toMatchObject({ name: 'monitor' })
    expect(await sidecar.waitForLog('tokens revoked')).toMatchObject({ names: ['monitor'] })
    expect(await sidecar.metric('postern_tokens_revoked_total', 'reason="password_changed"')).toBe(1)
  })

  it('C8 H194 one that changed while Postern was stopped ends those of its name, one that is gone too', async () => {
    const { names, site, sidecar } = await start(EVERYTHING)
    const tokens = Object.fromEntries(
      await Promise.all(
        Object.keys(EVERYTHING).map(async (name) => [name, await logInAs(sidecar, name)] as const),
      ),
    )
    await sidecar.stop()
    names.set('monitor', 'another password')
    const [admin, monitor] = names.config.passwords
    site.configure({
      passwords: [{ ...monitor }, { ...admin }, { name: 'renamed', file: names.files.backup }],
    })
    const again = await site.serveHere()
    expect(await again.use(tokens.admin?.access_token ?? '')).toBe(200)
    for (const name of ['monitor', 'backup']) {
      expect(await again.use(tokens[name]?.access_token ?? ''), name).toBe(401)
      expect(await statusOfRefresh(again, tokens[name]?.refresh_token ?? ''), name).toBe(400)
    }
    expect((await again.login(passwordOf('backup'))).status).toBe(200)
  })

  it('H194 the entries of two names with exchanged passwords end both', async () => {
    const { names, site, sidecar } = await start({ admin: undefined, monitor: OF_MONITOR })
    const monitor = await logInAs(sidecar, 'monitor')
    await sidecar.stop()
    names.set('monitor', passwordOf('admin'))
    names.set('admin', passwordOf('monitor'))
    const again = await site.serveHere()
    expect(await again.use(monitor.access_token)).toBe(401)
  })

  it.each([
    ['admin', { monitor: 'read', admin: undefined }, 200],
    ['the only name', { someone: undefined }, 200],
    ['neither', { someone: undefined, other: undefined }, 401],
  ])('H194 a token file of one password is read as that of %s', async (_who, allows, status) => {
    const site = await prepareSite()
    const first = await site.serveHere()
    const tokens = await first.grant()
    await first.stop()
    const names = makeNames(allows)
    const heir = 'admin' in allows ? 'admin' : 'someone'
    names.set(heir, readFileSync(site.passwordFile, 'utf8').trim())
    site.configure(names.config)
    // What one start has decided, the next one finds decided, whatever it is.
    for (const start of heir === 'admin' ? ['first', 'second'] : ['first']) {
      const sidecar = await site.serveHere()
      expect(await sidecar.use(tokens.access_token), start).toBe(status)
      expect(await statusOfRefresh(sidecar, tokens.refresh_token), start).toBe(status === 200 ? 200 : 400)
      const ids = (await sidecar.status()).grants.map(({ id }) => id)
      expect(
        ids.map((id) => id.replace(/\..*/, '')),
        start,
      ).toEqual(status === 200 ? [heir] : [])
      await sidecar.stop()
    }
    // Its password has changed before Postern is started with names.
    names.set(heir, 'another password')
    expect(await (await site.serveHere()).use(tokens.access_token)).toBe(401)
  })

  it('H194 back to one password, no token of a name works', async () => {
    const names = makeNames({ admin: undefined })
    const site = await prepareSite({ config: names.config })
    const sidecar = await site.serveHere()
    const tokens = await logInAs(sidecar, 'admin')
    await sidecar.stop()
    site.configure({ passwords: undefined, password: { file: names.files.admin } })
    const again = await site.serveHere()
    expect(await again.use(tokens.access_token)).toBe(401)
    expect(tokensOf(await again.login(passwordOf('admin'))).token_type).toBe('Bearer')
  })
})

describe('H196 a reload', () => {
  it('H196 applies a changed allow to live grants, also to requests and tunnels in flight', async () => {
    const started = await start({
      admin: undefined,
      monitor: [{ methods: ['GET', 'UPGRADE'], paths: ['/'] }],
    })
    const { sidecar } = started
    const [admin, monitor] = [await logInAs(sidecar, 'admin'), await logInAs(sidecar, 'monitor')]
    const kept = await openStreams(sidecar, admin.access_token)
    const ended = await openStreams(sidecar, monitor.access_token)
    const allowed = await openWebSocket(sidecar.url, { path: '/kept', token: monitor.access_token })
    await reload(started, {
      admin: undefined,
      monitor: [{ methods: ['UPGRADE'], paths: ['/kept'] }, { methods: ['POST'] }],
    })
    await Promise.all(ended.map((stream) => stream.broken))
    expect(kept.every((stream) => stream.open)).toBe(true)
    const echoed = once(allowed.socket, 'message')
    allowed.socket.send('still there?')
    await echoed
    const token = monitor.access_token
    expect((await sidecar.request({ path: '/', token })).status).toBe(400)
    expect((await sidecar.request({ method: 'POST', path: '/', token })).status).toBe(200)
    expect(await statusOfRefresh(sidecar, monitor.refresh_token)).toBe(200)
  })

  it('H194 H196 H308 ends the tokens, streams and logins of a name that is gone', async () => {
    const started = await start(EVERYTHING)
    const { sidecar } = started
    const [admin, monitor] = [await logInAs(sidecar, 'admin'), await logInAs(sidecar, 'monitor')]
    const ended = await openStreams(sidecar, monitor.access_token)
    await reload(started, { admin: undefined, backup: undefined })
    await Promise.all(ended.map((stream) => stream.broken))
    expect(await sidecar.use(monitor.access_token)).toBe(401)
    expect(await statusOfRefresh(sidecar, monitor.refresh_token)).toBe(400)
    expect((await sidecar.login(passwordOf('monitor'))).status).toBe(400)
    expect(await sidecar.use(admin.access_token)).toBe(200)
    expect((await sidecar.status()).grants).toHaveLength(1)
    // It is no name any more, so it says nothing.
    const gone = { grant_type: 'password', username: 'monitor', password: passwordOf('admin') }
    expect((await sidecar.postToken(gone)).status).toBe(200)
  })

  it('H194 H196 with a renamed name ends its tokens at once, and the new name logs in with the password', async () => {
    const started = await start({ admin: undefined, monitor: undefined })
    const { sidecar, names, site } = started
    const monitor = await logInAs(sidecar, 'monitor')
    site.configure({
      passwords: [
        { name: 'admin', file: names.files.admin },
        { name: 'renamed', file: names.files.monitor },
      ],
    })
    await sidecar.waitForLog('configuration reloaded')
    expect(await sidecar.use(monitor.access_token)).toBe(401)
    const { access_token } = await logInAs(sidecar, 'monitor')
    expect(await sidecar.use(access_token)).toBe(200)
    expect((await sidecar.status()).grants.map(({ id }) => id.replace(/\..*/, ''))).toEqual(['renamed'])
  })
})
