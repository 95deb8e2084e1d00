import type { Command, Option } from 'commander'
import type { ProgramIo } from '../../../src/commands/command.ts'
import { defineProgram } from '../../../src/commands/program.ts'

/** The value of an option. */
export interface DescribedValue {
  readonly name: string
  /** The only values that are allowed, if there are few. */
  readonly choices: readonly string[]
  readonly isFile: boolean
}

export interface DescribedOption {
  /** With hyphens, the short one first: `-h`, `--help`. */
  readonly names: readonly string[]
  readonly description: string
  /** Undefined for a flag. */
  readonly value: DescribedValue | undefined
}

export interface DescribedCommand {
  readonly name: string
  readonly description: string
  /** What the command line has besides options, such as `url`. */
  readonly operands: readonly DescribedOperand[]
  readonly options: readonly DescribedOption[]
  /** The text of `--help` that follows the options. */
  readonly notes: string
}

export interface DescribedOperand {
  readonly name: string
  readonly description: string
}

/** The program itself, and its commands. */
export interface DescribedProgram extends DescribedCommand {
  readonly commands: readonly DescribedCommand[]
}

/** What `--help` of the program and of its commands tells. */
export function describedCommands(): DescribedProgram {
  const program = defineProgram(NO_PROCESS, () => {})
  return { ...described(program), commands: program.commands.map(described) }
}

/** Only a command that runs looks at the process. */
const NO_PROCESS = {} as ProgramIo

function described(command: Command): DescribedCommand {
  return {
    name: command.name(),
    description: command.description(),
    operands: command.registeredArguments.map((operand) => ({
      name: operand.name(),
      description: operand.description,
    })),
    options: command.createHelp().visibleOptions(command).map(describedOption),
    notes: notesOf(command),
  }
}

function describedOption({ short, long, flags, description, argChoices }: Option): DescribedOption {
  const [, value] = /<(.+)>/.exec(flags) ?? []
  return {
    names: [short, long].filter((name) => name !== undefined),
    description,
    value:
      value === undefined ? undefined : { name: value, choices: argChoices ?? [], isFile: value === 'file' },
  }
}

function notesOf(command: Command): string {
  let help = ''
  command.configureOutput({
    writeOut: (text) => {
      help += text
    },
  })
  command.outputHelp()
  return help.slice(command.helpInformation().length).trim()
}
