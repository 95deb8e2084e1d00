import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { describedCommands } from '../../deploy/build/commands/described-commands.ts'
import { begin } from '../process/in-process.ts'
import { temporaryDirectory } from '../support/certificate.ts'

const FILE = join(import.meta.dirname, 'usage.txt')

/** The words of a line, as a shell splits it. In quotes `\n` and `\r` are line ends. */
function wordsOf(line: string): readonly string[] {
  return [...line.matchAll(/'([^']*)'|\S+/g)].map(([word, quoted]) =>
    quoted === undefined ? word : quoted.replace(/\\([nr])/g, (_, end) => (end === 'n' ? '\n' : '\r')),
  )
}

it('H104 H121 each line of usage.txt prints what stands there, tells no secret, and writes nothing', async () => {
  const folder = temporaryDirectory()
  mkdirSync(join(folder, 'state'))
  writeFileSync(join(folder, 'password'), 'a device password\n', { mode: 0o600 })
  writeFileSync(
    join(folder, 'postern.yaml'),
    `upstream: {url: 'http://192.0.2.7'}\npassword: {file: ${folder}/password}\nstate_dir: ${folder}/state\nadmin: {address: off}\n`,
  )
  const before = readdirSync(folder, { recursive: true })
  const places = { defaultConfig: join(folder, 'none', 'postern.yaml'), defaultState: join(folder, 'none') }
  const document: string[] = []
  let isOutput = false
  for (const line of readFileSync(FILE, 'utf8').split('\n')) {
    if (line.startsWith('$ postern ')) {
      const words = wordsOf(line.slice('$ postern '.length)).map((word) => word.replaceAll('DIR', folder))
      const { written, ended } = begin(words, places)
      const { code } = await ended
      document.push(line, `${written.screen.replaceAll(folder, 'DIR')}[${code}]`, '')
      isOutput = true
    } else if (line.startsWith('# ')) {
      document.push(line, '')
      isOutput = true
    } else if (!isOutput) document.push(line)
  }
  const printed = document.join('\n')
  for (const { name } of describedCommands().commands)
    expect(printed).toContain(`\n$ postern ${name} --help\n`)
  expect(printed.replaceAll(/^\$ .*$/gm, '')).not.toMatch(/geheim|a device password/)
  await expect(printed).toMatchFileSnapshot(FILE)
  expect(readdirSync(folder, { recursive: true })).toEqual(before)
})
