import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { COMMANDS } from '../../src/fleet/server-report.ts'
import { readTree } from '../support/source-tree.ts'

it('H137 the commands whose rights check asks for are those of all scripts', () => {
  const root = join(import.meta.dirname, '../..')
  const known = new Set(COMMANDS.map((command) => command.replace(/ .*/, '')))
  const used = [...readTree(root, 'src').keys()].flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(/redis\.p?call\('([A-Z]+)'/g)].map(
      ([, name]) => name,
    ),
  )
  expect(used.length).toBeGreaterThan(20)
  expect(used.filter((name) => name !== undefined && !known.has(name))).toEqual([])
})
