import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { hasLibrary, isInstalled, needs, needsLibrary, run } from '../support/tools.ts'
import type { Transport } from '../support/transports.ts'
import { folderToServe, webdavServers } from './webdav-servers.ts'

const LOCK = `<?xml version="1.0"?>
<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>`

const sites: readonly (readonly [host: string, transport: Transport])[] = [
  ['preserve', 'tls'],
  ['target', 'tls'],
  ['target', 'h2'],
  ['preserve', 'http1'],
]

const STEPS = [
  ['COPY', 'a.txt', 'b.txt'],
  ['MOVE', 'b.txt', 'c%20d.txt'],
] as const

describe.each(webdavServers)('WebDAV of $name', (server) => {
  const root = folderToServe()
  let url: string | undefined

  beforeAll(async () => {
    if (isInstalled(server.program) && hasLibrary(server.probe)) url = await server.start(root)
  })

  async function started(
    host: string,
    transport: Transport,
  ): Promise<{ sidecar: TestSidecar; token: string }> {
    needs(server.program)
    needsLibrary(server.debian, server.probe)
    const device = { url: url ?? expect.fail('it did not start') }
    const sidecar = await startSidecar({ transport, device, config: { upstream: { host } } })
    writeFileSync(join(root, 'a.txt'), 'written')
    return { sidecar, token: await sidecar.token() }
  }

  it.each(sites)('C22 a file is copied and moved, with host: %s over %s', async (host, transport) => {
    const { sidecar, token } = await started(host, transport)
    for (const [method, from, to] of STEPS) {
      const fields = ['Destination', `${sidecar.url}/${to}`, 'Overwrite', 'T']
      const response = await sidecar.request({ method, path: `/${from}`, token, fields })
      expect(response.status, `${method} ${response.text}`).toBeOneOf([201, 204])
      const location = response.header('location') ?? `${sidecar.url}/${to}`
      expect(location, 'the new file, as the client names it').toBe(`${sidecar.url}/${to}`)
    }
    expect(readFileSync(join(root, 'c d.txt'), 'utf8')).toBe('written')
    expect(existsSync(join(root, 'b.txt'))).toBe(false)
    // It is the device that refuses the address of another server.
    const fields = ['Destination', 'ftp://elsewhere.example/x']
    expect((await sidecar.request({ method: 'COPY', path: '/a.txt', token, fields })).status).toBeGreaterThan(
      399,
    )
  })

  if (!server.whole) return

  it.each(sites)('C22 the holder of a lock writes, with host: %s over %s', async (host, transport) => {
    const { sidecar, token } = await started(host, transport)
    const path = '/a.txt'
    const locked = await sidecar.request({
      ...{ method: 'LOCK', path, token, body: LOCK },
      fields: ['Content-Type', 'application/xml', 'Timeout', 'Second-60'],
    })
    expect(locked.status, locked.text).toBe(200)
    const lock = locked.header('lock-token') ?? ''
    const put = async (...fields: readonly string[]): Promise<number> =>
      (await sidecar.request({ method: 'PUT', path, token, body: 'changed', fields })).status
    expect(await put()).toBe(423)
    expect(await put('If', `<${sidecar.url}${path}> (${lock})`)).toBe(204)
    const fields = ['Lock-Token', lock]
    expect((await sidecar.request({ method: 'UNLOCK', path, token, fields })).status).toBe(204)
  })

  it.each(['preserve', 'target'])('C22 rclone renames a file, with host: %s', async (host) => {
    needs('rclone')
    const { sidecar, token } = await started(host, 'tls')
    const env = {
      ...{ PATH: process.env.PATH, HOME: temporaryDirectory(), RCLONE_CONFIG_DAV_TYPE: 'webdav' },
      ...{ RCLONE_CONFIG_DAV_URL: sidecar.url, RCLONE_CONFIG_DAV_BEARER_TOKEN: token },
    }
    const options = ['--no-check-certificate', '--retries', '1', '--low-level-retries', '1']
    const { code, stderr } = await run('rclone', ['moveto', 'dav:a.txt', 'dav:e.txt', ...options], { env })
    expect([code, stderr]).toEqual([0, expect.any(String)])
    expect(readFileSync(join(root, 'e.txt'), 'utf8')).toBe('written')
    expect(existsSync(join(root, 'a.txt'))).toBe(false)
  })
})

it('.ci/run installs each of them, and rclone', () => {
  const text = readFileSync(join(import.meta.dirname, '../../.ci/run'), 'utf8')
  const needed = [...webdavServers.map(({ debian }) => debian), 'rclone']
  expect(needed.filter((name) => !text.includes(name))).toEqual([])
})
