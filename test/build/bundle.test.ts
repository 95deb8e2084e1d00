import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { makeBundle } from '../../deploy/build/bundle.ts'
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

/** Runs the main script of the executable, with the files of the bundle as its assets. It writes the names of those that it reads to `log`. */
async function runLoader(log: string, ...args: string[]) {
  const program = join(temporaryDirectory(), 'executable.cjs')
  const loader = join(import.meta.dirname, '../../deploy/build/load-assets.cjs')
  writeFileSync(
    program,
    `const { appendFileSync, readFileSync } = require('node:fs')
     function getAsset(name, encoding) {
       appendFileSync(${JSON.stringify(log)}, name + '\\n')
       return readFileSync(${JSON.stringify(`${installedBundle()}/dist/`)} + name, encoding)
     }
     function requireBuiltin(id) {
       if (!id.startsWith('node:') && !require('node:module').isBuiltin(id)) throw new Error('no asset: ' + id)
       return id === 'node:sea' ? { getAsset, isSea: () => true } : require(id)
     }
     new Function('require', '__filename', readFileSync(${JSON.stringify(loader)}, 'utf8'))(requireBuiltin, __filename)`,
  )
  return run(process.execPath, [program, ...args], { input: 'correct horse battery staple' })
}

it('the executable compiles what a command needs, and nothing else', async () => {
  const [version, hash] = [join(temporaryDirectory(), 'log'), join(temporaryDirectory(), 'log')]
  expect(await runLoader(version, '--version')).toMatchObject({ code: 0, stdout: `${VERSION}\n`, stderr: '' })
  expect(readFileSync(version, 'utf8')).toBe('main.cjs\n')
  expect(await runLoader(hash, 'hash-password')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^\$argon2id\$/),
  })
  const files = readFileSync(hash, 'utf8').trim().split('\n')
  expect(files).toEqual([...new Set(files)])
  expect(files).toContain('hash-password.cjs')
  expect(files).not.toContain('serve.cjs')
})

it('what is there for development is not in the bundle', () => {
  const licences = readFileSync(join(installedBundle(), 'dist', 'LICENSES.txt'), 'utf8')
  expect(licences).toContain('debug 4.')
  expect(licences).not.toContain('supports-color')
})
