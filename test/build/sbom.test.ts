import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { describe, expect, it } from 'vitest'
import { makeSbom } from '../../deploy/build/sbom.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { shellBlock } from '../support/pages.ts'
import { VENDOR } from '../support/release-key.ts'
import { type Advisory, scan } from '../support/trivy.ts'

const schemaOf = (name: string): { $schema: string; $id: string } =>
  JSON.parse(readFileSync(join(import.meta.dirname, 'cyclonedx', `${name}.schema.json`), 'utf8'))

/** CycloneDX's own schema, with the formats that it names. */
function createValidator() {
  const ajv = new Ajv({ strict: false, allErrors: true, unicodeRegExp: false })
  ajv.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/)
  ajv.addFormat('idn-email', /^[^\s@]+@[^\s@]+$/)
  ajv.addFormat('uri', (text: string) => URL.canParse(text))
  ajv.addFormat('email', /^[^\s@]+@[^\s@]+$/)
  ajv.addFormat('iri-reference', (text: string) => URL.canParse(text, 'https://example.com'))
  // The library refers to the others by the names of its own files.
  for (const name of ['spdx', 'jsf-0.82']) {
    ajv.addSchema({ ...schemaOf(name), $id: `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json` })
  }
  return ajv.compile(schemaOf('bom-1.5'))
}

it.each([
  ['with a vendor', VENDOR],
  ['whose vendor has a page for reports', { ...VENDOR, security_contact: 'https://example.com/security' }],
  ['without a vendor', undefined],
])("H337 CycloneDX's own schema accepts the bill of materials %s", async (_, vendor) => {
  const validate = createValidator()
  const bom = JSON.parse(await makeSbom({ time: 1_700_000_000, vendor }))
  validate(bom)
  expect(validate.errors ?? []).toEqual([])
  expect(validate({ ...bom, metadata: { ...bom.metadata, timestamp: 'yesterday' } })).toBe(false)
  expect(validate({ ...bom, components: [{ name: 'without a type' }] })).toBe(false)
})

describe('H349 a scanner that gets the bill of materials', () => {
  /** By the command of the page. */
  const found = async (advisories: readonly Advisory[]): Promise<readonly string[]> => {
    const folder = temporaryDirectory()
    const text = await makeSbom({ time: 1_700_000_000, vendor: VENDOR })
    writeFileSync(join(folder, 'postern.cdx.json'), text)
    return scan(shellBlock('docs/installing.md', 'trivy sbom'), folder, advisories)
  }
  const about = (name: string, fixed: string): Advisory => ({ ecosystem: 'npm', name, fixed })

  it('finds an advisory about a package that ships, and about a library in Node.js', async () => {
    const advisories = ['zod', 'undici', 'acorn'].map((name) => about(name, '99.0.0'))
    expect(await found(advisories)).toEqual(['acorn', 'undici', 'zod'])
  }, 600_000)

  it('finds nothing in an advisory about an older version, or about a package that is for development', async () => {
    const { undici = '' } = process.versions
    const advisories = [about('undici', undici), about('vitest', '99.0.0'), about('typescript', '99.0.0')]
    expect(await found(advisories)).toEqual([])
  }, 600_000)
})

it('the same commit and vendor give the same bill of materials, another vendor another serial number', async () => {
  const [first, again, other] = await Promise.all(
    [VENDOR, VENDOR, undefined].map((vendor) => makeSbom({ time: 1, vendor })),
  )
  expect(again).toBe(first)
  expect(JSON.parse(other ?? '').serialNumber).not.toBe(JSON.parse(first ?? '').serialNumber)
})
