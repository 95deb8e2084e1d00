import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { run } from '../support/tools.ts'

const root = join(import.meta.dirname, '..', '..')
const source = readFileSync(join(import.meta.dirname, 'admission.ts'), 'utf8')

/** The errors of tsc for `text` as a file in `test/types`, with the settings of the project. */
async function compile(text: string): Promise<string> {
  const directory = temporaryDirectory()
  writeFileSync(join(directory, 'package.json'), '{"type": "module"}')
  const file = join(directory, 'admission.ts')
  writeFileSync(file, text.replaceAll("'../../src/", `'${root}/src/`))
  const config = join(directory, 'tsconfig.json')
  const types = join(root, 'node_modules', '@types')
  writeFileSync(
    config,
    JSON.stringify({
      extends: join(root, 'tsconfig.json'),
      compilerOptions: { typeRoots: [types] },
      include: [file],
    }),
  )
  const done = await run(join(root, 'node_modules', '.bin', 'tsc'), ['--noEmit', '-p', config])
  return done.stdout
    .split('\n')
    .filter((line) => line.includes('admission.ts('))
    .join('\n')
}

it('every attempt to reach the device past the gate is a compile error', async () => {
  const attempts = source.match(/^ *\/\/ @ts-expect-error/gm)?.length ?? 0
  expect(attempts).toBeGreaterThanOrEqual(12)
  // With the directives the file compiles. Without them, every line after a directive is an error.
  const [withDirectives, without] = await Promise.all([
    compile(source),
    compile(source.replaceAll('// @ts-expect-error', '//')),
  ])
  expect(withDirectives).toBe('')
  const lines = new Set(without.split('\n').map((line) => /admission\.ts\((\d+),/.exec(line)?.[1]))
  expect(lines.size, without).toBe(attempts)
})

it('without its mark, a `Forward` could be made by hand, and the compiler would report it', async () => {
  const unmarked = source
    .replace('Forward, Refused', 'Forward as Marked, Refused')
    .replace(
      'declare const admit:',
      'type Forward = { readonly [key in keyof Marked as key & string]: Marked[key] }\ndeclare const admit:',
    )
  expect(await compile(unmarked)).toContain("Unused '@ts-expect-error' directive")
})
