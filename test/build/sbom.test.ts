import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Version } from '@cyclonedx/cyclonedx-library/Spec'
import { JsonStrictValidator } from '@cyclonedx/cyclonedx-library/Validation'
import { describe, expect, it } from 'vitest'
import { makeSbom } from '../../deploy/build/sbom.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { shellBlock } from '../support/pages.ts'
import { VENDOR } from './release-key.ts'
import { type Advisory, scan } from './trivy.ts'

/** The validator of CycloneDX, with the schema that the list names. */
const validator = new JsonStrictValidator(Version.v1dot5)

it.each([
  ['with a vendor', VENDOR],
  ['whose vendor has a page for reports', { ...VENDOR, security_contact: 'https://example.com/security' }],
  ['without a vendor', undefined],
])("H337 CycloneDX's own schema accepts the bill of materials %s", async (_, vendor) => {
  const text = await makeSbom({ time: 1_700_000_000, vendor })
  expect(await validator.validate(text)).toBeNull()
  const bom = JSON.parse(text)
  expect(bom.specVersion).toBe(validator.version)
  const wrong = [
    { ...bom, metadata: { ...bom.metadata, timestamp: 'yesterday' } },
    { ...bom, components: [{ name: 'without a type' }] },
  ]
  for (const each of wrong) expect(await validator.validate(JSON.stringify(each))).not.toBeNull()
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
