import { expect, it } from 'vitest'
import { loadPageFiles } from '../../src/admin/page-files.ts'
import { FIGURES } from '../../src/page/figures.js'

it('H158 every explanation belongs to a figure of the page, and every figure has one', () => {
  const html = loadPageFiles().get('index.html')?.body.toString() ?? ''
  const keys = [...html.matchAll(/data-figure="(\w+)"/g)].map(([, key]) => key)
  expect(keys.toSorted()).toEqual(Object.keys(FIGURES).toSorted())
})
