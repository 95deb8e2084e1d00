import { expect, it } from 'vitest'
import { loadPageFiles } from '../../src/admin/page-files.ts'
import { plots } from '../../src/page/chart-data.js'
import { calm } from './calm.ts'

it('H158 every explanation belongs to a figure of the page, and every figure has one', () => {
  const html = loadPageFiles().get('index.html')?.body.toString() ?? ''
  const idsIn = (pattern: RegExp): string[] => [...html.matchAll(pattern)].map(([, id = '']) => id)
  const figures = idsIn(/aria-describedby="why-(\w+)"/g)
  const charts = plots(calm(0)).map(({ id }) => id)
  expect(figures.length).toBeGreaterThan(20)
  expect([...figures, ...charts].toSorted()).toEqual(idsIn(/<p id="why-(\w+)" popover/g).toSorted())
})
