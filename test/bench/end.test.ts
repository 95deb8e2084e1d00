import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, it } from 'vitest'
import { closeLater } from '../support/cleanup.ts'

const BENCH = join(import.meta.dirname, '../../bench')

interface Program {
  /** The process ids that it has reported so far. */
  readonly pids: () => readonly number[]
  readonly folder: string
  readonly signal: (name: NodeJS.Signals) => void
  readonly code: Promise<number>
}

/** Starts a program of the bench with a folder. `body` runs in its main function and reports process ids by `tell`. */
async function startProgram(body: string): Promise<Program> {
  const source = `
    import { existsSync, readFileSync } from 'node:fs'
    import { outputOf, startChild, temporaryFolder } from '${BENCH}/child.ts'
    import { cleaningUp, runProgram } from '${BENCH}/run-program.ts'
    const tell = (pid) => process.stdout.write(pid + '\\n')
    await runProgram(async () => {
      const folder = await temporaryFolder()
      process.stdout.write(folder + '\\n')
      ${body}
      return new Promise(() => {})
    }, 60_000)`
  const program = spawn(process.execPath, ['--input-type=module', '-e', source], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  closeLater(() => {
    program.kill('SIGKILL')
  })
  const code = once(program, 'close').then(([value]) => Number(value))
  const lines: string[] = []
  const reader = createInterface(program.stdout).on('line', (line) => lines.push(line))
  while (lines.length < 2) await once(reader, 'line')
  return {
    pids: () => lines.slice(1).map(Number),
    folder: lines[0] ?? '',
    signal: (name) => program.kill(name),
    code,
  }
}

function runs(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

it('Ctrl-C ends the processes of the bench and removes its files', async () => {
  const program = await startProgram("tell((await startChild('sleep', ['60'])).pid)")
  expect(program.pids().every(runs)).toBe(true)
  expect(existsSync(program.folder)).toBe(true)
  program.signal('SIGINT')
  expect(await program.code).toBe(130)
  expect(program.pids().some(runs)).toBe(false)
  expect(existsSync(program.folder)).toBe(false)
})

it('Ctrl-C also ends processes that start during the clean-up', async () => {
  const program = await startProgram(`
    process.once('SIGINT', async () => tell((await startChild('sleep', ['60'])).pid))
    tell((await startChild('sleep', ['60'])).pid)`)
  program.signal('SIGINT')
  expect(await program.code).toBe(130)
  expect(program.pids()).toHaveLength(2)
  expect(program.pids().some(runs)).toBe(false)
})

it('a figure that fails ends the processes that it started, and no others', async () => {
  const program = await startProgram(`
    tell((await startChild('sleep', ['60'])).pid)
    const fails = async () => {
      tell((await startChild('sleep', ['60'])).pid)
      throw new Error('failed')
    }
    await cleaningUp(fails).catch((error) => tell(error.message))`)
  await expect.poll(() => program.pids().length).toBe(3)
  const [other = 0, own = 0] = program.pids()
  expect([other, own].map(runs)).toEqual([true, false])
})

it('a figure that Ctrl-C interrupts has no result', async () => {
  const program = await startProgram(`
    tell((await startChild('sleep', ['60'])).pid)
    await cleaningUp(() => new Promise((resolve) => process.once('SIGINT', resolve)))
    tell(0)`)
  program.signal('SIGINT')
  expect(await program.code).toBe(130)
  expect(program.pids()).toHaveLength(1)
})

it('a running load generator ends with the bench', async () => {
  const program = await startProgram(`
    outputOf('sh', ['-c', 'echo $$ > ' + folder + '/pid; exec sleep 60'], { timeout: 60_000 }).catch(() => {})
    const look = setInterval(() => {
      const pid = existsSync(folder + '/pid') ? readFileSync(folder + '/pid', 'utf8').trim() : ''
      if (pid === '') return // the shell opens the file before it writes to it
      tell(pid)
      clearInterval(look)
    }, 10)`)
  expect(program.pids().every(runs)).toBe(true)
  program.signal('SIGTERM')
  expect(await program.code).toBe(143)
  // Its parent has ended before it, so init reaps it.
  await expect.poll(() => program.pids().some(runs)).toBe(false)
})
