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
import { openPasswordSource, type PasswordSource } from '../../src/password/source.ts'
import type { PasswordSourceConfig } from '../../src/password/source-file.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { movableClock } from '../support/clock.ts'
import { VECTORS } from './vectors.ts'

interface Watched {
  readonly source: PasswordSource
  /** Everything that was told, in order. */
  readonly told: readonly string[]
  /** Does something to the file and waits for what must follow; returns the milliseconds between. */
  until(act: () => void, event: 'changed' | 'unreadable' | 'restored'): Promise<number>
}

async function watched(config: PasswordSourceConfig): Promise<Watched> {
  const told: string[] = []
  const emitter = new EventEmitter()
  const tell = (event: string, reason?: string): void => {
    told.push(reason === undefined ? event : `${event} ${reason}`)
    emitter.emit(event)
  }
  const events = {
    changed: () => tell('changed'),
    unreadable: (reason: string) => tell('unreadable', reason),
    restored: () => tell('restored'),
  }
  const source = await openPasswordSource(config, { clock: movableClock(), events })
  closeLater(() => source.close())
  // Or the look that every source begins with might find the change, and the watching go untested.
  await delay(200)
  return {
    source,
    told,
    async until(act, event) {
      const heard = once(emitter, event)
      const start = performance.now()
      act()
      await heard
      return performance.now() - start
    },
  }
}

/** What is promised within a second would have happened by now. There is no event to await: nothing must happen. */
async function nothingMore(): Promise<void> {
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

async function holds(source: PasswordSource, right: string, wrong: string): Promise<void> {
  expect([await source.verify(right), await source.verify(wrong)]).toEqual(['right', 'wrong'])
}

describe('C8 A changed password holds, and is told of, within a second', () => {
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
    const { source, told, until } = await watched({ file })
    expect(await until(() => change(file), 'changed')).toBeLessThan(1000)
    await holds(source, 'new', 'old')
    expect(told).toEqual(['changed'])
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
    const { source, told, until } = await watched({ file: join(folder, 'password') })
    const swap = (): void => {
      symlinkSync('..2', join(folder, '..data_tmp'))
      renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
      rmSync(join(folder, '..1'), { recursive: true })
    }
    expect(await until(swap, 'changed')).toBeLessThan(1000)
    await holds(source, 'new', 'old')
    expect(told).toEqual(['changed'])
  })

  it('H75 when the far end of a symbolic link is rewritten, of which the folder sends no notice', async () => {
    const target = passwordFile('old')
    const file = join(temporaryDirectory(), 'link')
    symlinkSync(target, file)
    const { source, until } = await watched({ file })
    expect(await until(() => writeFileSync(target, 'new'), 'changed')).toBeLessThan(1000)
    await holds(source, 'new', 'old')
  })

  it('H75 when the whole folder was replaced, twice', async () => {
    const file = passwordFile('old')
    const { source, until } = await watched({ file })
    for (const password of ['new', 'newer']) {
      const swap = (): void => {
        rmSync(dirname(file), { recursive: true })
        mkdirSync(dirname(file))
        writeFileSync(file, password)
      }
      expect(await until(swap, 'changed')).toBeLessThan(1000)
      await holds(source, password, 'old')
    }
  })

  it('H75 and a file that is being written is not taken before its writer is done', async () => {
    const file = passwordFile('old')
    const { source, told, until } = await watched({ file })
    const password = 'a long new password, letter by letter'
    let at = 0
    // Oftener than the source looks twice, and in this process: even a stalled one writes between the two looks.
    const writer = setInterval(() => {
      appendFileSync(file, password.charAt(at))
      at += 1
      if (at >= password.length) clearInterval(writer)
    }, 20)
    closeLater(() => clearInterval(writer))
    await until(() => truncateSync(file), 'changed')
    expect(told).toEqual(['changed'])
    await holds(source, password, password.slice(0, -1))
  })

  it('for one user of a table, and no other', async () => {
    const [one, two, three] = VECTORS.filter(([tool]) => tool.startsWith('htpasswd')).map(
      ([, , line]) => line,
    )
    const file = passwordFile(`admin:${one}\nother:${two}\n`)
    const { source, told, until } = await watched({ htpasswd: { file, user: 'admin' } })
    const before = await source.fingerprint(new Uint8Array(16))
    replace(file, `other:${three}\nadmin:${one}\nthird:${two}\n`)
    await nothingMore()
    expect(told).toEqual([])
    await until(() => replace(file, `admin:${two}\nother:${three}\n`), 'changed')
    expect(told).toEqual(['changed'])
    expect(await source.fingerprint(new Uint8Array(16))).not.toBe(before)
  })

  it('and the earlier one no longer lets in a login that was under way', async () => {
    // `mkpasswd -m bcrypt -R 12`, 5.5.17: slow enough that eight of them last longer than the change takes.
    const file = passwordFile('$2b$12$LQBBthczq9d4x/IuUqIMc.4oXRVP0W/7ovG7/N0F.7g0BpGiI8zw.')
    const { source, told, until } = await watched({ file })
    expect(await source.verify('old secret')).toBe('right')
    const logins = Array.from({ length: 8 }, async () => {
      const verdict = await source.verify('old secret')
      return told.length === 0 ? 'before' : verdict
    })
    await until(() => replace(file, 'new secret'), 'changed')
    const verdicts = await Promise.all(logins)
    expect(verdicts).toContain('wrong')
    expect(verdicts).not.toContain('right')
  })
})

describe('Nothing is told', () => {
  it('C8 when the file is touched, or written again with the same password', async () => {
    const file = passwordFile('same\n')
    const { source, told } = await watched({ file })
    utimesSync(file, new Date(), new Date())
    await nothingMore()
    writeFileSync(file, 'same')
    await nothingMore()
    replace(file, 'same\r\n')
    await nothingMore()
    expect(told).toEqual([])
    await holds(source, 'same', 'other')
  })

  it('after the source was closed', async () => {
    const file = passwordFile('old')
    const { source, told } = await watched({ file })
    writeFileSync(file, 'new')
    source.close()
    await nothingMore()
    expect(told).toEqual([])
  })
})

describe('H75 The last good password holds', () => {
  it.each<[string, string, (file: string) => void]>([
    ['emptied', 'it is empty, and an empty password is never accepted', (file) => truncateSync(file)],
    ['removed', 'there is no such file', (file) => rmSync(file)],
    [
      'given a second line',
      'it has several lines, and must have exactly one',
      (file) => appendFileSync(file, '\nx'),
    ],
    [
      'replaced by a folder',
      'it is not a regular file',
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
  ])('when the file is %s, which is told once, and so is its return', async (_how, reason, spoil) => {
    const file = passwordFile('old')
    const { source, told, until } = await watched({ file })
    const trouble = `password file ${file}: ${reason}`
    expect(await until(() => spoil(file), 'unreadable')).toBeLessThan(1000)
    expect(source.state()).toEqual({ readable: false, reason: trouble })
    await holds(source, 'old', '')
    await nothingMore()
    expect(told).toEqual([`unreadable ${trouble}`])

    rmSync(file, { recursive: true, force: true })
    const restore = (): void => replace(file, 'old\n')
    expect(await until(restore, 'restored')).toBeLessThan(1000)
    expect(source.state()).toEqual({ readable: true })
    expect(told.at(-1)).toBe('restored')
    expect(told).not.toContain('changed')
  })

  it('through one trouble after another, each told once', async () => {
    const file = passwordFile('old')
    const { source, told, until } = await watched({ file })
    await until(() => truncateSync(file), 'unreadable')
    await until(() => rmSync(file), 'unreadable')
    await until(() => writeFileSync(file, 'a\nb'), 'unreadable')
    await holds(source, 'old', 'a')
    await until(() => writeFileSync(file, 'new'), 'changed')
    expect(told.map((event) => event.split(' ')[0])).toEqual([
      'unreadable',
      'unreadable',
      'unreadable',
      'restored',
      'changed',
    ])
    await holds(source, 'new', 'old')
    expect(readFileSync(file, 'utf8')).toBe('new')
  })
})
