import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { openLog } from '../../src/record/log.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { run } from '../support/tools.ts'

const source = join(import.meta.dirname, '..', '..', 'src', 'record', 'log.ts')

/** Runs a program with a log on standard output (`log`, or `write` past pino), and returns the lines. */
async function written(program: string): Promise<string[]> {
  const { stdout } = await run(process.execPath, [
    '--input-type=module',
    '--eval',
    `import { openLog } from '${source}'
     const { log, destination } = await openLog({ level: 'info', format: 'json' }, { terminal: false, fd: 1 })
     const write = destination.writeAscii
     ${program}`,
  ])
  return stdout.split('\n')
}

it.each([
  ['ends by itself', ''],
  ['calls `exit`', 'process.exit(1)'],
  ['crashes', 'process.nextTick(() => { throw new Error("a bug") })'],
])('every buffered line is written completely and in order when the process %s', async (_, end) => {
  const lines = await written(`
    for (let i = 0; i < 700; i += 1) i % 3 === 0 ? log.info({ i }, 'grüße €') : write(JSON.stringify({ i }) + '\\n')
    ${end}`)
  expect(lines.pop()).toBe('')
  expect(lines.map((line) => JSON.parse(line).i)).toEqual(Array.from({ length: 700 }, (_, i) => i))
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ msg: 'grüße €' })
})

it('a line that is longer than the buffer is written completely and in order', async () => {
  const lines = await written(`log.info('before'); log.info('€'.repeat(100_000)); log.info('behind')`)
  const messages = lines.slice(0, -1).map((line) => JSON.parse(line).msg)
  expect(messages).toEqual(['before', '€'.repeat(100_000), 'behind'])
})

it('a line is written within a second, even if no other follows', async () => {
  const file = join(temporaryDirectory(), 'log')
  const fd = openSync(file, 'a')
  const { destination } = await openLog({ level: 'info', format: 'json' }, { terminal: false, fd })
  destination.writeAscii('{"alone":true}\n')
  await expect.poll(() => readFileSync(file, 'utf8')).toBe('{"alone":true}\n')
  closeSync(fd)
})

it('a line that is flushed during the write of the previous one does not wait for another line', async () => {
  const file = join(temporaryDirectory(), 'log')
  const fd = openSync(file, 'a')
  const { log } = await openLog({ level: 'info', format: 'json' }, { terminal: false, fd })
  log.info('first')
  log.flush() // The write is in progress when this returns.
  log.info('second')
  log.flush()
  const messages = (): unknown[] =>
    readFileSync(file, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line).msg)
  await expect.poll(messages).toEqual(['first', 'second'])
  closeSync(fd)
})

it('H252 lines are dropped while nobody reads them, and a line tells how many when the reader is back', async () => {
  const program = `import { openLog } from '${source}'
    const { log, destination } = await openLog({ level: 'info', format: 'json' }, { terminal: false, fd: 1 })
    const line = 'z'.repeat(10_000)
    for (let i = 0; i < 1_000; i += 1) log.info(line)
    process.stderr.write(String(destination.unwritten()))
    // The line about the others is written a second after them at the latest.
    const end = () => destination.unwritten() > 0 ? setTimeout(end, 20) : setTimeout(() => process.exit(), 2_000)
    process.stdin.once('data', end)`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program])
  closeLater(() => void child.kill('SIGKILL'))
  const [held] = await once(child.stderr, 'data')
  expect(Number(String(held))).toBeGreaterThan(1024 ** 2)
  expect(Number(String(held))).toBeLessThan(3 * 1024 ** 2)
  child.stdin.write('read')
  const lines = (await text(child.stdout)).trim().split('\n')
  const dropped = lines.find((line) => line.includes('log lines were dropped')) ?? '{}'
  expect(JSON.parse(dropped).count).toBe(1_000 - (lines.length - 1))
})

it.each([
  ['json', ['"level":30,', '"level":50,']],
  ['pretty', ['INFO: ', 'ERROR: ']],
])(
  'H262 a log (%s) that cannot be written ends nothing: its lines wait for room, and a line says why',
  async (format, levels) => {
    const path = join(temporaryDirectory(), 'log')
    writeFileSync(path, 'x'.repeat(10 * 1024))
    const program = `import { openLog } from '${source}'
    const { log } = await openLog({ level: 'info', format: '${format}' }, { terminal: false, fd: 1 })
    log.info('first')
    log.flush((error) => process.stderr.write(error === undefined || error === null ? 'written' : error.code))
    process.stdin.once('data', () => process.exit())`
    // The limit on the size of a file, in blocks of 512 bytes.
    const limited = ['-c', 'ulimit -S -f 20; exec "$@" >> "$0"', path, process.execPath]
    const child = spawn('sh', [...limited, '--input-type=module', '--eval', program])
    closeLater(() => void child.kill('SIGKILL'))
    const [code] = await once(child.stderr, 'data')
    expect(String(code)).toBe('EFBIG')
    truncateSync(path)
    const lines = (): string[] => readFileSync(path, 'utf8').trim().split('\n')
    await expect.poll(() => lines().length).toBe(2)
    child.stdin.write('end')
    expect(await once(child, 'exit')).toEqual([0, null])
    const [first, second] = lines()
    expect([first, second]).toEqual(levels.map((level) => expect.stringContaining(level)))
    expect(first).toContain('first')
    expect(second).toContain('the log could not be written; its lines waited until now')
    expect(second).toContain('EFBIG')
  },
)

it('H252 a reader that pauses stops no program, also one that writes for people', async () => {
  const program = `import { openLog } from '${source}'
    const { log } = await openLog({ level: 'info', format: 'pretty' }, { terminal: false, fd: 1 })
    for (let i = 0; i < 100; i += 1) log.info('z'.repeat(10_000))
    setTimeout(() => process.stderr.write('goes on'), 10)`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program])
  closeLater(() => void child.kill('SIGKILL'))
  expect(String((await once(child.stderr, 'data'))[0])).toBe('goes on')
})
