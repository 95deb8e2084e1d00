import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { run } from '../support/tools.ts'

const root = join(import.meta.dirname, '..', '..')
const source = readFileSync(join(import.meta.dirname, 'admission.ts'), 'utf8')

/** What tsc says of a file that stands where `test/types` stands, under the project's own settings. */
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
  const done = await run(join(root, 'node_modules', '.bin', 'tsc'), ['--noEmit', '-p', config], {
    timeout: 60_000,
  })
  return done.stdout
    .split('\n')
    .filter((line) => line.includes('admission.ts('))
    .join('\n')
}

it('no way to the device past the gate compiles: each of them is an error of its own', async () => {
  const ways = source.match(/^ *\/\/ @ts-expect-error/gm)?.length ?? 0
  expect(ways).toBeGreaterThanOrEqual(12)
  // As it stands it compiles; without the directives, every line that one stood over is refused.
  const [asItStands, without] = await Promise.all([
    compile(source),
    compile(source.replaceAll('// @ts-expect-error', '//')),
  ])
  expect(asItStands).toBe('')
  const lines = new Set(without.split('\n').map((line) => /admission\.ts\((\d+),/.exec(line)?.[1]))
  expect(lines.size, without).toBe(ways)
}, 60_000)

it('this can fail: without the mark, leave could be made by hand', async () => {
  const unmarked = source
    .replace('Forward, Refused', 'Forward as Marked, Refused')
    .replace(
      'declare const admit:',
      'type Forward = { readonly [key in keyof Marked as key & string]: Marked[key] }\ndeclare const admit:',
    )
  expect(await compile(unmarked)).toContain("Unused '@ts-expect-error' directive")
}, 60_000)
