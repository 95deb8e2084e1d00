import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openLog } from '../../src/record/log.ts'
import { readableLines } from '../../src/record/readable-lines.ts'
import { temporaryDirectory } from '../support/certificate.ts'

const TIME = '2026-11-23T03:31:25.007Z'
/** The same moment in the zone of this machine. */
const LOCAL = new Date(TIME).toTimeString().slice(0, 8)

const line = (members: object): string => `${JSON.stringify({ level: 40, time: TIME, ...members })}\n`

it('a line for people has local time, level, message and the other members as JSON', () => {
  const readable = readableLines(false)
  expect(readable(line({ key: 'listen.tls', n: 5, msg: 'insecure' }))).toBe(
    `[${LOCAL}.007] WARN: insecure {"key":"listen.tls","n":5}\n`,
  )
  expect(readable(line({ msg: 'stopped' }))).toBe(`[${LOCAL}.007] WARN: stopped\n`)
  expect(readable(line({ n: 5 }))).toBe(`[${LOCAL}.007] WARN:  {"n":5}\n`)
})

/** A line of the access log, with all members that a request of a name can have. */
const request = (members: object): string =>
  line({
    ...{ level: 30, request_id: 'a1b2', grant: 'monitor.c3d4', name: 'monitor', client: '127.0.0.1' },
    ...{ method: 'GET', path: '/api/status', version: '1.1', endpoint: 'api', status: 200 },
    ...{ ...members, ms: 42, in: 0, out: 17, msg: 'request' },
  })

it.each([
  ['that was answered', {}, 'GET /api/status 200 42 ms 127.0.0.1 monitor'],
  ['of an account without a name', { grant: 'c3d4', name: undefined }, 'GET /api/status 200 42 ms 127.0.0.1'],
  [
    'that was refused, with the id for explain',
    { status: 429, refusal: 'rate-limited' },
    'GET /api/status 429 42 ms 127.0.0.1 monitor {"request_id":"a1b2","refusal":"rate-limited"}',
  ],
  [
    'that was broken off',
    { end: 'client-left', ended_for: 'idle' },
    'GET /api/status 200 42 ms 127.0.0.1 monitor {"request_id":"a1b2","end":"client-left","ended_for":"idle"}',
  ],
  [
    'that would be refused',
    { would_refuse: 'rate-limited' },
    'GET /api/status 200 42 ms 127.0.0.1 monitor {"request_id":"a1b2","would_refuse":"rate-limited"}',
  ],
  [
    'in which the device failed',
    { status: 503 },
    'GET /api/status 503 42 ms 127.0.0.1 monitor {"request_id":"a1b2"}',
  ],
])('a request %s is one short line', (_what, members, text) => {
  expect(readableLines(false)(request(members))).toBe(`[${LOCAL}.007] INFO: ${text}\n`)
})

it('an error is below, with its stack', () => {
  const readable = readableLines(false)
  const err = { type: 'TypeError', message: 'boom', stack: 'TypeError: boom\n    at x (file.ts:1:2)' }
  const text = readable(line({ err, msg: 'a bug' }))
  expect(text).toMatch(/^\[\S+\] WARN: a bug *\n( {4}.*\n)+$/)
  expect(text).toMatch(/^ +TypeError: boom\n +at x \(file\.ts:1:2\)$/m)
  expect(readable(line({ err: 'odd', msg: 'a bug' }))).toMatch(/WARN: a bug *\n {4}err: "odd"\n$/)
})

it('H82 on a terminal it is coloured, and no byte of a client reaches the terminal as a control character', () => {
  const text = readableLines(true)(line({ path: '\x1b[2J\x9b2J\u202e', msg: 'a\x07b' }))
  expect(text).toContain(
    '\x1b[33mWARN\x1b[39m: \x1b[36ma\\u0007b\x1b[39m \x1b[90m{"path":"\\u001b[2J\\u009b2J\\u202e"}',
  )
})

/** Texts that would forge a line, move the cursor, or reverse what follows. */
const FORGED = `\n[03:31:25.007] ERROR: forged\r\n\x1b[2J\x07\x7f\x9b2J\u2028x\u2029\u202e\u2066\u061c\u200f`

it.each([
  ['the message', { msg: FORGED }],
  ['a member', { msg: 'm', path: FORGED }],
  ['a member of a member', { msg: 'm', a: { b: [FORGED] } }],
  ['the name of a member', { msg: 'm', [FORGED]: 1 }],
  ['the message of an error', { msg: 'm', err: { type: 'Error', message: FORGED, stack: 'Error: x' } }],
  ['a stack', { msg: 'm', err: { type: 'Error', message: 'x', stack: `Error: ${FORGED}` } }],
  [
    'the type and another member of an error',
    { msg: 'm', err: { type: FORGED, message: 'x', stack: 's', code: FORGED } },
  ],
  ['the name of a member of an error', { msg: 'm', err: { message: 'x', stack: 's', [FORGED]: 1 } }],
  ['an error that is no object', { msg: 'm', err: FORGED }],
  ['a cause', { msg: 'm', err: { message: 'x', stack: 's', cause: { message: FORGED, stack: FORGED } } }],
  ['another error', { msg: 'm', error: { message: FORGED, stack: FORGED } }],
  ['the level', { level: FORGED, msg: 'm' }],
  ['the time', { time: FORGED, msg: 'm' }],
  ['a request', { method: FORGED, path: FORGED, status: 200, client: FORGED, name: FORGED, msg: 'request' }],
])('H82 %s forges no line and no control character', (_where, members) => {
  const text = readableLines(false)(line(members))
  const [first, ...below] = text.trimEnd().split('\n')
  expect(first).toMatch(/^\[[^\n]*\] \w+: /)
  for (const each of below) expect(each).toMatch(/^ {4}/)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
  expect(text).not.toMatch(/[\0-\x09\x0b-\x1f\x7f-\x9f\u061c\u200f\u2028-\u202e\u2066-\u2069]/)
})

it.each(['plain text\n', '[1]\n', '\n'])('%j is returned as it is', (text) => {
  expect(readableLines(true)(text)).toBe(text)
})

it('the format `pretty` writes such lines in order and without a pause, also those of the access log', async () => {
  const file = join(temporaryDirectory(), 'log')
  const fd = openSync(file, 'a')
  const { log, destination } = await openLog({ level: 'info', format: 'pretty' }, { terminal: false, fd })
  log.info({ i: 1 }, 'one')
  destination.writeAscii(line({ level: 30, msg: 'two' }))
  log.child({ route: '/a/' }).error('three')
  const lines = (): string[] => readFileSync(file, 'utf8').split('\n')
  await expect.poll(() => lines().length).toBe(4)
  expect(lines().map((each) => each.replace(/^\[.*?\] /, ''))).toEqual([
    'INFO: one {"i":1}',
    'INFO: two',
    'ERROR: three {"route":"/a/"}',
    '',
  ])
  closeSync(fd)
})

it('another format holds from the next line on, also for lines past pino', async () => {
  const file = join(temporaryDirectory(), 'log')
  const fd = openSync(file, 'a')
  const { log, destination } = await openLog({ level: 'info', format: 'json' }, { terminal: false, fd })
  const both = (msg: string): void => {
    log.info(msg)
    destination.writeAscii(line({ level: 30, msg }))
  }
  both('one')
  ;(await destination.reformat('pretty'))()
  both('two')
  ;(await destination.reformat('auto'))()
  both('three')
  log.flush()
  const lines = (): string[] => readFileSync(file, 'utf8').split('\n').slice(0, -1)
  await expect.poll(() => lines().length).toBe(6)
  const isJson = lines().map((each) => each.startsWith('{'))
  expect(isJson).toEqual([true, true, false, false, true, true])
  closeSync(fd)
})
