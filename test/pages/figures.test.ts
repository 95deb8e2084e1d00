import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type PublishedFigure, textOf } from '../../bench/report/published.ts'
import { readPage } from '../support/pages.ts'
import { readTree } from '../support/source-tree.ts'
import { constantsOf, defaultsOf, type Measured, numbersIn, sectionsOf } from './figures.ts'

const ROOT = join(import.meta.dirname, '../..')

const figures: readonly PublishedFigure[] = JSON.parse(readFileSync(join(ROOT, 'bench/figures.json'), 'utf8'))

/** Programs write these two. `bench/laws.md` compares laws in a simulation, and is no page for users. */
const GENERATED = ['promises.md', 'devices.md']
const PAGES = [
  'README.md',
  'SECURITY.md',
  'bench/README.md',
  'src/README.md',
  'src/RECIPES.md',
  ...['docs', 'deploy'].flatMap((folder) =>
    readdirSync(join(ROOT, folder))
      .filter((name) => name.endsWith('.md') && !GENERATED.includes(name))
      .map((name) => `${folder}/${name}`),
  ),
]

/** Numbers with a unit that no measurement made, and that are neither a default nor a named constant of the program. */
const NOT_MEASURED = new Map([
  ['7 MiB', 'argon2id of the fingerprint'],
  ['19 MiB', 'argon2id of `postern hash-password`'],
  ['32 MiB', '`listen.memory: auto` under 128 MiB'],
  ['4 MiB', '4 uploads of 1 MiB, with `upstream.buffer_uploads: auto`'],
  ['50,000 bytes', 'the longest line for `password.socket`: the body of a login, escaped'],
  ['64 MiB', '64 uploads of 1 MiB, with `upstream.max_in_flight: auto`'],
  ['512 bytes', 'what some firmware reads'],
  ['200 requests/s', 'the pace of P4'],
])

/** `112 KB` does not contain `12 KB`. */
const contains = (text: string, figure: string): boolean =>
  text
    .split(figure)
    .slice(0, -1)
    .some((before) => !/[\d.,]$/.test(before))

const source = [...readTree(ROOT, 'src', 'bench').values()].join('\n')
const limits = new Set([
  ...constantsOf(source),
  ...[...readTree(ROOT, 'deploy').values()].flatMap(defaultsOf),
])
const isLimit = ({ values }: Measured): boolean =>
  values.every((value) => value !== undefined && limits.has(value))

describe('bench/figures.json', () => {
  it('has each figure once', () => {
    const ids = figures.map(({ id }) => id)
    expect(ids).toEqual([...new Set(ids)])
  })

  it.each(figures)('$id: its section names the command, its page the machine and the day', (figure) => {
    const { page, command, machine, day } = figure
    const sections = sectionsOf(readPage(page)).filter((text) => contains(text, textOf(figure)))
    expect(sections.length).toBeGreaterThan(0)
    expect(sections.filter((text) => text.includes(`\`${command}`))).not.toEqual([])
    const whole = sectionsOf(readPage(page)).join(' ')
    expect(whole).toContain(machine)
    expect(whole).toContain(day)
  })

  it.each([...new Set(figures.map(({ command }) => command))])('%s is a command', (command) => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const [, script, file] = /^(?:npm run (\S+)|node (\S+))/.exec(command) ?? []
    expect(script === undefined ? existsSync(join(ROOT, String(file))) : script in scripts).toBe(true)
    const [, ids = ''] = /--only (\S+)/.exec(command) ?? []
    for (const id of ids.split(',').filter((id) => id !== '')) expect(source).toContain(`id: '${id}',`)
  })
})

describe.each(PAGES)('%s', (page) => {
  it('has only figures of bench/figures.json that belong on it', () => {
    const others = figures.filter((figure) => figure.page !== page && figure.unit !== '')
    const ours = figures.filter((figure) => figure.page === page).map(textOf)
    const unknown = numbersIn(readPage(page)).filter((number) => {
      const { text } = number
      if (ours.some((each) => each.startsWith(text))) return false
      if (others.some((other) => textOf(other) === text)) return true
      return !isLimit(number) && !NOT_MEASURED.has(text)
    })
    expect(unknown.map(({ text, around }) => `${text}: ${around}`)).toEqual([])
  })
})

it('lists no number as not measured that no page has, or that the program has', () => {
  const needed = PAGES.flatMap((page) => numbersIn(readPage(page))).filter((number) => !isLimit(number))
  const unneeded = [...NOT_MEASURED.keys()].filter((text) => !needed.some((number) => number.text === text))
  expect(unneeded).toEqual([])
})

it('finds numbers in the prose of a page, and tells limits from results', () => {
  const page = 'Of `2 ms` and 429s and ≤ 3 ms, `a` takes 4.1 ms, 1.5 to 2 µs, and at most 8 KiB within 10 s.'
  const found = numbersIn(page).map((number) => [number.text, isLimit(number)])
  expect(found).toEqual([
    ['4.1 ms', false],
    ['1.5 to 2 µs', false],
    ['8 KiB', true],
    ['10 s', true],
  ])
})
