import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Look } from '../../src/system/other-writers.ts'
import { otherWriters } from '../../src/system/other-writers.ts'
import { temporaryDirectory } from '../support/certificate.ts'

const [ME, STRANGER, STAFF] = [1000, 1001, 50]
const [FOLDER, FILE, LINK] = [0o040000, 0o100000, 0o120000]

type Entry = readonly [mode: number, uid?: number, gid?: number] | string

const PASSWD = ['root:x:0:0:root:/root:/bin/sh', 'me:x:1000:1000::/home/me:/bin/sh']
const GROUP = ['root:x:0:', 'me:x:1000:', 'staff:x:50:']

/** A file system. A text is the target of a link of root. */
function look(
  entries: Readonly<Record<string, Entry>>,
  { passwd = PASSWD, group = GROUP }: { passwd?: readonly string[]; group?: readonly string[] } = {},
): Look {
  const texts: Readonly<Record<string, readonly string[]>> = { '/etc/passwd': passwd, '/etc/group': group }
  const all: Readonly<Record<string, Entry>> = { '/': [FOLDER | 0o755], ...entries }
  return {
    async facts(path) {
      const entry = all[path]
      if (typeof entry === 'string') return { uid: 0, gid: 0, mode: LINK | 0o777, link: entry }
      return entry && { uid: entry[1] ?? 0, gid: entry[2] ?? 0, mode: entry[0] }
    },
    text: async (path) => texts[path]?.join('\n'),
  }
}

const reasons = async (path: string, around: Look, more: object = {}) =>
  (await otherWriters(path, { user: ME, look: around, ...more })).map(({ reason }) => reason)

describe('H367 the parts of a path that another user can change', () => {
  const home = { '/home': [FOLDER | 0o755], '/home/me': [FOLDER | 0o755, ME, ME] } as const
  const file = { '/home/me/file': [FILE | 0o644, ME, ME] } as const

  it('are none if all belongs to root or to the user', async () => {
    expect(await reasons('/home/me/file', look({ ...home, ...file }))).toEqual([])
  })

  it.each<[what: string, entries: Readonly<Record<string, Entry>>, found: readonly string[]]>([
    ['the file', { '/home/me/file': [FILE | 0o602, ME] }, ['other users can write /home/me/file']],
    [
      'the owner of the file',
      { '/home/me/file': [FILE | 0o600, STRANGER] },
      ['/home/me/file belongs to user 1001'],
    ],
    ['the folder', { '/home/me': [FOLDER | 0o757, ME] }, ['other users can write /home/me']],
    ['the folder above', { '/home': [FOLDER | 0o777] }, ['other users can write /home']],
    [
      'the owner of the folder above',
      { '/home': [FOLDER | 0o755, STRANGER] },
      ['/home belongs to user 1001'],
    ],
    ['the root', { '/': [FOLDER | 0o777] }, ['other users can write /']],
    [
      'several, from the root on',
      { '/': [FOLDER | 0o777], '/home/me': [FOLDER | 0o700, STRANGER] },
      ['other users can write /', '/home/me belongs to user 1001'],
    ],
    ['a group of others', { '/home/me': [FOLDER | 0o775, ME, STAFF] }, ['other users can write /home/me']],
  ])('%s', async (_what, entries, found) => {
    expect(await reasons('/home/me/file', look({ ...home, ...file, ...entries }))).toEqual(found)
  })

  it('are no sticky folder above, whose contents belong to root or to the user', async () => {
    const tmp = { '/tmp': [FOLDER | 0o1777] } as const
    expect(await reasons('/tmp/file', look({ ...tmp, '/tmp/file': [FILE | 0o600, ME] }))).toEqual([])
    expect(await reasons('/tmp/file', look({ ...tmp, '/tmp/file': [FILE | 0o600, STRANGER] }))).toEqual([
      '/tmp/file belongs to user 1001',
    ])
    expect(await reasons('/tmp', look(tmp))).toEqual(['other users can write /tmp'])
    const theirs = look({ '/tmp': [FOLDER | 0o1777, STRANGER], '/tmp/file': [FILE | 0o600, ME] })
    expect(await reasons('/tmp/file', theirs)).toEqual(['/tmp belongs to user 1001'])
  })

  it('are those of the target of a link, of the folder of each link, and the owner of a link', async () => {
    const open = { '/open': [FOLDER | 0o777], '/open/file': [FILE | 0o600] } as const
    const writable = ['other users can write /open']
    for (const link of ['/open/file', '../open/file', 'down/../../open/file'])
      expect(
        await reasons('/srv/link', look({ '/srv': [FOLDER | 0o755], '/srv/link': link, ...open })),
      ).toEqual(writable)
    const chain = { '/a': '/open/b', '/open/b': '/safe', '/safe': [FILE | 0o600] } as const
    expect(await reasons('/a', look({ ...open, ...chain }))).toEqual(writable)
    expect(await reasons('/a/file', look({ ...open, '/a': '/open' }))).toEqual(writable)
    const planted = { '/safe': [FILE | 0o600], '/tmp': [FOLDER | 0o1777] } as const
    const facts = look({ ...planted, '/tmp/link': '/safe' }).facts
    const byStranger: Look['facts'] = async (path) => {
      const found = await facts(path)
      return found?.link === undefined ? found : { ...found, uid: STRANGER }
    }
    expect(await reasons('/tmp/link', { ...look({}), facts: byStranger })).toEqual([
      '/tmp/link belongs to user 1001',
    ])
  })

  it('`..` behind a link is the folder above its target', async () => {
    const around = look({ '/link': '/open/in', '/open': [FOLDER | 0o777], '/open/in': [FOLDER | 0o755] })
    expect(new Set(await reasons('/link/../file', around))).toEqual(new Set(['other users can write /open']))
  })

  it('end at a part that does not exist, and at links that never end', async () => {
    expect(await reasons('/home/me/none/file', look(home))).toEqual([])
    expect(await reasons('/loop', look({ '/loop': '/loop' }))).toEqual([])
  })

  it('are not judged by their owner where owners seem to be others', async () => {
    const around = look({ '/run': [FOLDER | 0o755, STRANGER], '/run/x': [FILE | 0o602, STRANGER] })
    expect(await reasons('/run/x', around, { anyOwner: true })).toEqual(['other users can write /run/x'])
  })

  it('have a remedy', async () => {
    const remedies = async (entries: Readonly<Record<string, Entry>>) =>
      (await otherWriters('/a b/file', { user: ME, look: look(entries) })).map(({ remedy }) => remedy)
    expect(await remedies({ '/a b': [FOLDER | 0o777], '/a b/file': [FILE, STRANGER] })).toEqual([
      "chmod go-w '/a b'",
      "chown 1000 '/a b/file'",
    ])
    expect(await remedies({ '/a b': [FOLDER | 0o755, STRANGER] })).toEqual(["move it out of '/a b'"])
  })
})

describe('H367 a group that can write', () => {
  const other = 'other:x:1001:1001::/:/bin/sh'

  it.each<[what: string, isSafe: boolean, files: Parameters<typeof look>[1], gid?: number]>([
    ['the user alone', true, {}],
    ['the user, who is also listed', true, { group: ['me:x:1000:me'] }],
    ['root alone', true, {}, 0],
    ['another name', false, { group: ['users:x:1000:'] }],
    ['the primary group of another user', false, { passwd: [...PASSWD, 'other:x:1001:1000::/:/bin/sh'] }],
    ['another member', false, { group: ['me:x:1000:me,other'] }],
    ['only another member', false, { group: ['me:x:1000:other'] }],
    ['the private group of another user', false, { passwd: [other], group: ['other:x:1001:'] }, 1001],
    ['no known user', false, { passwd: [] }],
    ['no known group', false, { group: [] }],
    ['nobody, as a group of programs', false, {}, STAFF],
    ['an empty line', false, { passwd: ['', ':::1000'], group: [':x:1000:'] }],
  ])('of %s: %s', async (_what, isSafe, files, gid = ME) => {
    const around = look({ '/f': [FILE | 0o664, ME, gid] }, files)
    expect(await reasons('/f', around)).toEqual(isSafe ? [] : ['other users can write /f'])
  })

  it('is no excuse for what everybody can write', async () => {
    expect(await reasons('/f', look({ '/f': [FILE | 0o666, ME, ME] }))).toEqual(['other users can write /f'])
  })
})

it('H367 the file system is that of this machine, and a path may be relative', async () => {
  const folder = temporaryDirectory()
  const [open, file, link] = [join(folder, 'open'), join(folder, 'open', 'file'), join(folder, 'link')]
  mkdirSync(open)
  writeFileSync(file, '')
  symlinkSync('open/file', link)
  expect(await otherWriters(link)).toEqual([])
  chmodSync(open, 0o777)
  const found = [{ reason: `other users can write ${open}`, remedy: `chmod go-w ${open}`, isLast: false }]
  expect(await otherWriters(link)).toEqual(found)
  const relative = `${'../'.repeat(resolve('.').split('/').length - 1)}${link.slice(1)}`
  expect(await otherWriters(relative)).toEqual(found)
})
