import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { JSON as Json } from '@cyclonedx/cyclonedx-library/Serialize'
import { runtimeComponents } from './runtime-components.ts'
import { NOBODY, type Vendor } from './vendor.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

type Component = Json.Types.Normalized.Component
type Dependency = Json.Types.Normalized.Dependency
type Metadata = Json.Types.Normalized.Metadata

/** What npm writes of a bill of materials. */
interface Bom {
  serialNumber: string
  metadata: Metadata & { component: Component }
  components: Component[]
  dependencies: (Dependency & { dependsOn: string[] })[]
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

/** Adds Node.js, on which Postern depends, and the libraries in it, on which Node.js depends. */
function addRuntime({ metadata, components, dependencies }: Bom): void {
  const { node, libraries } = runtimeComponents()
  const ref = node['bom-ref']
  // Trivy does not read the components within a component, so the libraries stand beside Node.js.
  components.push(node, ...libraries)
  dependencies.find((each) => each.ref === metadata.component['bom-ref'])?.dependsOn.push(ref)
  dependencies.push({ ref, dependsOn: libraries.map((library) => library['bom-ref']) })
}
