import { PassThrough } from 'node:stream'
import { CommanderError } from 'commander'
import { expect } from 'vitest'
import type { ProgramIo } from '../../src/commands/command.ts'
import { DEFAULT_CONFIG } from '../../src/commands/help.ts'
import { defineProgram } from '../../src/commands/program.ts'
import { ENV, MAIN, type Run } from './serve.ts'

/**
 * Runs `postern ARGS` in this process, without a terminal: what a command reads, says and writes, without the 0.15 s of processor
 * time that a start of the program takes. `places` are those of an installation. What the process itself does, its output, signals and permissions, takes `runPostern`.
 */
export async function runInProcess(
  args: readonly string[],
  places: Pick<ProgramIo, 'defaultConfig' | 'defaultState'> = {},
): Promise<Run> {
  const written = { stdout: '', stderr: '' }
  const output = (name: keyof typeof written) => ({
    isTTY: false,
    write(text: string) {
      written[name] += text
    },
  })
  const unused = () => expect.fail('a command that runs on has a process of its own')
  const io: ProgramIo = {
    stdout: output('stdout'),
    stderr: output('stderr'),
    onLostOutput: () => {},
    lostOutput: () => undefined,
    stdin: () => new PassThrough().end(),
    env: ENV,
    defaultConfig: DEFAULT_CONFIG,
    ...places,
    permissions: { permission: undefined, env: ENV, readOutside: unused, restart: unused },
    command: args[0],
    node: process.execPath,
    typed: 'postern',
    program: [process.execPath, MAIN],
    onSignals: unused,
    daemon: unused,
  }
  let code = 0
  const program = defineProgram(io, (result) => {
    code = result
  })
  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    code = error.exitCode === 0 ? 0 : 2
  }
  return { code, signal: null, ...written }
}
