import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { describe, expect, it } from 'vitest'
import { referenceSchema } from '../../deploy/build/reference.ts'
import { writeDemoFiles } from '../../src/commands/demo.ts'
import { decode } from '../../src/config/decode.ts'
import { fieldsAlong, knownKeys } from '../../src/config/known-keys.ts'
import { layer } from '../../src/config/layers.ts'
import { schema } from '../../src/config/schema.ts'
import { isMapping, parseYaml, type YamlMapping, type YamlValue } from '../../src/config/yaml.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { effectiveYaml, load, MINIMAL } from './sources.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const read = (...path: string[]): string => readFileSync(join(ROOT, ...path), 'utf8')
const filesIn = (folder: string, ending: RegExp): string[] =>
  readdirSync(join(ROOT, folder))
    .filter((name) => ending.test(name))
    .map((name) => join(folder, name))

const validate = new Ajv({ strict: true, allowUnionTypes: true, allErrors: true }).compile(
  JSON.parse(referenceSchema()),
)

/** The errors that the JSON Schema finds in a YAML text. */
function faults(yaml: string): readonly unknown[] {
  validate(treeOf(yaml))
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

function treeOf(yaml: string): YamlValue {
  const parsed = parseYaml(yaml)
  return 'value' in parsed ? parsed.value : expect.fail(`${parsed.problem} in\n${yaml}`)
}

function expectAccepted(yaml: string): void {
  expect({ yaml, faults: faults(yaml) }).toEqual({ yaml, faults: [] })
  load({ file: yaml })
}

function overlay(base: YamlMapping, over: YamlMapping): YamlMapping {
  const result: Record<string, YamlValue> = { ...base }
  for (const [key, value] of Object.entries(over)) {
    const below = result[key]
    result[key] = isMapping(below) && isMapping(value) && key !== 'password' ? overlay(below, value) : value
  }
  return result
}

const mapping = (value: YamlValue): YamlMapping =>
  isMapping(value) ? value : expect.fail('not a mapping of keys')

const DIGEST: YamlMapping = { kind: 'digest', user: 'admin' }
const SESSION: YamlMapping = {
  kind: 'session',
  session: { login: { path: '/login' }, token: { header: 'X-Session' }, send: { header: 'X-Session' } },
}

/** The keys that `upstream.auth` requires, if the example is about it. */
function authOf({ password, upstream }: YamlMapping): YamlMapping {
  const auth = isMapping(upstream) && isMapping(upstream.auth) ? upstream.auth : {}
  if (Object.keys(auth).join() === 'kind')
    return auth.kind === 'session' ? SESSION : { ...DIGEST, password: { file: '/etc/postern/device' } }
  return isMapping(password) && 'device' in password ? DIGEST : {}
}

/** An example contains only the keys that it is about. This adds the required ones. */
function completed(example: YamlMapping): string {
  const auth = authOf(example)
  const beside: YamlMapping = Object.keys(auth).length > 0 ? { upstream: { auth } } : {}
  const { password: one, ...others } = mapping(treeOf(MINIMAL))
  const base = 'passwords' in example ? others : { ...others, password: one ?? '' }
  return JSON.stringify(overlay(overlay(base, beside), example))
}

function below(path: readonly string[], value: YamlValue): YamlMapping {
  const [key = '', ...rest] = path
  return { [key]: rest.length === 0 ? value : below(rest, value) }
}

/** The examples on a page: blocks of YAML, files that a command writes, and `key: value` in the text. */
function examplesOn(page: string): readonly YamlMapping[] {
  const text = read(page)
  const blocks = [
    ...text.matchAll(/^```yaml\n([\s\S]*?)^```$/gm),
    ...text.matchAll(/> *\S+\.ya?ml <<'?EOF'?\n([\s\S]*?)^EOF$/gm),
  ].map(([, block = '']) => mapping(treeOf(block)))
  const spans = [...text.matchAll(/`([a-z_]+(?:\.[a-z_]+)*): ([^`]+)`/g)]
    .map(([, key = '', value = '']) => ({ path: key.split('.'), value }))
    .filter(({ path, value }) => schema.keys.has(path[0] ?? '') && !value.includes('...'))
  return [...blocks, ...spans.map(({ path, value }) => below(path, treeOf(value)))]
}

/**
 * The pages whose YAML is configuration. Left out: the changelog, which may name keys of earlier versions, and the page about releases,
 * whose YAML is about a vendor.
 */
const PAGES = ['README.md', 'SECURITY.md', ...filesIn('deploy', /\.md$/), ...filesIn('docs', /\.md$/)].filter(
  (page) => page !== join('docs', 'releasing.md'),
)
const NO_CONFIGURATION = [
  'prometheus.yml',
  'postern.rules.yml',
  'postern.rules.test.yml',
  'compose.yaml',
  'provisioning.yaml',
]

const SLOW: YamlMapping = { wrong_passwords: 'slow' }

/** The shipped files, and the examples with a device and a password, which a reader may take as they stand. */
function wholeConfigurations(): readonly (readonly [where: string, configuration: YamlMapping])[] {
  const files = ['deploy/postern.yaml', 'deploy/kubernetes/postern.yaml', 'deploy/fleet/postern.yaml']
  const printed = PAGES.flatMap((page) => examplesOn(page).map((example) => [page, example] as const))
  const isWhole = ({ upstream, password, passwords }: YamlMapping): boolean =>
    isMapping(upstream) && 'url' in upstream && (password ?? passwords) !== undefined
  return [
    ...files.map((file) => [file, mapping(treeOf(read(file)))] as const),
    ...printed.filter(([, example]) => isWhole(example)),
  ]
}

describe('the loader and the JSON Schema accept every configuration that is shipped or printed', () => {
  it.each(
    filesIn('deploy', /\.ya?ml$/).filter(
      (path) => !NO_CONFIGURATION.some((name) => path.endsWith(`/${name}`)),
    ),
  )('%s', (path) => {
    expectAccepted(read(path))
  })

  it.each(
    PAGES.flatMap((page) => examplesOn(page).map((example) => [page, JSON.stringify(example)] as const)),
  )('%s: %s', (_page, example) => {
    expectAccepted(completed(mapping(treeOf(example))))
  })

  it('README.md shows the defaults of the keys that come after the device, its password and wrong ones', () => {
    const [shown = {}] = examplesOn('README.md')
    const { upstream = null, password = null } = shown
    expect(Object.keys(shown).length).toBeGreaterThan(2)
    expect(effectiveYaml({ file: JSON.stringify(shown) })).toBe(
      effectiveYaml({ file: JSON.stringify({ upstream, password, limits: SLOW }) }),
    )
  })

  it.each(wholeConfigurations())('%s makes guessing slow', (_where, { limits }) => {
    expect(limits).toMatchObject(SLOW)
  })

  it('without the key guessing is as fast as the documented API answers', () => {
    expect(load({ file: MINIMAL }).limits.wrongPasswords).toBe('off')
  })

  it('the search for examples finds those of the pages', () => {
    for (const page of ['docs/installing.md', 'docs/operating.md', 'deploy/old-firmware.md']) {
      expect(examplesOn(page), page).not.toEqual([])
    }
  })

  it('the configuration of the demo', async () => {
    const configFile = await writeDemoFiles(temporaryDirectory(), {
      upstream: 'http://127.0.0.1:8080',
      port: 8443,
      adminPort: 9464,
      passwordHash: 'hash',
    })
    expectAccepted(readFileSync(configFile, 'utf8'))
  })

  it.each([
    ['with all defaults, as the reference lists them', MINIMAL],
    ['of the first configuration', read('deploy', 'postern.yaml')],
    [
      'with every kind of value',
      completed({
        listen: { tls: { cert: 'c.pem', key: 'k.pem' }, trusted_proxies: ['10.0.0.0/8', 'unix'] },
        upstream: {
          headers: { 'X-A': 'text', 'X-B': { file: 'b' } },
          auth: {
            kind: 'session',
            user: 'admin',
            password: { file: 'p' },
            session: {
              login: { path: '/login', page: '/login.html', form: { user: '$user', password: '$password' } },
              token: { cookie: 'XSRF-TOKEN' },
              send: { header: 'X-XSRF-TOKEN: $token' },
              logout: {},
            },
          },
          tls: { ca: 'ca.pem' },
          health: { path: '/' },
          routes: { '/a/': { url: 'http+unix:/run/a.sock' } },
        },
        password: { shadow: { file: '/etc/shadow', user: 'admin' } },
        public_paths: ['/login'],
      }),
    ],
    [
      'with several passwords',
      completed({
        upstream: { headers: { 'X-A': { client_name: true } } },
        passwords: [
          { name: 'a', htpasswd: { file: 'f', user: 'u' }, allow: 'read' },
          {
            name: 'b',
            shadow: { file: 'f', user: 'u' },
            allow: [{ methods: ['UPGRADE'] }, { paths: ['/x/'] }],
          },
          { name: 'c', file: 'f', allow: [] },
        ],
      }),
    ],
  ])('the effective configuration that `check` prints, %s', (_of, file) => {
    expectAccepted(effectiveYaml({ file }))
  })
})

describe('the JSON Schema accepts an empty key exactly where the loader does', () => {
  const isRead = (tree: YamlMapping): boolean => 'value' in decode(schema, layer(tree, []).tree)
  const route: YamlMapping = { upstream: { routes: { '/a/': { url: 'http://127.0.0.1' } } } }
  const ROUTE = fieldsAlong(['upstream', 'routes', '/a/']).at(-1) ?? expect.fail('routes have no keys')
  const paths = knownKeys().map(({ path }) => path)
  const routePaths = paths
    .filter(([first, second = '']) => first === 'upstream' && ROUTE.keys.has(second))
    .map(([, ...rest]) => ['upstream', 'routes', '/a/', ...rest])

  it.each([...paths, ...routePaths].map((path) => [path.join(' '), path] as const))('%s', (_name, path) => {
    const tree = overlay(overlay(mapping(treeOf(MINIMAL)), route), below(path, null))
    expect(validate(tree)).toBe(isRead(tree))
  })

  it('a section without required keys may be empty, any other may not', () => {
    const empty = (...path: string[]) => faults(completed(below(path, null)))
    expect(empty('limits')).toEqual([])
    expect(empty('upstream', 'routes')).toEqual([])
    expect(empty('upstream', 'headers')).toEqual([])
    expect(empty('upstream')).not.toEqual([])
    expect(empty('password')).not.toEqual([])
    expect(empty('realm')).not.toEqual([])
  })
})
