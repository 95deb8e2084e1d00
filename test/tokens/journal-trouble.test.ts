import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test, vi } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { needs, run, underFileModes } from '../support/tools.ts'
import { openJournaledStore } from './journaled-store.ts'
import { present, SECOND } from './support.ts'
import { pairs, startTokenProcess } from './token-process.ts'

const state = (): string => join(temporaryDirectory(), 'state')
const later = { do: 'later', milliseconds: 10_000 } as const
const accessTokens = (reply: unknown): string[] => pairs(reply).map((pair) => pair.accessToken)

/** How many of the tokens are valid for the next sidecar on this folder. */
function validAfterRestart(dir: string, tokens: readonly string[]): number {
  const { store, journal } = openJournaledStore(dir)
  const alive = tokens.filter((token) => store.identify(token).kind === 'valid').length
  journal.close()
  return alive
}

describe('H73 a full disk', () => {
  // Limits files to 400 blocks of 512 bytes. As on a full disk, a write fails in the middle.
  const under = ['sh', '-c', 'ulimit -S -f 400; exec "$@"', 'sh']

  test('makes the store serve from memory and report it, and save everything when there is space again', async () => {
    needs('prlimit')
    const dir = state()
    const sidecar = await startTokenProcess(dir, { under })
    const tokens = accessTokens(await sidecar.ask({ do: 'issue', count: 2000 }))
    expect(sidecar.events).toContain('trouble issue')
    const kinds = await sidecar.ask({ do: 'identify', tokens })
    expect(kinds).toEqual(tokens.map(() => 'valid'))
    await sidecar.ask(later)
    expect(sidecar.events.at(-1)).toBe('trouble open')

    await run('prlimit', ['--pid', String(sidecar.child.pid), '--fsize=unlimited'])
    await sidecar.ask(later)
    expect(sidecar.events.at(-1)).toBe('recovered')
    const more = accessTokens(await sidecar.ask({ do: 'issue', count: 10 }))
    await sidecar.kill()
    expect(validAfterRestart(dir, [...tokens, ...more])).toBe(2010)
  })

  test('makes the store count the tokens that a crash would lose, and a crash loses these', async () => {
    const dir = state()
    const sidecar = await startTokenProcess(dir, { under })
    const saved = accessTokens(await sidecar.ask({ do: 'issue', count: 10 }))
    expect(await sidecar.ask({ do: 'unsaved' })).toBe(0)
    const more = accessTokens(await sidecar.ask({ do: 'issue', count: 2000 }))
    const unsaved = Number(await sidecar.ask({ do: 'unsaved' }))
    expect(unsaved).toBeGreaterThan(0)
    await sidecar.kill()
    // Each pair is written completely or not at all.
    expect(validAfterRestart(dir, [...saved, ...more])).toBe(2010 - unsaved / 2)
  })

  test('C8 H102 does not restore tokens that were revoked meanwhile', async () => {
    const dir = state()
    const sidecar = await startTokenProcess(dir, { under })
    const tokens = accessTokens(await sidecar.ask({ do: 'issue', count: 2000 }))
    expect(sidecar.events).toContain('trouble issue')
    expect(await sidecar.ask({ do: 'revoke' })).toBe(2000)
    await sidecar.kill()
    expect(validAfterRestart(dir, tokens)).toBe(0)
  })
})

describe('H73 a read-only folder', () => {
  async function readOnlyFolder(): Promise<{ dir: string; tokens: string[]; under: readonly string[] }> {
    const under = underFileModes()
    const dir = state()
    mkdirSync(dir)
    const before = await startTokenProcess(dir)
    const tokens = accessTokens(await before.ask({ do: 'issue', count: 3 }))
    before.child.stdin?.end()
    await before.next()
    chmodSync(dir, 0o500)
    return { dir, tokens, under }
  }

  test('makes the store serve from memory, and save tokens when it is writable again', async () => {
    const { dir, under } = await readOnlyFolder()
    const sidecar = await startTokenProcess(dir, { under })
    const tokens = accessTokens(await sidecar.ask({ do: 'issue', count: 3 }))
    expect(await sidecar.ask({ do: 'identify', tokens })).toEqual(['valid', 'valid', 'valid'])
    expect(new Set(sidecar.events)).toEqual(new Set(['trouble open']))
    chmodSync(dir, 0o700)
    await sidecar.ask(later)
    expect(sidecar.events.at(-1)).toBe('recovered')
    await sidecar.kill()
    const after = await startTokenProcess(dir)
    expect(await after.ask({ do: 'identify', tokens })).toEqual(['valid', 'valid', 'valid'])
  })

  test('C8 H102 does not restore tokens that were revoked meanwhile', async () => {
    const { dir, tokens, under } = await readOnlyFolder()
    const sidecar = await startTokenProcess(dir, { under })
    await sidecar.ask({ do: 'revoke' })
    await sidecar.kill()
    chmodSync(dir, 0o700)
    const after = await startTokenProcess(dir)
    expect(await after.ask({ do: 'identify', tokens })).toEqual(['refused', 'refused', 'refused'])
  })
})

test('H73 a store whose database another program has locked serves from memory until it is free', () => {
  const dir = state()
  openJournaledStore(dir).journal.close()
  const other = new DatabaseSync(join(dir, 'tokens.db'))
  other.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT')
  const { store, clock, journal, reports, errors } = openJournaledStore(dir)
  const { accessToken } = store.issue('a', 'password')
  expect(store.identify(accessToken)).toMatchObject({ kind: 'valid' })
  expect(reports).toEqual(['trouble: open'])
  expect(String(errors[0])).toContain('database is locked')
  expect(journal.unsaved()).toBe(2)
  other.close()
  clock.advance(5 * SECOND)
  store.sweep()
  expect(reports).toEqual(['trouble: open', 'recovered'])
  expect(journal.unsaved()).toBe(0)
  journal.close()
  expect(validAfterRestart(dir, [accessToken])).toBe(1)
})

describe('H72 a token file that could not be opened at the start', () => {
  /** A folder with 20 tokens whose file another program has locked, and what ends that. */
  function lockedFolder(): { dir: string; tokens: readonly string[]; unlock: () => void } {
    const dir = state()
    const before = openJournaledStore(dir)
    const tokens = Array.from({ length: 20 }, () => before.store.issue('a', 'password').accessToken)
    before.journal.setMeta('password', 'print')
    before.journal.close()
    const other = new DatabaseSync(join(dir, 'tokens.db'))
    other.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT')
    return { dir, tokens, unlock: () => other.close() }
  }

  /** Moves the file that was set aside back to its place, as an operator does. */
  function moveBack(dir: string): void {
    const asides = readdirSync(dir).filter((name) => name.startsWith('tokens.db.unread-'))
    expect(asides).toHaveLength(1)
    for (const side of ['-wal', '-shm']) rmSync(join(dir, `tokens.db${side}`), { force: true })
    renameSync(join(dir, present(asides[0])), join(dir, 'tokens.db'))
  }

  test('is set aside with all its tokens by the recovery, not written over', () => {
    const { dir, tokens, unlock } = lockedFolder()
    const { store, clock, journal, reports } = openJournaledStore(dir)
    const fresh = store.issue('a', 'password').accessToken
    unlock()
    clock.advance(5 * SECOND)
    store.sweep()
    expect(reports).toEqual(['trouble: open', 'set aside: unread', 'recovered'])
    // The new file is known, so no later recovery sets it aside.
    rmSync(join(dir, 'tokens.lock'))
    clock.advance(5 * SECOND)
    store.issue('a', 'password')
    expect(reports.slice(3)).toEqual(['trouble: issue', 'recovered'])
    journal.close()
    expect(validAfterRestart(dir, [fresh, ...tokens])).toBe(1)
    moveBack(dir)
    expect(validAfterRestart(dir, tokens)).toBe(20)
    expect(openJournaledStore(dir).journal.getMeta('password')).toBe('print')
  })

  test('is left as it is by the revocation of a token that it cannot hold', () => {
    const { dir, tokens, unlock } = lockedFolder()
    const { store, journal, reports } = openJournaledStore(dir)
    expect(store.revoke({ token: store.issue('a', 'password').accessToken }, 'test')).toBe(1)
    journal.close()
    unlock()
    expect(new Set(reports)).toEqual(new Set(['trouble: open']))
    expect(validAfterRestart(dir, tokens)).toBe(20)
  })

  test('C8 H102 is deleted by the revocation of all tokens', () => {
    const { dir, tokens, unlock } = lockedFolder()
    const { store, journal } = openJournaledStore(dir)
    store.revoke({ all: true }, 'password_changed')
    journal.close()
    unlock()
    expect(validAfterRestart(dir, tokens)).toBe(0)
  })
})

test('H73 every live token counts as unsaved while the files are missing and cannot be made', () => {
  const dir = state()
  const { store, clock, journal } = openJournaledStore(dir)
  const tokens = ['a', 'b', 'c'].map((client) => store.issue(client, 'password'))
  expect(journal.unsaved()).toBe(0)
  renameSync(dir, `${dir}-moved`)
  writeFileSync(dir, '')
  store.sweep()
  expect(journal.unsaved()).toBe(6)
  store.revoke({ client: 'a' }, 'test')
  expect(journal.unsaved()).toBe(4)
  rmSync(dir)
  clock.advance(5 * SECOND)
  store.sweep()
  expect(journal.unsaved()).toBe(0)
  expect(store.identify(present(tokens[2]).accessToken).kind).toBe('valid')
})

test('H73 a store whose state_dir is a file serves from memory', () => {
  const dir = state()
  writeFileSync(dir, '')
  const { store, journal, reports } = openJournaledStore(dir)
  const { accessToken } = store.issue('a', 'password')
  store.revoke({ client: 'nobody' }, 'test')
  store.revoke({ all: true }, 'test')
  expect(store.identify(accessToken)).toEqual({ kind: 'refused', cause: 'revoked' })
  journal.setMeta('key', 'value')
  expect(journal.getMeta('key')).toBe('value')
  expect(reports[0]).toBe('trouble: open')
})

test('a login is flushed by the next sweep, for the sake of a power cut', async () => {
  const dir = state()
  const { store, reports } = openJournaledStore(dir)
  // Looks at the files, so the next one only flushes.
  store.sweep()
  store.issue('a', 'password')
  rmSync(join(dir, 'tokens.db-wal'))
  store.sweep()
  await expect.poll(() => reports).toEqual(['trouble: flush'])
})

test('H73 tokens that are on the disk again do not count as unsaved after a later failure', () => {
  const dir = state()
  writeFileSync(dir, '')
  const { store, clock, journal } = openJournaledStore(dir)
  store.issue('a', 'password')
  expect(journal.unsaved()).toBe(2)
  rmSync(dir)
  clock.advance(5 * SECOND)
  store.sweep()
  expect(journal.unsaved()).toBe(0)
  const exec = vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(() => {
    throw new Error('disk I/O error')
  })
  closeLater(() => void exec.mockRestore())
  store.issue('b', 'password')
  expect(journal.unsaved()).toBe(2)
})

test('H73 a store that cannot write tries again every five seconds, whatever happens meanwhile', () => {
  const dir = state()
  writeFileSync(dir, '')
  const { store, clock, reports } = openJournaledStore(dir)
  for (let second = 1; second < 15; second += 1) {
    clock.advance(SECOND)
    store.issue('a', 'password')
    store.sweep()
  }
  expect(reports).toEqual(Array(3).fill('trouble: open'))
})

describe('files that are removed while the sidecar runs', () => {
  test.each(['tokens.db', 'tokens.db-wal', 'tokens.lock', ''])('%j is replaced at the next login', (name) => {
    const dir = state()
    const { store, journal, reports } = openJournaledStore(dir)
    journal.setMeta('password', 'print')
    const before = store.issue('a', 'password')
    rmSync(join(dir, name), { recursive: true })
    const after = store.issue('a', 'password')
    expect(reports).toEqual(['trouble: issue', 'recovered'])
    journal.close()
    expect(validAfterRestart(dir, [before.accessToken, after.accessToken])).toBe(2)
    expect(openJournaledStore(dir).journal.getMeta('password')).toBe('print')
  })

  test('are replaced at the next sweep if there is no login', () => {
    const dir = state()
    const { store, journal, reports, clock } = openJournaledStore(dir)
    const { accessToken } = store.issue('a', 'password')
    renameSync(join(dir, 'tokens.db'), join(dir, 'elsewhere'))
    store.sweep()
    expect(reports).toEqual(['trouble: open', 'recovered'])
    // A later sweep looks again, five seconds after the last look.
    rmSync(join(dir, 'tokens.db'))
    clock.advance(5 * SECOND)
    store.sweep()
    expect(reports).toEqual(['trouble: open', 'recovered', 'trouble: open', 'recovered'])
    journal.close()
    expect(validAfterRestart(dir, [accessToken])).toBe(1)
  })

  test.each(['tokens.db', 'tokens.lock'])('C8 H102 do not lose a revocation: %s', (name) => {
    const dir = state()
    const { store, journal } = openJournaledStore(dir)
    const { accessToken } = store.issue('a', 'password')
    renameSync(join(dir, name), join(dir, 'elsewhere'))
    store.revoke({ token: accessToken }, 'test')
    journal.close()
    expect(validAfterRestart(dir, [accessToken])).toBe(0)
  })

  test('are left to another sidecar that has taken the folder meanwhile', async () => {
    const dir = state()
    const { store, journal, reports, clock } = openJournaledStore(dir)
    renameSync(dir, `${dir}-moved`)
    const other = await startTokenProcess(dir)
    const tokens = accessTokens(await other.ask({ do: 'issue', count: 1 }))
    store.issue('a', 'password')
    await clock.advance(5 * SECOND)
    store.sweep()
    store.revoke({ all: true }, 'test')
    expect(new Set(reports)).toEqual(new Set(['trouble: issue', 'trouble: open']))
    journal.close()
    await other.kill()
    expect(validAfterRestart(dir, tokens)).toBe(1)
  })
})

test('a database that is damaged while the sidecar runs is replaced without loss', () => {
  const dir = state()
  const { store, journal, reports } = openJournaledStore(dir)
  const tokens = Array.from({ length: 20 }, () => store.issue('a', 'password').accessToken)
  const path = join(dir, 'tokens.db')
  renameSync(path, `${path}-old`)
  writeFileSync(path, Buffer.alloc(statSync(`${path}-old`).size, 0xa5))
  tokens.push(store.issue('a', 'password').accessToken)
  expect(reports).toEqual(['trouble: issue', 'set aside: damaged', 'recovered'])
  journal.close()
  expect(existsSync(`${path}-wal`)).toBe(false)
  expect(validAfterRestart(dir, tokens)).toBe(21)
  expect(present(tokens[0])).toMatch(/^[\w-]{43}$/)
})

test('H73 a folder above the state folder that cannot be searched any more is a trouble of the token file, not a bug', async () => {
  const parent = join(temporaryDirectory(), 'parent')
  mkdirSync(parent)
  const dir = join(parent, 'state')
  const clock = stillClock()
  const { store, journal, reports } = openJournaledStore(dir, { clock })
  const { accessToken, grant = '' } = store.issue('a', 'password')
  const other = store.issue('b', 'password')
  renameSync(parent, `${parent}.away`)
  // Root searches every folder, so a link to itself stands for the lack of permission.
  symlinkSync(parent, parent)
  for (let second = 0; second < 10; second += 1) {
    await clock.advance(SECOND)
    store.sweep()
  }
  expect(reports).toContain('trouble: open')
  expect(store.identify(accessToken).kind).toBe('valid')
  store.revoke({ grant }, 'operator')
  expect(reports.at(-1)).toBe('trouble: revoke')

  rmSync(parent)
  renameSync(`${parent}.away`, parent)
  await clock.advance(10 * SECOND)
  store.sweep()
  expect(reports.at(-1)).toBe('recovered')
  journal.close()
  expect(validAfterRestart(dir, [accessToken, other.accessToken])).toBe(1)
})
