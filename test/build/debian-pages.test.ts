import { readFileSync } from 'node:fs'
import process from 'node:process'
import { expect, it } from 'vitest'
import { contentOf } from '../../deploy/build/debian/content.ts'

it('the Debian package has what a page of it finds beside itself', async () => {
  const executable = readFileSync(process.execPath)
  const files = await contentOf({ executable, version: '1.0.0', licences: '', time: 0 })
  const folder = 'usr/share/doc/postern/'
  const names = files.flatMap(({ path }) => (path.startsWith(folder) ? [path.slice(folder.length)] : []))
  const beside = files
    .filter(({ path }) => path.startsWith(folder) && path.endsWith('.md'))
    .flatMap(({ content }) => [...String(content).matchAll(/`([\w.-]+)` beside this page/g)])
    .map(([, name = '']) => name)
  expect(beside).toEqual(['evidence.json'])
  expect(names).toEqual(expect.arrayContaining(beside))
})
