import { readFileSync } from 'node:fs'
import { type Field, z } from '../../src/config/field.ts'
import { flow } from '../../src/config/first-configuration.ts'
import { environmentName, type KnownKey, knownKeys } from '../../src/config/known-keys.ts'
import { RESTART_KEYS } from '../../src/config/restart-keys.ts'
import { schema } from '../../src/config/schema.ts'
import { isMapping, parseYaml, type YamlValue } from '../../src/config/yaml.ts'
import { listItem, wrapped } from './markdown.ts'

/** A key of keys.yaml. */
interface ListedKey {
  readonly means: string
  /** In the form of the file; undefined for a section. */
  readonly example: YamlValue | undefined
}

/** Every key of the configuration, by its path, in the order of the reference page. */
export const listedKeys: ReadonlyMap<string, ListedKey> = readKeys()

function readKeys(): ReadonlyMap<string, ListedKey> {
  const parsed = parseYaml(readFileSync(new URL('keys.yaml', import.meta.url), 'utf8'))
  if (!('value' in parsed) || !isMapping(parsed.value)) throw new Error('keys.yaml is no mapping')
  return new Map(
    Object.entries(parsed.value).map(([key, entry]) => [
      key,
      isMapping(entry)
        ? { means: String(entry.means), example: entry.example }
        : { means: String(entry), example: undefined },
    ]),
  )
}

/** The keys that people set, in the order in which they meet them. */
export const COMMON_KEYS: readonly string[] = [
  'upstream.url',
  'upstream.auth',
  'upstream.headers',
  'upstream.host',
  'upstream.max_in_flight',
  'upstream.response_timeout',
  'upstream.health.path',
  'upstream.routes',
  'password.file',
  'passwords',
  'listen.address',
  'listen.tls',
  'listen.trusted_proxies',
  'listen.allow',
  'admin.address',
  'admin.password_file',
  'limits.api.requests',
  'limits.api.per',
  'limits.wrong_passwords',
  'tokens.store',
  'tokens.access_lifetime',
  'browser.login',
  'public_paths',
  'log.access',
  'state_dir',
]

const INTRODUCTION = `# Configuration reference

<!-- Written by \`npm run reference\` from src/config and deploy/build/keys.yaml; change it there. -->

One YAML file, given by \`--config\`. Only \`upstream.url\` and one password source are required.

Every key can also be set from outside the file: by an environment variable, as listed, or by
\`--set key=value\`, which can be repeated. A flag overrides the environment, the environment overrides the file, and the
file overrides the default. A value that is not plain text is written as YAML (\`POSTERN_UPSTREAM_HEADERS='{X-Name: value}'\`);
a list can also be separated by commas (\`POSTERN_LISTEN_TRUSTED_PROXIES=10.0.0.0/8,fd00::/8\`). A whole section can also be set
like this (\`--set 'limits.api={requests: 120, window: 10s}'\`).

- **Durations** are numbers of seconds, or \`500ms\`, \`10s\`, \`5m\`, \`1h\`, \`7d\`.
- **Sizes** are numbers of bytes, or \`8KiB\`, \`1MiB\`.
- **Paths** that do not begin with \`/\` are relative to the working directory.
- Unknown keys, and unknown \`POSTERN_\` variables, are errors.

An editor that knows JSON Schema completes and checks the file when its first line is
\`# yaml-language-server: $schema=postern.schema.json\`.
`

/** The longest line of the page (characters): one that a terminal shows unbroken. */
const WIDTH = 120

/** The reference page: a part for each section, and one for the keys outside of all sections. Each key has an entry. */
export function referencePage(): string {
  const grouped = [...schema.keys].filter(([, field]) => field.keys.size > 0)
  const sections = grouped.map(([name]) => part(name, listedKeys.get(name)?.means, keysBelow(name)))
  const single = knownKeys().filter(({ path, field }) => path.length === 1 && field.keys.size === 0)
  const contents = [
    '## Contents\n',
    '- [The keys that people set](#the-keys-that-people-set)',
    '- [What needs a restart](#what-needs-a-restart)',
    ...grouped.flatMap(([name]) => contentsOf(name, `#${name}`, keysBelow(name))),
    ...contentsOf('Keys outside of sections', '#keys-outside-of-sections', single),
    '',
  ].join('\n')
  return [
    INTRODUCTION,
    commonKeys(),
    contents,
    reloading(),
    ...sections,
    part('Keys outside of sections', undefined, single),
  ].join('\n')
}

/** A list item: the link to the section, then one to each of its keys. */
function contentsOf(title: string, link: string, keys: readonly KnownKey[]): string[] {
  // The anchor of a heading on GitHub: its text without the backticks and dots.
  const links = keys.map(
    ({ path }) => `[${path.slice(title === path[0] ? 1 : 0).join('.') || path[0]}](#${path.join('')})`,
  )
  return listItem(`[${title}](${link}): ${links.join(', ')}`, WIDTH)
}

/** The keys that people set, each with an example: the first sentence of what it means, and a link to the rest. */
function commonKeys(): string {
  const entries = COMMON_KEYS.map((key) => {
    const { means = '', example = null } = listedKeys.get(key) ?? {}
    const [first = ''] = means.split(/(?<=\.) /, 1)
    const whole = key.split('.').reduceRight<YamlValue>((inner, name) => ({ [name]: inner }), example)
    const yaml = `${key.split('.')[0]}: ${flow(isMapping(whole) ? (whole[key.split('.')[0] ?? ''] ?? null) : null)}`
    return `${lines(`[${code(key)}](#${key.replaceAll('.', '')}): ${first}`)}\n\n\`\`\`yaml\n${yaml.replaceAll(/,(?=\S)/g, ', ')}\n\`\`\`\n`
  })
  return `## The keys that people set\n\n${entries.join('\n')}`
}

function reloading(): string {
  const names = RESTART_KEYS.map(
    ({ keys, which }) => `- ${keys.map(code).join(', ')}${which === undefined ? '' : `: ${which}`}`,
  )
  return `## What needs a restart

A change of any key takes effect when the file is saved, or at \`SIGHUP\`, except that of these keys and of those below them. The
log names the keys that wait for a restart.

${names.join('\n')}
`
}

/** The JSON Schema of the file, for editors. */
export function referenceSchema(): string {
  const $schema = 'http://json-schema.org/draft-07/schema#'
  const page = JSON.stringify({ $schema, title: 'Postern', ...jsonSchema(schema, '') }, null, 2)
  // Lists of words on one line, as the formatter of this repository writes them.
  return `${page.replace(/\[\s+([^[\]{}]*?)\s+\]/g, (_, words: string) => `[${words.replace(/\s*\n\s*/g, ' ')}]`)}\n`
}

type Node = z.core.JSONSchema.BaseSchema

/**
 * The JSON Schema of the YAML form of a key, in draft 7, which most editors support. A section without required keys may be `null`:
 * if all its keys are commented out, YAML parses it as `null`, and `layer` treats it as left out.
 */
function jsonSchema(field: Field<unknown>, path: string): Node {
  const { $schema, ...node } = z.toJSONSchema(field.schema(), {
    io: 'input',
    target: 'draft-7',
    override({ zodSchema, jsonSchema: each, path: steps }) {
      // The keys of a key have a JSON Schema of their own.
      if (steps.includes('properties')) return
      const known = [...((steps.includes('items') ? field.item : (field.member ?? field))?.keys ?? [])]
      if (known.length > 0 && zodSchema._zod.def.type === 'object') {
        const here = steps.includes('items') ? `${path}[]` : path.replace(/^upstream\.routes$/, 'upstream')
        const below = here === '' ? '' : `${here}.`
        const required = known.filter(
          ([, { optional, default: initial }]) => !optional && initial === undefined,
        )
        delete each.required
        Object.assign(each, {
          type: 'object',
          properties: Object.fromEntries(known.map(([key, field]) => [key, described(field, below + key)])),
          ...(required.length === 0 ? {} : { required: required.map(([key]) => key) }),
          additionalProperties: false,
          ...(field.kind === 'choice' ? ONE : DEMANDS[path]),
        })
      }
      const mayBeEmpty = each.required === undefined && each.minProperties === undefined
      if (path !== '' && each.type === 'object' && mayBeEmpty) each.type = ['object', 'null']
    },
  })
  return node
}

const ONE = { minProperties: 1, maxProperties: 1 }
const PAIR = { dependencies: { cert: ['key'], key: ['cert'] } }

/** What else the JSON Schema says of the mapping at a path. */
const DEMANDS: Readonly<Record<string, object>> = {
  '': { oneOf: ['password', 'passwords'].map((key) => ({ properties: { [key]: {} }, required: [key] })) },
  'listen.tls': { minProperties: 1, ...PAIR },
  'upstream.max_in_flight': { minProperties: 1 },
  'upstream.tls': PAIR,
}

/** Throws for a key without a description. */
function described(field: Field<unknown>, path: string): Node {
  const description = listedKeys.get(path)?.means
  if (description === undefined) throw new Error(`keys.yaml does not list ${path}`)
  const initial = field.optional || field.default === undefined ? {} : { default: field.default }
  return { description, ...initial, ...jsonSchema(field, path) }
}

function part(title: string, description: string | undefined, keys: readonly KnownKey[]): string {
  const text = description === undefined ? '' : `${lines(description)}\n\n`
  return `## ${title}\n\n${text}${keys.map(entry).join('\n')}`
}

function keysBelow(section: string): readonly KnownKey[] {
  return knownKeys().filter(
    ({ path, field }) => path[0] === section && (field.keys.size === 0 || field.kind === 'either'),
  )
}

function entry(known: KnownKey): string {
  const { path, field } = known
  const facts = [
    `Type: ${field.type}`,
    `Default: ${defaultOf(known)}`,
    `Environment: ${code(environmentName(path))}`,
  ]
  return `### ${code(path.join('.'))}\n\n${lines(listedKeys.get(path.join('.'))?.means ?? '')}\n\n${facts.map((fact) => `- ${fact}\n`).join('')}`
}

function lines(text: string): string {
  return wrapped(text, WIDTH).join('\n')
}

function defaultOf({ path, field }: KnownKey): string {
  if (field.default !== undefined) return code(written(field.default))
  return !field.optional && !isAlternative(path) ? '**required**' : 'none'
}

/** Whether the key belongs to one of several alternatives: then it is required only with that alternative. */
function isAlternative(path: readonly string[]): boolean {
  let field: Field<unknown> | undefined = schema
  for (const key of path) {
    if (field === undefined || field.kind === 'either' || field.kind === 'choice') return true
    field = field.keys.get(key)
  }
  return false
}

function written(value: YamlValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function code(text: string): string {
  return `\`${text}\``
}
