import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { prepareSite } from '../process/serve.ts'
import { readPage, replaceIn, shellBlock } from '../support/pages.ts'
import { PASSWORD } from '../support/sidecar.ts'

/** The names in backticks of the first column of the table below a heading. */
function namesBelow(heading: string): readonly string[] {
  const [, below = ''] = readPage('docs/data.md').split(`\n## ${heading}\n`)
  const [section = ''] = below.split('\n## ')
  return section
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .flatMap((line) => line.split('|')[1]?.match(/`[^`]+`/g) ?? [])
    .map((name) => name.slice(1, -1))
}

it('docs/data.md names every file in the state folder, and every field of an access line', async () => {
  const site = await prepareSite({
    config: {
      listen: { tls: 'auto' },
      passwords: [{ name: 'admin', file: 'password' }],
      password: undefined,
    },
  })
  site.configure({ passwords: [{ name: 'admin', file: site.passwordFile }] })
  const sidecar = await site.serveHere()
  const { access_token: token } = await sidecar.grant()
  await sidecar.request({ token, path: '/status?action=on' })
  await sidecar.request({ path: '/status' })
  await sidecar.login('wrong')
  await expect.poll(() => sidecar.logged('request').length).toBe(4)

  const named = namesBelow('On disk').map((name) => name.replace(/^-/, 'tokens.db-'))
  const files = readdirSync(site.stateDir, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name))
  const names = files.map((file) => file.slice(site.stateDir.length + 1))
  expect(names).toContain('tokens.db')
  expect(names).toContain('tls/key.pem')
  expect(names.filter((name) => !named.includes(name))).toEqual([])
  for (const file of files) expect(statSync(file).mode & 0o077, file).toBe(0)

  const fields = new Set(sidecar.logged('request').flatMap((line) => Object.keys(line)))
  expect([...fields]).not.toContain('query')
  expect([...fields]).toContain('refusal')
  expect([...fields].filter((field) => !namesBelow('In the log').includes(field))).toEqual([])

  // Commands do not stop the writer of these files, so each is read as it stands.
  const stored = files.filter((file) => statSync(file).isFile()).map((file) => readFileSync(file, 'latin1'))
  expect(stored.filter((text) => text.includes(token) || text.includes(PASSWORD))).toEqual([])

  // The commands of "Erasing one person's traces": the first in this sidecar, the second is a restart.
  const [revoke = '', restart = ''] = replaceIn(
    shellBlock('docs/data.md', 'revoke --client'),
    '192.0.2.7',
    '127.0.0.1',
  ).split('\n')
  const [program = '', command = '', ...args] = revoke.replace(/ *#.*/, '').split(' ')
  expect([program, restart.replace(/ *#.*/, '')]).toEqual(['postern', 'systemctl restart postern'])
  expect((await site.postern(command, ...args)).code).toBe(0)
  await sidecar.stop()
  const after = await site.serveHere()
  expect(await after.use(token)).toBe(401)
  expect((await site.postern('explain')).stdout).not.toContain('/status')
})
