import { execFileSync } from 'node:child_process'
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { findSetAside } from '../../src/tokens/set-aside.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { run } from '../support/tools.ts'
import { prepareSite, type Site } from './serve.ts'

const FOUND = 'token file: an earlier version has set one aside; to take its tokens back, do this and restart'
const NAME = 'tokens.db.newer-2026-11-27T02-52-48.131Z'

/** A site whose token file an earlier version has set aside, and a token in it. */
async function withSetAside(): Promise<{ site: Site; token: string; aside: string; back: string }> {
  const site = await prepareSite()
  const first = await site.serve()
  const { access_token } = await first.grant()
  await first.stop()
  const [aside, back] = [NAME, 'tokens.db.back'].map((name) => join(site.stateDir, name)) as [string, string]
  renameSync(join(site.stateDir, 'tokens.db'), aside)
  return { site, token: access_token, aside, back }
}

/** The tokens in the token file of a site: digest, grant and when they were spent. */
function tokensIn(site: Site): readonly unknown[] {
  const db = new DatabaseSync(join(site.stateDir, 'tokens.db'))
  const rows = db.prepare('SELECT hex(digest) AS digest, grant_id, spent FROM tokens ORDER BY digest').all()
  db.close()
  return rows
}

describe('H342 a token file that an earlier version has set aside', () => {
  it('is named at the start and by `check` with the command that takes its tokens back, beside those issued since', async () => {
    const { site, token, aside } = await withSetAside()
    const earlier = await site.serve()
    const { path, remedy, level } = await earlier.waitForLog(FOUND)
    expect([path, level]).toEqual([aside, 40])
    // It may have been meant to be revoked while the earlier version ran.
    expect(await earlier.use(token)).toBe(401)
    const { access_token } = await earlier.grant()
    const check = await site.postern('check', '--quiet', '--config', site.configFile)
    expect(check.stdout).toMatch(/^WARNING token file: .*newer-/m)
    expect(check.stdout.replaceAll(/\s+/g, ' ')).toContain(String(remedy))
    await earlier.stop()
    expect((await run('sh', ['-ec', String(remedy)])).code).toBe(0)
    const later = await site.serve()
    expect(await later.waitForLog('token file: tokens were taken back')).toMatchObject({
      taken: 2,
      dropped: 0,
    })
    expect([await later.use(token), await later.use(access_token)]).toEqual([200, 200])
    expect(later.logged(FOUND)).toEqual([])
    expect(readdirSync(site.stateDir).filter((name) => /back|newer/.test(name))).toEqual([])
    // They are in the token file, and are revoked like all others.
    await later.stop()
    const last = await site.serve()
    expect([await last.use(token), await last.use(access_token)]).toEqual([200, 200])
  })

  it('keeps its log, where the power failed before the earlier version came', async () => {
    const site = await prepareSite()
    const first = await site.serve()
    const { access_token } = await first.grant()
    await first.kill()
    for (const side of ['', '-wal'])
      renameSync(join(site.stateDir, `tokens.db${side}`), join(site.stateDir, `${NAME}${side}`))
    expect(statSync(join(site.stateDir, `${NAME}-wal`)).size).toBeGreaterThan(0)
    const second = await site.serve()
    const { remedy } = await second.waitForLog(FOUND)
    await second.stop()
    await run('sh', ['-ec', String(remedy)])
    expect(await (await site.serve()).use(access_token)).toBe(200)
  })

  it('gives back no token of another password', async () => {
    const { site, token, aside, back } = await withSetAside()
    site.setPassword('another password')
    renameSync(aside, back)
    const sidecar = await site.serve()
    expect(await sidecar.waitForLog('token file: tokens were taken back')).toMatchObject({
      taken: 0,
      dropped: 2,
    })
    expect(await sidecar.use(token)).toBe(401)
  })

  it('gives back no token a second time, if the power fails before the file is deleted', async () => {
    const { site, token, aside, back } = await withSetAside()
    linkSync(aside, join(site.stateDir, 'saved'))
    renameSync(aside, back)
    const first = await site.serve()
    expect(await first.use(token)).toBe(200)
    await site.postern('revoke', '--all', '--config', site.configFile)
    expect(await first.use(token)).toBe(401)
    await first.stop()
    renameSync(join(site.stateDir, 'saved'), back)
    const { dev, ino, mtimeMs } = statSync(back)
    const db = new DatabaseSync(join(site.stateDir, 'tokens.db'))
    db.exec(`UPDATE meta SET value = '${dev}:${ino}:${mtimeMs}' WHERE key = 'taken_back'`)
    db.close()
    const second = await site.serve()
    expect(await second.use(token)).toBe(401)
    expect(existsSync(back)).toBe(false)
  })

  it('is one of two: each is named when the other one is back, so that none overwrites the other', async () => {
    const { site, token, aside } = await withSetAside()
    const second = await site.serve()
    const { access_token } = await second.grant()
    await second.stop()
    renameSync(
      join(site.stateDir, 'tokens.db'),
      join(site.stateDir, 'tokens.db.newer-2026-11-28T00-00-00.000Z'),
    )
    const third = await site.serve()
    const { path, remedy } = await third.waitForLog(FOUND)
    expect([path, third.logged(FOUND)]).toEqual([aside, [expect.anything()]])
    await run('sh', ['-ec', String(remedy)])
    const check = await site.postern('check', '--quiet', '--config', site.configFile)
    expect(check.stdout).not.toContain('newer-')
    await third.stop()
    const fourth = await site.serve()
    await run('sh', ['-ec', String((await fourth.waitForLog(FOUND)).remedy)])
    await fourth.stop()
    const last = await site.serve()
    expect([await last.use(token), await last.use(access_token)]).toEqual([200, 200])
  })

  it('is found beside what is no token file, and no pipe stops the start', async () => {
    const { site, aside } = await withSetAside()
    mkdirSync(join(site.stateDir, 'tokens.db.newer-2026-01-01T00-00-00.000Z'))
    writeFileSync(join(site.stateDir, 'tokens.db.newer-2026-01-02T00-00-00.000Z'), 'short')
    writeFileSync(join(site.stateDir, 'tokens.db.newer-$(touch x)'), readFileSync(aside))
    await run('mkfifo', [join(site.stateDir, 'tokens.db.newer-2026-01-03T00-00-00.000Z')])
    const sidecar = await site.serve()
    expect((await sidecar.waitForLog(FOUND)).path).toBe(aside)
    const check = await site.postern('check', '--quiet', '--config', site.configFile)
    expect(check.stdout.match(/^WARNING token file: .*/gm)).toEqual([expect.stringContaining(aside)])
  })

  it.each(['a pipe', 'a folder', 'a link'])(
    'takes nothing back from %s, starts, and says what it is',
    async (kind) => {
      const site = await prepareSite()
      const back = join(site.stateDir, 'tokens.db.back')
      mkdirSync(site.stateDir, { recursive: true })
      if (kind === 'a pipe') await run('mkfifo', [back])
      else if (kind === 'a link') symlinkSync(site.configFile, back)
      else mkdirSync(back)
      const sidecar = await site.serve()
      expect(await sidecar.waitForLog('token file: tokens could not be taken back')).toMatchObject({
        reason: `${back} is no file`,
      })
      expect(await sidecar.use((await sidecar.grant()).access_token)).toBe(200)
    },
  )

  it('knows less of a login than the token file', async () => {
    const site = await prepareSite({ config: { tokens: { rotate_refresh: true, refresh_grace: '10m' } } })
    const [first, back] = [await site.serve(), join(site.stateDir, 'tokens.db.back')]
    const { refresh_token } = await first.grant()
    await first.stop()
    const copy = readFileSync(join(site.stateDir, 'tokens.db'))
    const rotating = await site.serve()
    expect((await rotating.refresh(refresh_token)).status).toBe(200)
    await rotating.stop()
    const held = tokensIn(site)
    writeFileSync(back, copy)
    const last = await site.serve()
    await last.waitForLog('token file: tokens were taken back')
    await last.stop()
    expect(tokensIn(site)).toEqual(held)
  })

  it('of a version that is newer still is found by that version', () => {
    const dir = temporaryDirectory()
    const db = new DatabaseSync(join(dir, 'tokens.db.back.newer-2026-11-27T02-52-48.131Z'))
    db.exec('PRAGMA application_id = 0x506f7374; PRAGMA user_version = 4; CREATE TABLE t (a)')
    db.close()
    expect(findSetAside(dir)?.path).toBe(join(dir, 'tokens.db.back.newer-2026-11-27T02-52-48.131Z'))
  })

  it('gets a command that a shell takes as it is', () => {
    const dir = join(temporaryDirectory(), "it's $(here)")
    mkdirSync(dir)
    const db = new DatabaseSync(join(dir, NAME))
    db.exec('PRAGMA application_id = 0x506f7374; PRAGMA user_version = 4; CREATE TABLE t (a)')
    db.close()
    execFileSync('sh', ['-ec', findSetAside(dir)?.remedy ?? ''])
    expect(readdirSync(dir)).toEqual(['tokens.db.back'])
  })

  it('is set aside once more if it is damaged, and the tokens issued since stay', async () => {
    const { site, token, aside, back } = await withSetAside()
    const db = new DatabaseSync(aside)
    db.exec('UPDATE tokens SET expires = expires + 1')
    db.close()
    renameSync(aside, back)
    const sidecar = await site.serve()
    const line = await sidecar.waitForLog(
      'token file: the one to take back is unusable, set aside; the tokens issued since stay',
    )
    expect(line).toMatchObject({ fault: 'damaged', path: expect.stringContaining('tokens.db.back.damaged-') })
    expect(await sidecar.use(token)).toBe(401)
    expect(await sidecar.use((await sidecar.grant()).access_token)).toBe(200)
  })
})
