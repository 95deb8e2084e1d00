import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { makeCertificate, temporaryDirectory } from '../support/certificate.ts'
import { prepareSite, type Serving, type Site } from './serve.ts'

const OPEN = 'insecure: another user can replace it, or what is in it'

const logged = (sidecar: Serving) => sidecar.logged(OPEN).map(({ key, file, reason }) => [key, file, reason])

/** The same warnings of `postern check`. */
async function checked(site: Site) {
  const { stdout } = await site.postern('check')
  return [
    ...stdout.matchAll(/^WARNING (\S+): (\S+): (.*)\n {8}another user can replace it, or what is in it; /gm),
  ].map(([, ...found]) => found)
}

it('H224 the start and `check` warn of a state folder that another user can write', async () => {
  const site = await prepareSite()
  mkdirSync(site.stateDir)
  chmodSync(site.stateDir, 0o777)
  const sidecar = await site.serveHere()
  const expected = [['state_dir', site.stateDir, `other users can write ${site.stateDir}`]]
  expect(logged(sidecar)).toEqual(expected)
  expect(sidecar.logged(OPEN)[0]).toMatchObject({ level: 40, remedy: `chmod go-w ${site.stateDir}` })
  expect(await checked(site)).toEqual(expected)
  chmodSync(site.stateDir, 0o1777)
  expect(await checked(site)).toEqual(expected)
  chmodSync(site.stateDir, 0o755)
  expect(await checked(site)).toEqual([])
})

it('H224 also of one that does not exist yet, in a folder that another user can write', async () => {
  const site = await prepareSite()
  const open = temporaryDirectory()
  chmodSync(open, 0o777)
  const file = join(open, 'a', 'state')
  site.configure({ state_dir: file })
  expect(await checked(site)).toEqual([['state_dir', file, `other users can write ${open}`]])
})

it.skipIf(process.getuid?.() !== 0)('H224 also of one that belongs to another user', async () => {
  const site = await prepareSite()
  mkdirSync(site.stateDir, { mode: 0o700 })
  chownSync(site.stateDir, 4711, 4711)
  const reason = `${site.stateDir} belongs to user 4711`
  expect(await checked(site)).toEqual([['state_dir', site.stateDir, reason]])
  const { stdout } = await site.postern('check')
  expect(stdout).toContain(`run Postern as user 4711, or chown 0 ${site.stateDir}\n`)
  expect(logged(await site.serveHere())).toEqual([['state_dir', site.stateDir, reason]])
})

it('H224 also of the configuration, an authority, and the folders of secrets and of a socket of the device', async () => {
  const { certFile } = await makeCertificate()
  const folders = { secrets: temporaryDirectory(), sockets: temporaryDirectory() }
  const [secret, socket] = [join(folders.secrets, 'key'), join(folders.sockets, 'device.sock')]
  writeFileSync(secret, 'secret\n', { mode: 0o600 })
  const site = await prepareSite()
  site.configure({
    upstream: {
      headers: { 'X-Key': { file: secret } },
      routes: {
        '/a/': { url: 'https://127.0.0.1:1', tls: { ca: certFile } },
        '/b/': { url: `http+unix:${socket}` },
      },
    },
  })
  expect(await checked(site)).toEqual([])
  for (const path of [site.configFile, certFile]) chmodSync(path, 0o666)
  for (const folder of Object.values(folders)) chmodSync(folder, 0o777)
  const writable = (key: string, file: string, path = file) => [key, file, `other users can write ${path}`]
  const expected = [
    writable('upstream.headers.X-Key.file', secret, folders.secrets),
    writable('upstream.routes./a/.tls.ca', certFile),
    writable('upstream.routes./b/.url', socket, folders.sockets),
    writable('configuration', site.configFile),
  ]
  expect(await checked(site)).toEqual(expect.arrayContaining(expected))
  expect(logged(await site.serveHere())).toEqual(expect.arrayContaining(expected))
})
