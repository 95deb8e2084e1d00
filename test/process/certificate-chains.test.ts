import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { pinOf } from '../../src/device/target.ts'
import { type Device, startDevice } from '../support/device.ts'
import { opensslCertificate } from '../support/openssl-server.ts'
import { unusedPort } from '../support/raw.ts'
import { startRedis } from '../support/redis.ts'
import { isInstalled, needs } from '../support/tools.ts'
import { runInProcess } from './in-process.ts'
import { type Chain, chainOf } from './odd-chains.ts'
import { prepareSite, runPostern, type Serving, type Site } from './serve.ts'

/**
 * Node 24.21 and 26.10 crash when they describe a certificate on one of these curves: NIST has no name for them. The first runs in processes of
 * their own, because each command has to keep Node from that; the others end this one where they crash.
 */
const CHAINS: readonly (readonly [
  string,
  curve: string,
  behind: string | undefined,
  where: 'alone' | 'here',
])[] = [
  ['of an authority on brainpoolP256r1', 'brainpoolP256r1', undefined, 'alone'],
  ['of an authority on secp256k1', 'secp256k1', undefined, 'here'],
  ['of an authority on prime239v1', 'prime239v1', undefined, 'here'],
  ['of a usual authority, and behind it a forged one on brainpoolP256r1', 'P-256', 'brainpoolP256r1', 'here'],
]

describe.each(CHAINS)(
  'C20 no certificate of a server ends the process: one %s',
  (_name, curve, behind, where) => {
    const serve = (site: Pick<Site, 'serve' | 'serveHere'>): Promise<Serving> =>
      where === 'alone' ? site.serve() : site.serveHere()
    const postern = where === 'alone' ? runPostern : runInProcess
    let chain: Chain
    let device: Device

    beforeAll(async () => {
      if (!isInstalled('openssl')) return
      chain = chainOf(curve, behind)
      device = await startDevice(undefined, { tls: pairOf(chain) })
    })

    const site = (): Promise<Site> => prepareSite({ device, config: { upstream: { tls: { ca: chain.ca } } } })

    it('of the device, beside serve', async () => {
      needs('openssl')
      const sidecar = await serve(await site())
      const { access_token: token } = await sidecar.grant()
      expect(await sidecar.use(token)).toBe(200)
      expect(await sidecar.stop()).toEqual({ code: 0, signal: null })
    })

    it('of the device, beside check', async () => {
      needs('openssl')
      const { configFile } = await site()
      const { signal, stdout } = await postern(['check', '--config', configFile])
      expect(signal).toBe(null)
      expect(stdout).toMatch(/^ok +device: /m)
    })

    it('of the listeners of a sidecar, beside verify and healthy', async () => {
      needs('openssl')
      const own = { tls: { cert: chain.certFile, key: chain.keyFile } }
      const { configFile, passwordFile, ...site } = await prepareSite({
        transport: 'tls',
        config: { listen: own, admin: { tls: 'on', address: `127.0.0.1:${await unusedPort()}` } },
      })
      const { url } = await serve(site)
      const flags = ['--ca', chain.ca, '--quick', '--only', 'C10,C11']
      const verified = await postern(['verify', url, '--password-file', passwordFile, ...flags])
      expect(verified).toMatchObject({ signal: null, stdout: expect.stringMatching(/^kept +C11/m) })
      expect(await postern(['healthy', '--config', configFile])).toMatchObject({ code: 0, signal: null })
    })

    it('of the shared store', async () => {
      needs('openssl')
      const port = await unusedPort()
      await startRedis({
        settings: [
          `tls-port ${port}`,
          `tls-cert-file ${chain.certFile}`,
          `tls-key-file ${chain.keyFile}`,
          'tls-auth-clients no',
        ],
      })
      const store = { tokens: { store: `valkeys://127.0.0.1:${port}` }, store: { tls: { ca: chain.ca } } }
      const sidecar = await serve(await prepareSite({ config: store }))
      const { access_token: token } = await sidecar.grant()
      expect(await sidecar.use(token)).toBe(200)
      expect(await sidecar.stop()).toEqual({ code: 0, signal: null })
    })
  },
)

describe('C20 a device with a certificate of its own on brainpoolP256r1', () => {
  let pair: ReturnType<typeof opensslCertificate>
  let device: Device

  beforeAll(async () => {
    if (!isInstalled('openssl')) return
    pair = opensslCertificate('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:brainpoolP256r1')
    device = await startDevice(undefined, { tls: pairOf(pair) })
  })

  it('is named by check', async () => {
    needs('openssl')
    const { configFile } = await prepareSite({ device })
    const { stdout } = await runInProcess(['check', '--config', configFile])
    expect(stdout).toMatch(/is self-signed; .*write under upstream: tls: \{pin: sha256/s)
  })

  it.each([
    ['ca', {}],
    ['ca', { groups: ['P-256', 'brainpoolP256r1'], max_version: 'TLSv1.2' }],
    ['pin', { groups: ['P-256', 'brainpoolP256r1'], max_version: 'TLSv1.2' }],
  ])('is spoken to with %s and %o', async (how, keys) => {
    needs('openssl')
    const { raw } = new X509Certificate(readFileSync(pair.certFile))
    const tls = { ...keys, ...(how === 'ca' ? { ca: pair.certFile } : { pin: pinOf(raw) }) }
    const sidecar = await (await prepareSite({ device, config: { upstream: { tls } } })).serveHere()
    const { access_token: token } = await sidecar.grant()
    expect(await sidecar.use(token)).toBe(200)
    expect(await sidecar.stop()).toEqual({ code: 0, signal: null })
  })
})

function pairOf({ certFile, keyFile }: Omit<Chain, 'ca'>): { readonly cert: string; readonly key: string } {
  return { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
}
