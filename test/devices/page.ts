import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { listItem } from '../../deploy/build/markdown.ts'
import type { YamlPart } from '../support/sidecar.ts'
import { aspects } from './aspects.ts'
import type { Finding, Row } from './matrix.ts'
import { type ModelRow, models } from './models.ts'
import { type RealServer, servers } from './servers.ts'

const WIDTH = 130

const INTRODUCTION = `# Devices

<!-- Written by \`npm run devices\`, which tries all of this; change it in test/devices. -->

Postern in front of web servers that devices have, as Debian has them, and in front of models of firmware from public reports. For a device that
is not here, let Postern try some of its pages, and take the lines that it prints:

\`\`\`sh
postern check / /index.html
\`\`\`

[Old firmware](../deploy/old-firmware.md) says by symptom what to write. Each server below is tried over HTTP/1.1 and HTTP/2, with the defaults of
Postern, and compared with the same server asked directly.

## Servers

| sign | meaning |
| --- | --- |
| ✓ | as direct: status, fields and body are the same |
| + | better than direct: it works with Postern and not without |
| a number | it works with the key of [that note](#keys) |
| = | it works neither with Postern nor without |
| ✗ | it does not work with Postern |
| · | the server cannot do this, or is not configured for it |
`

const COLUMNS = `*Refusals* are a missing file and the methods DELETE, OPTIONS and PROPFIND. *Programs* are CGI programs (for nginx: responses by
configuration). *Upload* is one of 300 KB to a program that answers with its digest. *Early answer* is an upload of 3 MB that the
server refuses before it has read it: the client has to get the refusal.
`

/** \`docs/devices.md\`, from what was measured. */
export function devicesPage(rows: ReadonlyMap<string, Row>): string {
  const notes = notesOf(rows)
  const shown = servers.filter(({ name }) => rows.has(name))
  const table = [
    `| device | ${aspects.map(({ name }) => name).join(' | ')} |`,
    `| --- |${' :-: |'.repeat(aspects.length)}`,
    ...shown.map(
      (server) =>
        `| ${`${server.name} ${versionOf(server)}`.trim()} | ${cellsOf(rows, server.name, notes).join(' | ')} |`,
    ),
  ]
  return [
    INTRODUCTION,
    ...table,
    '',
    COLUMNS,
    '### Keys',
    '',
    ...notes.map((note, i) => `${i + 1}. ${note}`),
    '',
    '### Not compared',
    '',
    'The server itself answers improperly:',
    '',
    ...shown.flatMap(({ name }) => notComparedOf(name, rows.get(name))),
    '',
    modelsPart(),
  ].join('\n')
}

/** The cells of a server on a page, by aspect; undefined where the page does not have the server. */
export function cellsOn(page: string, server: string): ReadonlyMap<string, string> | undefined {
  const line = page.split('\n').find((each) => each.startsWith(`| ${server} `))
  if (line === undefined) return undefined
  const cells = line.split('|').map((cell) => cell.trim())
  return new Map(aspects.map(({ name }, i) => [name, cells[i + 2] ?? '']))
}

/** The sign of a finding; a key is its number among the notes of the page. */
export function signOf(finding: Finding, notes: readonly string[]): string {
  switch (finding) {
    case 'none':
      return '·'
    case 'same':
      return '✓'
    case 'better':
      return '+'
    case 'alike':
      return '='
    case 'fails':
      return '✗'
    default:
      return String(notes.indexOf(quoted(finding)) + 1)
  }
}

/** The keys that the page has notes for. */
export function notesOn(page: string): readonly string[] {
  return [...page.matchAll(/^\d+\. (`.*`)$/gm)].map(([, note = '']) => note)
}

function notesOf(rows: ReadonlyMap<string, Row>): readonly string[] {
  const keys = [...rows.values()].flatMap(({ findings }) => [...findings.values()])
  return [...new Set(keys.filter((each) => typeof each === 'object').map(quoted))].toSorted()
}

function cellsOf(rows: ReadonlyMap<string, Row>, name: string, notes: readonly string[]): string[] {
  const findings = rows.get(name)?.findings
  return aspects.map((aspect) => signOf(findings?.get(aspect.name) ?? 'none', notes))
}

/** The keys as they are written, each on its own. Of a login only its kind is named: the rest depends on the device. */
function linesOf(keys: YamlPart, path = 'upstream.'): readonly string[] {
  return Object.entries(keys).flatMap(([key, value]) => {
    const nested = typeof value === 'object' && value !== null && !Array.isArray(value)
    if (nested && key === 'auth' && 'kind' in value) return [`${path}auth: {kind: ${value.kind}, ...}`]
    if (nested && key === 'headers') {
      const names = Object.entries(value).map(
        ([name, each]) => `${name.endsWith('*') ? `"${name}"` : name}: ${each}`,
      )
      return [`${path}headers: {${names.join(', ')}}`]
    }
    if (nested) return linesOf(value as YamlPart, `${path}${key}.`) // neither null nor a list
    // In YAML, a version without quotes is a number.
    const text = typeof value === 'string' && /^[\d.]+$/.test(value) ? `"${value}"` : value
    return [`${path}${key}: ${Array.isArray(value) ? `[${value.join(', ')}]` : text}`]
  })
}

const quoted = (keys: YamlPart): string =>
  linesOf(keys)
    .map((line) => `\`${line}\``)
    .join(', ')

function notComparedOf(name: string, row: Row | undefined): readonly string[] {
  const broken = [...(row?.bench.broken ?? [])].toSorted()
  return broken.length === 0 ? [] : item(`**${name}**: ${broken.join('; ')}.`)
}

/** The part of the page that needs no server. */
export function modelsPart(): string {
  const lines = models.map((row) => {
    const { what, report } = described(row)
    return `| [${row.name}](${report}) | ${what} | ${[row.fails ?? 'works', row.note].filter(Boolean).join('; ')} | ${cureOf(row)} |`
  })
  return [
    '## Models of firmware',
    '',
    'Each model is a program of its own in `test/devices/models`, after the public report to which it leads here. The last column is',
    'what makes it work.',
    '',
    '| model | what it does | by default | key |',
    '| --- | --- | --- | --- |',
    ...lines,
    '',
  ].join('\n')
}

/** What makes the model work. Postern may not have the key yet, so a key that waits is no example to copy. */
function cureOf({ keys }: ModelRow): string {
  if (keys === undefined) return 'nothing'
  return quoted(keys) || 'none'
}

/** What the docstring of the model says. */
function described({ name }: ModelRow): { readonly what: string; readonly report: string } {
  const text = readFileSync(join(import.meta.dirname, 'models', `${name}.ts`), 'utf8')
  const [, what = '', report = ''] = /\/\*\*\n \* ([\s\S]*?)\n \* (https:\S+)\n \*\//.exec(text) ?? []
  return { what: what.replaceAll('\n * ', ' '), report }
}

/** The version of the package, without what Debian adds and what a security update changes; empty for a bare program. */
function versionOf({ debian }: RealServer): string {
  const { stdout } = spawnSync('dpkg-query', ['-W', '-f', `\${Version}`, debian], { encoding: 'utf8' })
  const [, version = ''] = /^(?:\d+:)?(\d+(?:\.\d+)?)/.exec(stdout ?? '') ?? []
  return version
}

function item(text: string): string[] {
  return listItem(text, WIDTH)
}
