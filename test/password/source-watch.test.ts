import { EventEmitter, once } from 'node:events'
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { passwordSources } from '../../src/config/password-fields.ts'
import { openPasswords, type Passwords } from '../../src/password/sources.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { realClock } from '../support/clock.ts'
import { livedTime } from '../support/lived-time.ts'
import { VECTORS } from './vectors.ts'

type Source = NonNullable<Parameters<typeof passwordSources>[0]['password']>

interface Watched {
  readonly source: Passwords
  /** Every event so far, in order. */
  readonly events: readonly string[]
  /** Calls `act` and waits for the event; resolves with the time in between (ms of `livedTime`). */
  expectEvent(act: () => void, event: 'changed' | 'unreadable' | 'restored'): Promise<number>
}

async function watched(config: Source): Promise<Watched> {
  const events: string[] = []
  const emitter = new EventEmitter()
  const report = (event: string, reason?: string): void => {
    events.push(reason === undefined ? event : `${event} ${reason}`)
    emitter.emit(event)
  }
  const listener = {
    changed: () => report('changed'),
    unreadable: (reason: string) => report('unreadable', reason),
    restored: () => report('restored'),
  }
  const source = await openPasswords(passwordSources({ password: config }), {
    clock: realClock(),
    events: listener,
  })
  closeLater(() => source[Symbol.dispose]())
  // Every source reads its file twice at the start. The change must come later, or the test would not cover the watching.
  await delay(200)
  const now = livedTime()
  return {
    source,
    events,
    async expectEvent(act, event) {
      const heard = once(emitter, event)
      const start = now()
      act()
      await heard
      return now() - start
    },
  }
}

/** Waits for a second. A change takes effect within that time, so no event follows after it. */
async function expectNoEvent(): Promise<void> {
  await delay(1000)
}

function replace(file: string, content: string): void {
  writeFileSync(`${file}.new`, content)
  renameSync(`${file}.new`, file)
}

function passwordFile(content: string): string {
  const file = join(temporaryDirectory(), 'password')
  writeFileSync(file, content)
  return file
}

async function expectPassword(source: Passwords, right: string, wrong: string): Promise<void> {
  expect([await source.verify(right, '192.0.2.1'), await source.verify(wrong, '192.0.2.1')]).toMatchObject([
    { result: 'right' },
    { result: 'wrong' },
  ])
}

describe.concurrent('C8 A changed password takes effect and is reported within a second', () => {
  it.each<[string, (file: string) => void]>([
    ['the file is rewritten in place', (file) => writeFileSync(file, 'new\n')],
    ['the file is replaced by rename', (file) => replace(file, 'new\n')],
    [
      'the file is removed and written again',
      (file) => {
        rmSync(file)
        writeFileSync(file, 'new\n')
      },
    ],
    [
      'the file is rewritten to the same length and its time set back',
      (file) => {
        writeFileSync(file, 'new\n')
        utimesSync(file, 1, 1)
      },
    ],
  ])('H75 when %s', async (_how, change) => {
    const file = passwordFile('old\n')
    const { source, events, expectEvent } = await watched({ file })
    expect(await expectEvent(() => change(file), 'changed')).toBeLessThan(1000)
    await expectPassword(source, 'new', 'old')
    expect(events).toEqual(['changed'])
  })

  it('H75 when a symbolic link is swapped, as Kubernetes does with its secrets', async () => {
    const folder = temporaryDirectory()
    for (const [version, password] of [
      ['..1', 'old'],
      ['..2', 'new'],
    ] as const) {
      mkdirSync(join(folder, version))
      writeFileSync(join(folder, version, 'password'), password)
    }
    symlinkSync('..1', join(folder, '..data'))
    symlinkSync('..data/password', join(folder, 'password'))
    const { source, events, expectEvent } = await watched({ file: join(folder, 'password') })
    const swap = (): void => {
      symlinkSync('..2', join(folder, '..data_tmp'))
      renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
      rmSync(join(folder, '..1'), { recursive: true })
    }
    expect(await expectEvent(swap, 'changed')).toBeLessThan(1000)
    await expectPassword(source, 'new', 'old')
    expect(events).toEqual(['changed'])
  })

  it('H75 when the target of a symbolic link is rewritten, which causes no event in the folder of the link', async () => {
    const target = passwordFile('old')
    const file = join(temporaryDirectory(), 'link')
    symlinkSync(target, file)
    const { source, expectEvent } = await watched({ file })
    expect(await expectEvent(() => writeFileSync(target, 'new'), 'changed')).toBeLessThan(1000)
    await expectPassword(source, 'new', 'old')
  })

  it('H75 when the whole folder is replaced, twice', async () => {
    const file = passwordFile('old')
    const { source, expectEvent } = await watched({ file })
    for (const password of ['new', 'newer']) {
      const swap = (): void => {
        rmSync(dirname(file), { recursive: true })
        mkdirSync(dirname(file))
        writeFileSync(file, password)
      }
      expect(await expectEvent(swap, 'changed')).toBeLessThan(1000)
      await expectPassword(source, password, 'old')
    }
  })

  it('H75 but not before its writer has finished the file', async () => {
    const file = passwordFile('old')
    const { source, events, expectEvent } = await watched({ file })
    const password = 'a long new password, letter by letter'
    let at = 0
    // The writer is faster than the interval between two reads of the source, and in the same process. So even a stalled
    // process writes between two reads.
    const writer = setInterval(() => {
      appendFileSync(file, password.charAt(at))
      at += 1
      if (at >= password.length) clearInterval(writer)
    }, 20)
    closeLater(() => clearInterval(writer))
    await expectEvent(() => truncateSync(file), 'changed')
    expect(events).toEqual(['changed'])
    await expectPassword(source, password, password.slice(0, -1))
  })

  it('if it is that of the configured user, and not of another', async () => {
    const [one, two, three] = VECTORS.filter(([tool]) => tool.startsWith('htpasswd')).map(
      ([, , line]) => line,
    )
    const file = passwordFile(`admin:${one}\nother:${two}\n`)
    const { source, events, expectEvent } = await watched({ htpasswd: { file, user: 'admin' } })
    const before = await source.fingerprint(new Uint8Array(16))
    replace(file, `other:${three}\nadmin:${one}\nthird:${two}\n`)
    await expectNoEvent()
    expect(events).toEqual([])
    await expectEvent(() => replace(file, `admin:${two}\nother:${three}\n`), 'changed')
    expect(events).toEqual(['changed'])
    expect(await source.fingerprint(new Uint8Array(16))).not.toBe(before)
  })

  // Alone, because its hashing would delay the others.
  it('and a login that was in flight learns that it was verified against the earlier one', {
    concurrent: false,
  }, async () => {
    // `mkpasswd -m bcrypt -R 12`, 5.5.17: five verifications take longer than the change.
    const file = passwordFile('$2b$12$LQBBthczq9d4x/IuUqIMc.4oXRVP0W/7ovG7/N0F.7g0BpGiI8zw.')
    const { source, events, expectEvent } = await watched({ file })
    expect(await source.verify('old secret', '192.0.2.1')).toMatchObject({ result: 'right' })
    const logins = Array.from({ length: 5 }, async () => {
      const { result, generation } = await source.verify('old secret', '192.0.2.1')
      if (events.length === 0) return 'before'
      return generation === source.generation ? result : 'outdated'
    })
    await expectEvent(() => replace(file, 'new secret'), 'changed')
    const verdicts = await Promise.all(logins)
    expect(verdicts).toContain('outdated')
    expect(verdicts).not.toContain('right')
  })
})

describe.concurrent('No event is reported', () => {
  it('C8 when the file is touched or rewritten with the same password', async () => {
    const file = passwordFile('same\n')
    const { source, events } = await watched({ file })
    utimesSync(file, new Date(), new Date())
    await expectNoEvent()
    writeFileSync(file, 'same')
    await expectNoEvent()
    replace(file, 'same\r\n')
    await expectNoEvent()
    expect(events).toEqual([])
    await expectPassword(source, 'same', 'other')
  })

  it('after the source is closed', async () => {
    const file = passwordFile('old')
    const { source, events } = await watched({ file })
    writeFileSync(file, 'new')
    source[Symbol.dispose]()
    await expectNoEvent()
    expect(events).toEqual([])
  })
})

describe.concurrent('H75 The last good password stays valid', () => {
  it.each<[string, string, (file: string) => void]>([
    ['emptied', 'it is empty, and an empty password is never accepted', (file) => truncateSync(file)],
    ['removed', 'there is no such file', (file) => rmSync(file)],
    [
      'extended by a second line',
      'it has several lines, and must have exactly one',
      (file) => appendFileSync(file, '\nx'),
    ],
    [
      'replaced by a folder',
      'it is a folder',
      (file) => {
        rmSync(file)
        mkdirSync(file)
      },
    ],
    [
      'left with half a hash',
      'it is not a complete bcrypt hash (60 characters)',
      (file) => writeFileSync(file, '$2b$10$half'),
    ],
  ])('when the file is %s; the trouble and its end are reported once', async (_how, reason, damage) => {
    const file = passwordFile('old')
    const { source, events, expectEvent } = await watched({ file })
    const trouble = `password file ${file}: ${reason}`
    expect(await expectEvent(() => damage(file), 'unreadable')).toBeLessThan(1000)
    expect(source.state()).toMatchObject({ readable: false, reason: trouble })
    await expectPassword(source, 'old', '')
    await expectNoEvent()
    expect(events).toEqual([`unreadable ${trouble}`])

    rmSync(file, { recursive: true, force: true })
    const restore = (): void => replace(file, 'old\n')
    expect(await expectEvent(restore, 'restored')).toBeLessThan(1000)
    expect(source.state()).toMatchObject({ readable: true })
    expect(events.at(-1)).toBe('restored')
    expect(events).not.toContain('changed')
  })

  it('through one trouble after another, each reported once', async () => {
    const file = passwordFile('old')
    const { source, events, expectEvent } = await watched({ file })
    await expectEvent(() => truncateSync(file), 'unreadable')
    await expectEvent(() => rmSync(file), 'unreadable')
    await expectEvent(() => writeFileSync(file, 'a\nb'), 'unreadable')
    await expectPassword(source, 'old', 'a')
    await expectEvent(() => writeFileSync(file, 'new'), 'changed')
    expect(events.map((event) => event.split(' ')[0])).toEqual([
      'unreadable',
      'unreadable',
      'unreadable',
      'restored',
      'changed',
    ])
    await expectPassword(source, 'new', 'old')
    expect(readFileSync(file, 'utf8')).toBe('new')
  })
})
