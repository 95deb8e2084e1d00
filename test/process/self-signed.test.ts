import { X509Certificate } from 'node:crypto'
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { machineNames } from '../../src/system/machine-names.ts'
import { connectAs, namesOf } from '../listen/trusting-client.ts'
import { type Certificate, makeCertificate } from '../support/certificate.ts'
import { needs, run, underFileModes } from '../support/tools.ts'
import { prepareSite, type Serving, type Site } from './serve.ts'

const DAY = 86_400_000
const REMADE = 'self-signed certificate: made anew, with the same key'

async function siteWith(tls: unknown, found?: Pick<Certificate, 'cert' | 'key'>): Promise<Site> {
  const site = await prepareSite({ transport: 'tls' })
  // `configure` merges mappings, and the site has a pair.
  site.configure({ listen: { tls: 'auto' } })
  site.configure({ listen: { tls } })
  const folder = join(site.stateDir, 'tls')
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of Object.entries(found ?? {})) {
    if (name === 'cert' || name === 'key') writeFileSync(join(folder, `${name}.pem`), text)
  }
  return site
}

const stored = (site: Site, name = 'cert'): string =>
  readFileSync(join(site.stateDir, 'tls', `${name}.pem`), 'utf8')

/** The certificates of the stored file, the server's first. */
function chainIn(site: Site): readonly X509Certificate[] {
  const blocks = stored(site).match(/-----BEGIN[^-]*-----[^-]*-----END[^-]*-----/g) ?? []
  return blocks.map((block) => new X509Certificate(block))
}

const portOf = ({ url }: Serving): string => new URL(url).port

describe.concurrent('H110 A client that trusts `tls/cert.pem` connects', () => {
  it('by each name and address that the machine has', async () => {
    needs('curl')
    const { names, addresses } = machineNames()
    const site = await siteWith('auto')
    site.configure({ listen: { address: '[::]:0' } })
    const sidecar = await site.serveHere()
    const ca = join(site.stateDir, 'tls', 'cert.pem')
    for (const name of ['localhost', '127.0.0.1', '::1', ...names, ...addresses]) {
      const host = name.includes(':') ? `[${name}]` : name
      const isName = !name.includes(':') && !/^[\d.]+$/.test(name)
      const resolve = isName ? ['--resolve', `${name}:${portOf(sidecar)}:127.0.0.1`] : []
      const args = ['-sS', '--cacert', ca, '-w', '%{http_code}', '-o', '/dev/null', ...resolve]
      const { stdout, stderr } = await run('curl', [...args, `https://${host}:${portOf(sidecar)}/`])
      expect([name, stdout, stderr]).toEqual([name, '401', ''])
    }
  })

  it('by the names of listen.tls.names and loopback only, as strict clients check them', async () => {
    needs('openssl')
    const site = await siteWith({ names: ['Device.example', '*.lab.example', '192.0.2.7', '2001:db8::7'] })
    const sidecar = await site.serveHere()
    const ca = join(site.stateDir, 'tls', 'cert.pem')
    const checked = async (how: string, name: string): Promise<boolean> => {
      const at = ['-connect', `127.0.0.1:${portOf(sidecar)}`, '-CAfile', ca]
      const strict = ['-x509_strict', '-verify_return_error', how, name]
      return (await run('openssl', ['s_client', ...at, ...strict], { input: 'Q\n' })).code === 0
    }
    for (const name of ['device.example', 'a.lab.example', 'localhost']) {
      expect([name, await checked('-verify_hostname', name)]).toEqual([name, true])
    }
    for (const name of ['192.0.2.7', '2001:db8::7', '127.0.0.1', '::1']) {
      expect([name, await checked('-verify_ip', name)]).toEqual([name, true])
    }
    const [host = ''] = machineNames().names
    expect(await checked('-verify_hostname', host)).toBe(false)
    await connectAs('device.example', sidecar.url, stored(site))
    await expect(connectAs(host, sidecar.url, stored(site))).rejects.toThrow('altnames')
  })
})

it('H111 a reload with other names makes the certificate anew: clients that trust the file go on, open connections live', async () => {
  const site = await siteWith({ names: ['one.example', 'two.example'] })
  const sidecar = await site.serveHere()
  const [trusted, key] = [stored(site), stored(site, 'key')]
  const token = await sidecar.grant()
  const before = await sidecar.connect()
  site.configure({ listen: { tls: { names: ['two.example', 'three.example'] } } })
  const logged = await sidecar.waitForLog(REMADE)
  expect(logged).toMatchObject({ added: ['three.example'], removed: ['one.example'], renewed: false })
  const reloaded = await sidecar.waitForLog('configuration reloaded')
  expect(reloaded).toMatchObject({ changed: ['listen.tls.names'] })

  const after = await connectAs('three.example', sidecar.url, trusted)
  expect(namesOf(after)).not.toContain('one.example')
  await connectAs('two.example', sidecar.url, stored(site))
  await expect(connectAs('one.example', sidecar.url, trusted)).rejects.toThrow('altnames')
  const fields = ['Authorization', `Bearer ${token.access_token}`]
  expect((await before.send({ fields })).status).toBe(200)
  expect(stored(site, 'key')).toBe(key)
  expect(readdirSync(join(site.stateDir, 'tls')).sort()).toEqual(['cert.pem', 'key.pem'])

  await sidecar.stop()
  const again = await site.serveHere()
  await connectAs('three.example', again.url, trusted)
  expect(again.logged(REMADE)).toEqual([])
})

describe.concurrent('H113 The self-signed pair of an earlier start', () => {
  it('gets the names that it lacks, and clients that trust it go on', async () => {
    const old = await makeCertificate('box')
    const site = await siteWith({ names: ['device.example'] }, old)
    const sidecar = await site.serveHere()
    const { added } = await sidecar.waitForLog(REMADE)
    expect(added).toEqual(['::1', 'device.example'])
    await connectAs('device.example', sidecar.url, old.cert)
    expect([stored(site, 'key'), chainIn(site).at(-1)?.fingerprint256]).toEqual([
      old.key,
      new X509Certificate(old.cert).fingerprint256,
    ])
  })

  it('is renewed in its last 30 days, with its key', async () => {
    const old = await makeCertificate('box', {
      notBefore: new Date(Date.now() - 81 * DAY),
      notAfter: new Date(Date.now() + 9 * DAY),
    })
    const site = await siteWith({ names: ['localhost', '127.0.0.1'] }, old)
    const sidecar = await site.serveHere()
    expect(await sidecar.waitForLog(REMADE)).toMatchObject({ renewed: true })
    expect(sidecar.logged('the certificate expires soon')).toEqual([])
    const expiry = await sidecar.metric('postern_certificate_expiry_timestamp_seconds')
    expect(expiry * 1000).toBeGreaterThan(Date.now() + 3600 * DAY)
    await connectAs('localhost', sidecar.url, old.cert)
    await connectAs('localhost', sidecar.url, stored(site))
    for (const certificate of chainIn(site)) {
      expect(certificate.publicKey.equals(new X509Certificate(old.cert).publicKey)).toBe(true)
      expect(certificate.validToDate.getTime()).toBe(expiry * 1000)
    }
  })

  it('stays as it is if Postern did not make it', async () => {
    const rsa = await makeCertificate('rsa', { keyType: 'rsa' })
    const site = await siteWith('auto', rsa)
    const sidecar = await site.serveHere()
    await connectAs('localhost', sidecar.url, rsa.cert)
    expect([stored(site), stored(site, 'key')]).toEqual([rsa.cert, rsa.key])
    await sidecar.waitForLog('self-signed certificate: not made by Postern, so it stays as it is')
  })
})

it('H114 a state folder that cannot be written: the certificate with the new names is served from memory', async () => {
  const old = await makeCertificate('box')
  const site = await siteWith({ names: ['device.example'] }, old)
  chmodSync(join(site.stateDir, 'tls'), 0o500)
  const sidecar = await site.serve({ under: underFileModes() })
  const { reason } = await sidecar.waitForLog(
    'self-signed certificate: could not be stored; it is served from memory',
  )
  expect(reason).toContain('EACCES')
  await connectAs('device.example', sidecar.url, old.cert)
  expect(stored(site)).toBe(old.cert)
  expect(sidecar.logged(REMADE)).toHaveLength(1)
})
