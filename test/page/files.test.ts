import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { PAGE_FIELDS } from '../../src/admin/admin-response.ts'
import { loadPageFiles } from '../../src/admin/page-files.ts'
import { loginPage } from '../../src/admin/page-login.ts'

const files = loadPageFiles()
const textOf = (name: string): string => files.get(name)?.body.toString() ?? expect.fail(`no ${name}`)

describe('H156 the files of the live page', () => {
  const login = (base: '' | 'page/'): string => `${loginPage(401, base, {}).body}`

  it.each([
    ['index.html', textOf('index.html'), 2, 'page/'],
    ['the login', login('page/'), 1, 'page/'],
    ['the login below /page/', login(''), 1, ''],
  ])('%s refers only to files that are served', (_, text, most, base) => {
    const references = [...text.matchAll(/\b(?:src|href|action)="(?!#)([^"]*)"/g)].map(([, to = '']) => to)
    expect(references.length).toBeGreaterThan(most)
    const served = [...files.keys(), 'login', 'logout'].map((file) => `${base}${file}`)
    expect(references.filter((to) => !served.includes(to))).toEqual([])
  })

  it('index.html and the login have no script, handler or style inside, which the policy would refuse', () => {
    const [, style = '', hash = ''] =
      /<style>(.*)<\/style>.*'sha256-(.*?)'/s.exec(login('') + PAGE_FIELDS['Content-Security-Policy']) ?? []
    expect(createHash('sha256').update(style).digest('base64')).toBe(hash)
    for (const text of [textOf('index.html'), login('').replace(style, '').replace('<style></style>', '')])
      expect(text).not.toMatch(/<style|<script(?![^>]* src=)|\s(?:style|on[a-z]+)=/)
  })

  it('import only each other', () => {
    for (const [name, { body }] of files) {
      if (!name.endsWith('.js')) continue
      const imports = [...body.toString().matchAll(/^(?:import|export) .*?from '\.\/([^']+)'/gms)].map(
        ([, to = '']) => to,
      )
      expect(imports.filter((to) => !files.has(to))).toEqual([])
      expect(body.toString()).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write/)
    }
  })

  it('have a type and a tag of their content', () => {
    expect(new Set([...files.values()].map(({ etag }) => etag)).size).toBe(files.size)
    expect(files.get('main.js')?.type).toBe('text/javascript; charset=utf-8')
    expect(files.get('style.css')?.type).toBe('text/css; charset=utf-8')
    expect([...files.values()].every(({ etag }) => /^"[\w-]{22}"$/.test(etag))).toBe(true)
  })
})
