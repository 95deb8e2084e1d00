import type {
  DescribedCommand,
  DescribedOperand,
  DescribedOption,
  DescribedProgram,
} from './described-commands.ts'

/** The manual page of the program and its commands, in the language of man(7). `time` in s since 1970. */
export function manPage(
  program: DescribedProgram,
  { version, time }: { readonly version: string; readonly time: number },
): string {
  const { name, commands } = program
  const date = new Date(time * 1000).toISOString().slice(0, 10)
  return `.TH ${name.toUpperCase()} 1 ${date} "Postern ${escaped(version)}" "Postern Manual"
.SH NAME
${name} \\- OAuth 2.0 and rate\\-limit sidecar for a legacy device
.SH SYNOPSIS
.B ${name}
.I command
.RI [ option ...]
.SH DESCRIPTION
${paragraph(program.description)}
${verbatim(program.notes)}
.SH OPTIONS
${program.options.map(item).join('')}.SH COMMANDS
${commands.map((command) => section(name, command)).join('')}.SH FILES
.TP
.I /etc/postern/postern.yaml
The configuration.
.TP
.I /etc/postern/devices
The configuration of each of several devices, for
.BR --instance .
.TP
.I /var/lib/postern
Tokens, as digests, and the self\\-signed certificate.
.TP
.I /usr/share/doc/postern
Every key of the configuration, and how to install and to operate.
.SH SEE ALSO
.BR systemctl (1),
.BR journalctl (1)
`
}

function section(program: string, command: DescribedCommand): string {
  const { name, description, operands, options, notes } = command
  const items = [...operands.map(operandItem), ...options.map(item)].join('')
  return `.SS ${program} ${escaped(name)}\n${paragraph(description)}\n${items}${verbatim(notes)}`
}

function operandItem({ name, description }: DescribedOperand): string {
  return `.TP\n\\fI${escaped(name)}\\fR\n${paragraph(description)}\n`
}

function item({ names, description, value }: DescribedOption): string {
  const bold = names.map((name) => `\\fB${escaped(name)}\\fR`).join(', ')
  const argument = value === undefined ? '' : ` \\fI${escaped(value.name)}\\fR`
  const choices = value === undefined || value.choices.length === 0 ? '' : ` (${value.choices.join(' or ')})`
  return `.TP\n${bold}${argument}\n${paragraph(description + choices)}\n`
}

/** Text that the formatter fills. */
function paragraph(text: string): string {
  return text.split('\n').map(line).join('\n')
}

/** Text with its own lines. */
function verbatim(text: string): string {
  return text === '' ? '' : `.PP\n.nf\n${text.split('\n').map(line).join('\n')}\n.fi\n`
}

/** A full stop or an apostrophe at the start of a line would be a request. */
function line(text: string): string {
  return escaped(text).replace(/^(?=[.'])/, '\\&')
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\e').replaceAll('-', '\\-')
}
