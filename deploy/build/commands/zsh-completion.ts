import type { DescribedOption, DescribedProgram } from './described-commands.ts'

/** The completion of the commands, options, files and choices for zsh. */
export function zshCompletion(program: DescribedProgram): string {
  const { name, commands } = program
  return `#compdef ${name}

_${name}() {
  local curcontext=$curcontext state line
  typeset -A opt_args
  local -a commands=(
${commands.map((command) => `    ${quoted(`${command.name}:${command.description}`)}\n`).join('')}  )
  _arguments -C \\
${program.options.map((option) => `    ${specification(option)} \\\n`).join('')}    '1:command:->command' \\
    '*::option:->option'
  case $state in
  command) _describe command commands ;;
  option)
    case $words[1] in
${commands.map((command) => `    ${command.name})\n      _arguments \\\n${command.options.map((option) => `        ${specification(option)}`).join(' \\\n')}\n      ;;\n`).join('')}    esac
    ;;
  esac
}

_${name} "$@"
`
}

/** In the words of zsh's `_arguments`: `'(-h --help)'{-h,--help}'[description]'`. */
function specification({ names, description, value, repeats }: DescribedOption): string {
  const text = `[${description.replace(/[[\]:]/g, '\\$&')}]`
  const action = value === undefined ? '' : `:${escaped(value.name)}:${actionOf(value)}`
  const behind = (name: string): string => (value !== undefined && name.startsWith('--') ? `${name}=` : name)
  const forms = names.map((name) =>
    quoted(
      `${repeats ? '*' : names.length > 1 ? `(${names.join(' ')})` : ''}${behind(name)}${text}${action}`,
    ),
  )
  return forms.join(' ')
}

function actionOf({
  choices,
  isFile,
}: {
  readonly choices: readonly string[]
  readonly isFile: boolean
}): string {
  if (isFile) return '_files'
  return choices.length === 0 ? ' ' : `(${choices.join(' ')})`
}

function escaped(text: string): string {
  return text.replace(/[:\\]/g, '\\$&')
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
