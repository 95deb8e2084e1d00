import { expect, it } from 'vitest'
import type { ProgramIo } from '../../src/commands/command.ts'
import { defineProgram } from '../../src/commands/program.ts'

/** What `--help` of the program and of each command prints. */
function helps(): ReadonlyMap<string, string> {
  let printed = ''
  const stdout = { write: (text: string) => (printed += text) }
  // Proof of the cast: only a command that runs looks at the rest of the process.
  const program = defineProgram({ stdout } as unknown as ProgramIo, () => {})
  return new Map(
    [program, ...program.commands].map((command) => {
      printed = ''
      command.outputHelp()
      return [command.name(), printed]
    }),
  )
}

it('--help keeps to 80 columns, and breaks neither a path nor an option', () => {
  const all = helps()
  expect(all.size).toBeGreaterThan(10)
  for (const [name, help] of all) {
    expect(help.split('\n').filter((line) => line.length > 80)).toEqual([])
    expect(help, name).not.toMatch(/[/-]$/m)
  }
  expect(all.get('postern')).toMatch(/^POST \/oauth\/token itself, checks bearer tokens/m)
})
