import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ambientReads, readTree, type SourceTree } from './support/source-tree.ts'

const root = join(import.meta.dirname, '..')
const tests: SourceTree = new Map([...readTree(root, 'test')].filter(([path]) => path.endsWith('.ts')))

/** The files and folders that the table of `test/support/README.md` lets run on real time. */
function onRealTime(): readonly string[] {
  const page = readFileSync(join(root, 'test/support/README.md'), 'utf8')
  const [, table = ''] = /\n\| file \| why \|\n\| --- \| --- \|\n((?:\|.*\n)+)/.exec(page) ?? []
  return [...table.matchAll(/^\| `([^`]+)` \|/gm)].map(([, path]) => `test/${path}`)
}

const REAL_TIMERS = new Set([
  ...['setTimeout', 'setInterval', 'setImmediate', 'AbortSignal.timeout'],
  ...['node:timers', 'node:timers/promises', 'performance'],
])
/** A use of the clocks whose timers are those of Node. */
const REAL_CLOCK = /^import \{[^}]*\b(systemClock|realClock)\b/m
const PAUSE_OF_VITEST = /\bvi\.(?:useFakeTimers|waitFor|waitUntil)\b/

/** What of real time a file has. */
function realTimeIn(text: string): string[] {
  const [, clock = PAUSE_OF_VITEST.exec(text)?.[0]] = REAL_CLOCK.exec(text) ?? []
  const timers = ambientReads(text).filter((read) => REAL_TIMERS.has(read))
  return [...new Set([...timers, ...(clock === undefined ? [] : [clock])])]
}

const covers = (entry: string, path: string): boolean =>
  entry.endsWith('/') ? path.startsWith(entry) : path === entry

describe('Time in tests', () => {
  it('is a still clock, but in the files that the list names', () => {
    const list = onRealTime()
    const wrong = [...tests].flatMap(([path, text]) =>
      list.some((entry) => covers(entry, path)) ? [] : realTimeIn(text).map((found) => `${path}: ${found}`),
    )
    expect(wrong).toEqual([])
  })

  it('has no entry in the list without need', () => {
    const needless = onRealTime().filter(
      (entry) => ![...tests].some(([path, text]) => covers(entry, path) && realTimeIn(text).length > 0),
    )
    expect(needless).toEqual([])
  })

  it.each([
    ['setTimeout(f, 10)', ['setTimeout']],
    [
      "import { setTimeout as delay } from 'node:timers/promises'\nawait delay(1)",
      ['node:timers/promises', 'setTimeout'],
    ],
    ['await new Promise(setImmediate)', ['setImmediate']],
    ['fetch(url, { signal: AbortSignal.timeout(5) })', ['AbortSignal.timeout']],
    ["import { rest, systemClock } from '../../src/system/clock.ts'", ['systemClock']],
    ["import { type Clock, realClock } from './support/clock.ts'", ['realClock']],
    ["import { stillClock } from './support/clock.ts'", []],
    ["run('node', ['-e', 'setTimeout(f, 10)'])", []],
  ])('finds what is real in %s', (text, found) => {
    expect(realTimeIn(text)).toEqual(found)
  })
})
