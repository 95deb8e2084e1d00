import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { MAIN, makeBundle, makeScript } from '../../deploy/build/bundle.ts'
import { VERSION } from '../../src/version.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { run } from '../support/tools.ts'
import { installedBundle } from './shipped.ts'

it('the same source gives the same files in another folder', async () => {
  const [first, second] = [join(installedBundle(), 'dist'), join(temporaryDirectory(), 'another')]
  await makeBundle(second)
  expect(readdirSync(second)).toEqual(readdirSync(first))
  for (const name of readdirSync(second)) {
    expect([name, readFileSync(join(second, name)).equals(readFileSync(join(first, name)))]).toEqual([
      name,
      true,
    ])
  }
})

it('the script of the executable has the same bytes each time, and needs no other file', async () => {
  const [first, second] = [temporaryDirectory(), temporaryDirectory()]
  await makeScript(first)
  await makeScript(second)
  expect(readdirSync(first)).toEqual([MAIN])
  expect(readFileSync(join(second, MAIN)).equals(readFileSync(join(first, MAIN)))).toBe(true)
  const { code, stdout, stderr } = await run(process.execPath, [join(first, MAIN), '--version'])
  expect([code, stdout, stderr]).toEqual([0, `${VERSION}\n`, ''])
})

it('what is there for development is not in the bundle', () => {
  const licences = readFileSync(join(installedBundle(), 'dist', 'LICENSES.txt'), 'utf8')
  expect(licences).toContain('debug 4.')
  expect(licences).not.toContain('supports-color')
})
