import type { DescribedOption, DescribedProgram } from './described-commands.ts'

/** The completion of the commands, options, files and choices for fish. */
export function fishCompletion({ name, options, commands }: DescribedProgram): string {
  const lines = [
    `# Completion of ${name} for fish`,
    `complete -c ${name} -f`,
    ...commands.map(
      (command) =>
        `complete -c ${name} -n __fish_use_subcommand -a ${command.name} -d ${quoted(command.description)}`,
    ),
    ...options.map((option) => `complete -c ${name} -n __fish_use_subcommand ${specification(option)}`),
    ...commands.flatMap((command) =>
      command.options.map(
        (option) =>
          `complete -c ${name} -n '__fish_seen_subcommand_from ${command.name}' ${specification(option)}`,
      ),
    ),
  ]
  return `${lines.join('\n')}\n`
}

/** `-r -F` takes a file, `-x` another value. */
function specification({ names, description, value }: DescribedOption): string {
  const flags = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`))
  const argument =
    value === undefined
      ? []
      : value.isFile
        ? ['-r -F']
        : ['-x', ...(value.choices.length === 0 ? [] : [`-a '${value.choices.join(' ')}'`])]
  return [...flags, ...argument, '-d', quoted(description)].join(' ')
}

function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`
}
