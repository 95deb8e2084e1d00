import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { reportFailure } from '../../src/commands/command.ts'
import { type LogSettings, openLog } from '../../src/record/log.ts'
import { isJournal, withSeverity } from '../../src/system/journald.ts'
import { SetupError } from '../../src/system/setup-error.ts'
import { temporaryDirectory } from '../support/certificate.ts'

/** What a log with these settings writes to a stream that journald reads. */
async function journalled(format: LogSettings['format']): Promise<string> {
  const file = join(temporaryDirectory(), 'journal')
  const fd = openSync(file, 'a')
  const { log, destination } = await openLog(
    { level: 'trace', format },
    { terminal: false, fd, journal: true },
  )
  destination.writeAscii('{"level":30,"msg":"request"}\n')
  log.fatal('f')
  log.error({ err: new Error('first\nsecond') }, 'e')
  log.warn('w')
  log.info('i')
  log.debug('<0>d')
  log.info('\u2028u\u2029v\x85w\rx')
  log.trace('t')
  await destination[Symbol.asyncDispose]()
  closeSync(fd)
  return readFileSync(file, 'utf8')
}

it('H314 each line for journald has its severity, and is the same JSON behind it', async () => {
  const lines = (await journalled('json')).split('\n').slice(0, -1)
  expect(lines.map((line) => line.slice(0, 3))).toEqual([
    '<6>',
    '<3>',
    '<3>',
    '<4>',
    '<6>',
    '<7>',
    '<6>',
    '<7>',
  ])
  const messages = lines.map((line) => JSON.parse(line.slice(3)).msg)
  expect(messages).toEqual(['request', 'f', 'e', 'w', 'i', '<0>d', '\u2028u\u2029v\x85w\rx', 't'])
})

it('H314 so has each line of a readable text, also of a stack', async () => {
  const lines = (await journalled('pretty')).split('\n').filter((line) => line !== '')
  expect(lines.filter((line) => !/^<[3467]>/.test(line))).toEqual([])
  expect(lines.find((line) => line.includes('second'))).toMatch(/^<3>/)
})

it('H314 nothing else than the stream that systemd names is for journald', () => {
  const fd = openSync(join(temporaryDirectory(), 'stream'), 'a')
  const { dev, ino } = fstatSync(fd)
  expect(isJournal(fd, { JOURNAL_STREAM: `${dev}:${ino}` })).toBe(true)
  expect(isJournal(fd, { JOURNAL_STREAM: `${dev}:${ino + 1}` })).toBe(false)
  expect(isJournal(fd, { JOURNAL_STREAM: '' })).toBe(false)
  expect(isJournal(fd, {})).toBe(false)
  closeSync(fd)
  expect(isJournal(fd, { JOURNAL_STREAM: `${dev}:${ino}` })).toBe(false)
})

it('H314 the reason of a failed start is an error for journald, and as it was elsewhere', () => {
  const { dev, ino } = fstatSync(2)
  const written = (env: Record<string, string>): string => {
    let text = ''
    const stderr = { write: (part: string) => (text += part) }
    reportFailure('start', new SetupError(['one', 'two']), { stderr, env })
    return text
  }
  expect(written({ JOURNAL_STREAM: `${dev}:${ino}` })).toBe('<3>postern start: one\n<3>postern start: two\n')
  expect(written({})).toBe('postern start: one\npostern start: two\n')
})

it('H314 an empty line gets no severity', () => {
  expect(withSeverity(4, 'a\n\nb\n')).toBe('<4>a\n\n<4>b\n')
})
