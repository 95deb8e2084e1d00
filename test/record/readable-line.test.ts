import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createLog, lineWriter, readableLine } from '../../src/record/log.ts'
import { temporaryDirectory } from '../support/certificate.ts'

const TIME = '2026-11-23T03:31:25.007Z'
/** The same moment in the zone of this machine. */
const LOCAL = new Date(TIME).toTimeString().slice(0, 8)

const line = (members: object): string => `${JSON.stringify({ level: 40, time: TIME, ...members })}\n`

it('a line for people has local time, level, message and the other members as JSON', () => {
  expect(readableLine(line({ key: 'listen.tls', n: 5, msg: 'insecure' }), false)).toBe(
    `[${LOCAL}.007] WARN: insecure {"key":"listen.tls","n":5}\n`,
  )
  expect(readableLine(line({ msg: 'stopped' }), false)).toBe(`[${LOCAL}.007] WARN: stopped\n`)
})

it('an error has its stack below', () => {
  const err = { type: 'TypeError', message: 'boom', stack: 'TypeError: boom\n    at x (file.ts:1:2)' }
  expect(readableLine(line({ err, msg: 'a bug' }), false)).toBe(
    `[${LOCAL}.007] WARN: a bug\n    TypeError: boom\n        at x (file.ts:1:2)\n`,
  )
  expect(readableLine(line({ err: 'odd', msg: 'a bug' }), false)).toContain('a bug {"err":"odd"}\n')
})

it('on a terminal it is coloured, and no byte of a client reaches the terminal as a control character', () => {
  const text = readableLine(line({ path: '\x1b[2J\x9b2J\u202e', msg: 'a\x07b' }), true)
  expect(text).toContain(
    '\x1b[33mWARN\x1b[39m: \x1b[36ma\\u0007b\x1b[39m \x1b[90m{"path":"\\u001b[2J\\u009b2J\\u202e"}',
  )
})

it.each(['plain text\n', '[1]\n', '{"level":99}\n', '\n'])('%j is returned as it is', (text) => {
  expect(readableLine(text, true)).toBe(text)
})

it('the format `pretty` writes such lines at once, in order, also those of the access log', async () => {
  const file = join(temporaryDirectory(), 'log')
  const fd = openSync(file, 'a')
  const log = await createLog({ level: 'info', format: 'pretty' }, { terminal: false, fd })
  log.info({ i: 1 }, 'one')
  lineWriter(log)(line({ level: 30, msg: 'two' }))
  log.child({ route: '/a/' }).error('three')
  const lines = readFileSync(file, 'utf8').split('\n')
  expect(lines.map((each) => each.replace(/^\[.*?\] /, ''))).toEqual([
    'INFO: one {"i":1}',
    'INFO: two',
    'ERROR: three {"route":"/a/"}',
    '',
  ])
  closeSync(fd)
})
