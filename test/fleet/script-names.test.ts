import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

const FOLDER = new URL('../../src/fleet/', import.meta.url)

/** The names that a piece of Lua declares: for all that follows, or (`within`) also for a part of it. */
function declaredIn(lua: string, within: '' | '\\s*'): readonly string[] {
  const lines = lua.matchAll(new RegExp(`^${within}local (?:function )?([\\w, ]+?)(?: =|\\(|$)`, 'gm'))
  return [...lines].flatMap(([, names = '']) => names.split(',').map((name) => name.trim()))
}

const source = readdirSync(FOLDER).map((file) => readFileSync(new URL(file, FOLDER), 'utf8'))
const [, common = ''] = source.flatMap((text) => [...(/const COMMON = `([^`]*)`/.exec(text) ?? [])])
const bodies = source.flatMap((text) =>
  [...text.matchAll(/tokenScript\(\s*'\w+',\s*`([^`]*)`/g)].map(([, body = '']) => body),
)

it('C6 no script takes a name of the part that every script begins with: what follows would read its own', () => {
  const taken = new Set(declaredIn(common, ''))
  expect(taken).toContain('epoch')
  expect(bodies.length).toBeGreaterThan(3)
  expect(bodies.flatMap((body) => declaredIn(body, '\\s*')).filter((name) => taken.has(name))).toEqual([])
})
