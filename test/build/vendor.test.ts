import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeDebianPackage } from '../../deploy/build/debian.ts'
import { makeSbom } from '../../deploy/build/sbom.ts'
import { readVendor, type Vendor, vendorText } from '../../deploy/build/vendor.ts'
import { VERSION } from '../../src/version.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { blocksOf } from '../support/pages.ts'
import { needs, run } from '../support/tools.ts'
import { VENDOR } from './release-key.ts'

function written(text: string): string {
  const file = join(temporaryDirectory(), 'vendor.yaml')
  writeFileSync(file, text)
  return file
}

describe('the file of a vendor', () => {
  it('is the YAML of docs/releasing.md, or JSON', async () => {
    const [example = ''] = blocksOf('docs/releasing.md', 'yaml')
    expect(await readVendor(written(example))).toEqual(VENDOR)
    expect(await readVendor(written(JSON.stringify(VENDOR)))).toEqual(VENDOR)
  })

  it.each<[string, string, string]>([
    ['an empty file', '', 'write name, maintainer, security_contact, support_period and download'],
    ['a file that is no YAML', '{', 'is neither YAML nor JSON'],
    ['an unknown key', JSON.stringify({ ...VENDOR, mail: 'x' }), 'unknown key: mail'],
    ['a missing key', JSON.stringify({ ...VENDOR, download: undefined }), 'download: write it as a text'],
    ['no address', JSON.stringify({ ...VENDOR, maintainer: 'Ann' }), 'maintainer: write it as in a mail'],
    ['a second line', JSON.stringify({ ...VENDOR, name: 'A\nDepends: evil' }), 'name: it must be one line'],
    [
      'http',
      JSON.stringify({ ...VENDOR, download: 'http://example.com' }),
      'download: write an https: address',
    ],
    [
      'a bare word',
      JSON.stringify({ ...VENDOR, security_contact: 'us' }),
      'security_contact: write an https:',
    ],
  ])('%s: the error names the file and what is wrong', async (_, text, message) => {
    const file = written(text)
    const error = await readVendor(file).then(String, (reason: Error) => reason.message)
    expect(error).toContain(file)
    expect(error).toContain(message)
  })
})

/** The control file of a package with this vendor. */
async function control(vendor?: Vendor): Promise<string> {
  needs('dpkg-deb')
  const parts = {
    executable: process.execPath,
    processor: 'x64',
    version: '1.0.0',
    licences: '',
    time: 1,
  } as const
  const file = await makeDebianPackage({
    ...parts,
    folder: temporaryDirectory(),
    compression: 'gzip',
    vendor,
  })
  return (await run('dpkg-deb', ['--field', file])).stdout
}

describe('H334 who answers for a release', () => {
  it('stands in VENDOR, in the bill of materials and in the Debian package', async () => {
    for (const value of Object.values(VENDOR)) expect(vendorText(VENDOR)).toContain(value)
    const fields = await control(VENDOR)
    expect(fields).toContain(`Maintainer: ${VENDOR.maintainer}\n`)
    expect(fields).toContain(`Homepage: ${VENDOR.download}\n`)
    expect(fields).toContain(`Made by ${VENDOR.name}. Security contact: ${VENDOR.security_contact}\n`)
    expect(fields).toContain(`Support: ${VENDOR.support_period}\n`)
    expect(JSON.parse(await makeSbom({ time: 1_700_000_000, vendor: VENDOR })).metadata).toMatchObject({
      timestamp: '2023-11-14T22:13:20.000Z',
      authors: [{ name: 'Ann Example', email: 'vendor@example.com' }],
      supplier: { name: VENDOR.name, url: [VENDOR.download], contact: [{ email: VENDOR.security_contact }] },
    })
  })

  it('is nobody without a file: the release says who made it, and how to name a contact', async () => {
    expect(vendorText(undefined)).toContain('built from a checkout by whoever ran it')
    expect(vendorText(undefined)).toContain('npm run release -- --vendor FILE')
    const bom = await makeSbom({ time: 1_700_000_000 })
    for (const text of [await control(), bom, vendorText(undefined)]) {
      expect(text).toMatch(/built from a checkout by whoever ran it/i)
      expect(text).not.toMatch(/\.invalid|this repository|@[A-Z]+@/)
    }
  })
})

it('H337 the bill of materials names Node.js and what is in it as scanners do', async () => {
  const { components, dependencies } = JSON.parse(await makeSbom({ time: 1 }))
  const node = components.find(({ name }: { name: string }) => name === 'node')
  expect(node.cpe).toBe(`cpe:2.3:a:nodejs:node.js:${process.versions.node}:*:*:*:*:*:*:*`)
  expect(node.supplier.name).toContain('not the Node.js project')
  const inNode = ({ 'bom-ref': ref }: { 'bom-ref': string }) => ref.startsWith(`${node['bom-ref']}/`)
  const libraries = components.filter(inNode)
  for (const { purl, version } of libraries) expect(purl, version).toMatch(/^pkg:\w+(\/[\w.-]+)+@[\w.]+$/)
  const named = libraries.filter(({ cpe }: { cpe?: string }) => cpe !== undefined)
  for (const { cpe } of named) expect(cpe).toMatch(/^cpe:2\.3:a:[\w.-]+:[\w.-]+:\d[\w.]*(:\*){7}$/)
  const names = named.map(({ name }: { name: string }) => name)
  expect(names).toEqual(expect.arrayContaining(['icu', 'nghttp2', 'openssl', 'sqlite', 'v8', 'zlib']))
  const on = (ref: string) => dependencies.find((each: { ref: string }) => each.ref === ref).dependsOn
  expect(on(`postern@${VERSION}`)).toContain(node['bom-ref'])
  expect(on(node['bom-ref'])).toEqual(libraries.map(({ 'bom-ref': ref }: { 'bom-ref': string }) => ref))
})
