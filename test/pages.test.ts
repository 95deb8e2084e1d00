import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createMetrics } from '../src/record/metrics.ts'
import { anchorsOf, blocksOf, fencesOf } from './support/pages.ts'
import { readTree } from './support/source-tree.ts'

const root = join(import.meta.dirname, '..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

const FOLDERS = ['.', 'src', 'test', 'bench', 'deploy', 'docs']
const PAGES = FOLDERS.flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: folder !== '.' })
    .map((name) => join(folder, String(name)))
    .filter((path) => path.endsWith('.md')),
)
const COMMAND = /^(?:npm|npx|node|curl|postern|apt-get|systemctl|docker|kubectl|install|git) /m

describe('the pages', () => {
  it.each(PAGES)('%s: every link leads to a file and a heading that exist', (page) => {
    const text = read(page).replace(/^```.*?^```$/gms, '')
    const links = [...text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g)]
    for (const [link, path = '', anchor] of links) {
      const target = path === '' ? page : join(dirname(page), path)
      expect(existsSync(join(root, target)), link).toBe(true)
      if (anchor !== undefined) expect(anchorsOf(target), link).toContain(anchor)
    }
  })

  it.each(['src/README.md', 'src/RECIPES.md', 'bench/README.md'])(
    '%s names only files that exist',
    (path) => {
      const folder = dirname(path)
      const { dependencies } = JSON.parse(read('package.json'))
      const page = read(path).replaceAll(/\(https?:[^)]*\)|\b[\w/-]*NAME[\w-]*\.ts/g, '')
      const named = [...page.matchAll(/(?<![\w./*-])[\w-][\w./-]*\.(?:ts|js|cjs|mjs|css|yml)\b/g)].map(
        ([path]) => path,
      )
      expect(named.length).toBeGreaterThan(20)
      const exists = (path: string): boolean =>
        existsSync(join(root, folder, path)) || existsSync(join(root, path))
      // A package may have the name of a file: `ipaddr.js`.
      expect(named.filter((path) => !exists(path) && !(path in dependencies))).toEqual([])
    },
  )
})

describe('a measured figure stands on one page, with the command that makes it', () => {
  // The pages that are generated, and the history.
  const written = PAGES.filter((page) => !/^(?:docs\/promises|CHANGELOG)\.md$/.test(page))

  it('README.md names none of Postern', () => {
    const text = read('README.md')
    expect(text.match(/\b\d[\d.,]* ?(?:[KMG]i?B|µs|ms|minutes)\b/g)).toBeNull()
  })

  it.each([
    ['the memory of an idle sidecar', /\b118 MiB\b/],
    ['its part that is not shared', /\b25 to 36 MiB of its own\b/],
    ['the processor time of a request', /\b33 µs\b/],
    ['the time of a start', /\b0\.14 s\b/],
  ])('%s', (_, figure) => {
    expect(written.filter((page) => figure.test(read(page)))).toEqual(['docs/sizing.md'])
    const [paragraph = ''] = read('docs/sizing.md')
      .split(/\n(?=\*\*|## )|\n\n(?!\|)/)
      .filter((part) => figure.test(part))
    expect(paragraph).toMatch(/`(?:npm run bench|node bench\/)/)
  })
})

describe('the commands on the pages', () => {
  /** The calls of `shellBlock` in the tests: a page, and words of the block that the test runs. */
  const claims = [...readTree(root, 'test').values()].flatMap((text) =>
    [...text.matchAll(/\bshellBlock\(\s*'([^']+)',\s*'([^']+)',?\s*\)/g)].map(
      ([, page = '', words = '']) => ({
        page,
        words,
      }),
    ),
  )

  it.each(PAGES)('%s: a test runs every shell block', (page) => {
    const unclaimed = blocksOf(page, 'sh').filter(
      (block) => !claims.some((claim) => claim.page === page && block.includes(claim.words)),
    )
    expect(unclaimed).toEqual([])
  })

  it.each(PAGES)('%s: a block of commands says that it is one', (page) => {
    const others = fencesOf(page).filter(({ language }) => language !== 'sh')
    expect(others.filter(({ text }) => COMMAND.test(text))).toEqual([])
  })

  it.each(PAGES)('%s: npm has every script that the page names', (page) => {
    const { scripts } = JSON.parse(read('package.json'))
    const named = [...read(page).matchAll(/\bnpm run (?:-s )?([\w:-]+)/g)].map(([, name]) => name)
    expect(named.filter((name) => !(String(name) in scripts))).toEqual([])
  })
})

describe('docs/operating.md', () => {
  const page = read('docs/operating.md')

  it('lists every metric, and no other', async () => {
    const metrics = createMetrics({ version: '0', node: '0' })
    metrics.sharedStore()
    const exported = await metrics.text()
    const known = [...exported.matchAll(/^# TYPE (postern_\w+)/gm)].map(([, name]) => name)
    const named = [...page.matchAll(/postern_\w+/g)].map(([name]) => name)
    expect([...new Set(named)].sort()).toEqual([...new Set(known)].sort())
  })

  it('quotes only messages that the program has', () => {
    const source = [...readTree(root, 'src').values()].join('\n')
    const ours = page.replace(/^\| message of Node or the system \|.*\n(?:\|.*\n)+/m, '')
    const prose = ours.replace(/^```.*?^```$/gms, '')
    const [, table = ''] = /\n\| message \| what to do \|\n\| --- \| --- \|\n((?:\|.*\n)+)/.exec(prose) ?? []
    const inTable = [...table.matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell = '']) => [
      ...cell.matchAll(/`([^`]+)`/g),
    ])
    // Of the rest, what has three words and is no command.
    const others = [...prose.matchAll(/`([^`\n]+)`/g)].filter(([, text = '']) =>
      /^(?!curl |journalctl |docker |node |npm |systemctl )\S+ \S+ /.test(text),
    )
    const parts = [...inTable, ...others].flatMap(([, text = '']) =>
      text.split('...').map((part) => part.trim()),
    )
    expect(parts.length).toBeGreaterThan(20)
    expect(parts.filter((part) => !source.includes(part))).toEqual([])
  })

  it('quotes only alerts that there are', () => {
    const rules = read('deploy/postern.rules.yml')
    for (const [alert] of page.matchAll(/\bPostern[A-Z]\w+/g)) expect(rules).toContain(`alert: ${alert}\n`)
  })
})
