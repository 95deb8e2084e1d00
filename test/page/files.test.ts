import { describe, expect, it } from 'vitest'
import { loadPageFiles } from '../../src/admin/page-files.ts'

const files = loadPageFiles()
const textOf = (name: string): string => files.get(name)?.body.toString() ?? expect.fail(`no ${name}`)

describe('H156 the files of the live page', () => {
  it.each(['index.html', 'login.html'])('%s refers only to files that are served', (name) => {
    const references = [...textOf(name).matchAll(/\b(?:src|href|action)="(?!#)([^"]*)"/g)].map(
      ([, to = '']) => to,
    )
    expect(references.length).toBeGreaterThan(2)
    const served = [...files.keys(), 'login', 'logout'].map((file) => `page/${file}`)
    expect(references.filter((to) => !served.includes(to))).toEqual([])
  })

  it.each(['index.html', 'login.html'])(
    '%s has no script, style or handler inside, which the policy would refuse',
    (name) => {
      expect(textOf(name)).not.toMatch(/<style|<script(?![^>]* src=)|\s(?:style|on[a-z]+)=/)
    },
  )

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
