import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import process from 'node:process'
import { expect, it } from 'vitest'
import { bashCompletion } from '../deploy/build/commands/bash-completion.ts'
import { type DescribedProgram, describedCommands } from '../deploy/build/commands/described-commands.ts'
import { manPage } from '../deploy/build/commands/man-page.ts'
import { missingInDepends } from './build/library-needs.ts'
import { temporaryDirectory } from './support/certificate.ts'
import { closeLater } from './support/cleanup.ts'
import { needs, run } from './support/tools.ts'

/** The commands, and one with a choice and all characters that shells treat in a special way. */
function commands(): DescribedProgram {
  const program = describedCommands()
  const format = {
    names: ['--format'],
    description: `it's a "choice" [of \`two\`]: \\ $HOME 100 %; -`,
    value: { name: 'kind', choices: ['json', 'text'], isFile: false },
  }
  const odd = {
    name: 'odd',
    description: format.description,
    operands: [{ name: 'what', description: 'what is odd' }],
    options: [format],
    notes: `.odd\n'odd\\`,
  }
  return { ...program, commands: [...program.commands, odd] }
}

/** Types a line with tabs into bash on a terminal, and returns the arguments with which it starts `postern`. */
async function typed(setup: string, line: string): Promise<readonly string[]> {
  const folder = temporaryDirectory()
  const started = join(folder, 'started')
  writeFileSync(join(folder, 'postern'), `#!/bin/sh\nprintf '%s\\n' "$@" > '${started}'\n`, { mode: 0o755 })
  writeFileSync(join(folder, 'my device.yaml'), '')
  writeFileSync(join(folder, '.bashrc'), `PS1='ready> '\n${setup}\n`)
  const env = {
    PATH: `${folder}${delimiter}${process.env.PATH}`,
    HOME: folder,
    LC_ALL: 'C.UTF-8',
    TERM: 'xterm',
  }
  const child = spawn('script', ['-qec', 'bash -i', '/dev/null'], { env, cwd: folder })
  closeLater(() => void child.kill())
  let screen = ''
  let prompts = 0
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text
    if (prompts === 0 && screen.includes('ready> ')) {
      prompts = 1
      child.stdin.write(`${line}\nexit\n`)
    }
  })
  await once(child, 'exit')
  return readFileSync(started, 'utf8').trimEnd().split('\n')
}

it('bash completes commands, options, files and choices', async () => {
  needs('script')
  needs('bash')
  const file = join(temporaryDirectory(), 'postern')
  writeFileSync(file, bashCompletion(commands()))
  const type = (line: string) => typed(`source '${file}'`, line)
  expect(await type('postern che\t--conf\tmy\t')).toEqual(['check', '--config', 'my device.yaml'])
  expect(await type('postern check --config=my\t')).toEqual(['check', '--config=my device.yaml'])
  expect(await type('postern odd --form\tj\t')).toEqual(['odd', '--format', 'json'])
})

it('the man page shows every command and option, without a fault in its markup', async () => {
  needs('man')
  const program = commands()
  const page = join(temporaryDirectory(), 'postern.1')
  writeFileSync(page, manPage(program, { version: '1.2.3', time: 0 }))
  const env = { PATH: process.env.PATH, MANWIDTH: '200', LC_ALL: 'C.UTF-8', MAN_KEEP_FORMATTING: '' }
  const { stdout, stderr } = await run('man', ['--warnings', '-l', page], { env })
  expect(stderr).toBe('')
  for (const { name, operands, options, notes } of program.commands) {
    expect(stdout).toContain(`postern ${name}\n`)
    for (const operand of operands) expect(stdout).toContain(operand.description)
    for (const option of options) expect(stdout).toContain(option.names.join(', '))
    for (const line of notes.split('\n')) expect(stdout).toContain(line)
  }
})

it('the Debian package depends on the libraries of Node.js, in versions that have its symbols', async () => {
  expect(await missingInDepends(process.execPath)).toEqual([])
  const newer = join(temporaryDirectory(), 'newer')
  const changed = readFileSync(process.execPath, 'latin1').replaceAll('GLIBC_2.28\0', 'GLIBC_2.99\0')
  writeFileSync(newer, changed, 'latin1')
  expect(await missingInDepends(newer)).toContain('libc.so.6 GLIBC_2.99')
})
