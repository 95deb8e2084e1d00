import type { DescribedCommand, DescribedOption, DescribedProgram } from './described-commands.ts'

/** The completion of the commands, options, files and choices for bash 4 and later. */
export function bashCompletion(program: DescribedProgram): string {
  const { name, commands } = program
  const names = commands.map((command) => command.name)
  return `# Completion of ${name} for bash

_${name}() {
  local word command= cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
    ${names.join(' | ')})
      command=$word
      break
      ;;
    esac
  done
  # bash splits --option=value into three words.
  if [ "$cur" = = ]; then
    cur=
  elif [ "$prev" = = ]; then
    prev=\${COMP_WORDS[COMP_CWORD - 2]}
  fi
  case "$command $prev" in
${commands.flatMap((command) => command.options.flatMap((option) => valueCase(command, option))).join('')}  esac
  case $command in
  '') mapfile -t COMPREPLY < <(compgen -W '${[...names, ...optionNames(program)].join(' ')}' -- "$cur") ;;
${commands.map((command) => `  ${command.name}) mapfile -t COMPREPLY < <(compgen -W '${optionNames(command).join(' ')}' -- "$cur") ;;\n`).join('')}  esac
}

complete -F _${name} ${name}
`
}

function optionNames({ options }: DescribedCommand): readonly string[] {
  return options.flatMap(({ names }) => names)
}

/** The case of the word behind an option with a value. `compopt -o default` completes the names of files. */
function valueCase({ name }: DescribedCommand, { names, value }: DescribedOption): readonly string[] {
  if (value === undefined) return []
  const words = value.isFile
    ? ['compopt -o default']
    : value.choices.length === 0
      ? []
      : [`mapfile -t COMPREPLY < <(compgen -W '${value.choices.join(' ')}' -- "$cur")`]
  const patterns = names.map((option) => `'${name} ${option}'`).join(' | ')
  return [[`  ${patterns})`, ...words.map((line) => `    ${line}`), '    return', '    ;;', ''].join('\n')]
}
