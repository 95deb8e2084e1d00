import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { beforeAll, expect, it } from 'vitest'
import { aResult } from '../bench/a-result.ts'
import { closeLater } from '../support/cleanup.ts'
import { shellBlock } from '../support/pages.ts'
import { needs, run } from '../support/tools.ts'
import { cloneOfHead } from './clone.ts'

// The bench, the fuzzer and the soak run for minutes to hours. Here the first printed command of each, with
// `POSTERN_TEST_BULK=1` every one, runs until its first result.

const ROOT = join(import.meta.dirname, '../..')

const linesOf = (block: string): readonly string[] => block.split('\n').filter((line) => line !== '')

let clone: string

beforeAll(async () => {
  needs('git')
  clone = await cloneOfHead()
  symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'))
  // For --compare.
  mkdirSync(join(clone, 'bench/results'))
  writeFileSync(join(clone, 'bench/results/latest.json'), JSON.stringify(aResult({})))
})

const commands = [
  linesOf(shellBlock('bench/README.md', 'npm run bench ')),
  linesOf(shellBlock('test/fuzz/README.md', 'npm run fuzz')),
  linesOf(shellBlock('test/fuzz/README.md', 'npm run soak')),
]

it.each(process.env.POSTERN_TEST_BULK === '1' ? commands.flat() : commands.flatMap(([first = '']) => first))(
  '%s: starts, finds something out, and ends at Ctrl-C',
  async (command) => {
    const child = spawn('sh', ['-c', `exec 2>&1\n${command}`], { cwd: clone, detached: true })
    const exited = once(child, 'exit')
    const group = -(child.pid ?? 0)
    closeLater(() => {
      if (child.exitCode === null && child.signalCode === null) process.kill(group, 'SIGKILL')
    })
    const lines: string[] = []
    let found = false
    for await (const line of createInterface({ input: child.stdout })) {
      lines.push(line)
      if (found || !/^\[ ?\d+:\d\d\] (?!.*load average)/.test(line)) continue
      found = true
      process.kill(group, 'SIGINT')
    }
    await exited
    expect(found, lines.join('\n')).toBe(true)
    expect(lines.join('\n')).not.toMatch(/Error|cleanup failed/)
  },
)

it('the command of bench/README.md that proves broken limits fails, as it says', async () => {
  const [holds, breaks = '', ...others] = linesOf(shellBlock('bench/README.md', 'npm run bench:limits'))
  // `.ci/run` runs the first.
  expect([holds?.split(' #')[0]?.trim(), others]).toEqual(['npm run bench:limits', []])
  expect((await run('sh', ['-c', breaks], { cwd: clone, timeout: 300_000 })).code).toBe(1)
}, 600_000)
