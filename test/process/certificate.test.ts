import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Certificate, makeCertificate } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { prepareSite, type Site } from './serve.ts'

let ec: Certificate
let other: Certificate
let rsa: Certificate

beforeAll(async () => {
  ;[ec, other, rsa] = await Promise.all([
    makeCertificate('ec'),
    makeCertificate('other'),
    makeCertificate('rsa', { keyType: 'rsa' }),
  ])
})

const half = (pem: string): string => pem.slice(0, pem.length / 2)

/** The line of `postern check` about the certificate, and whether the exit code is 0. */
async function check(site: Site): Promise<{ readonly line: string; readonly passed: boolean }> {
  const { code, stdout } = await site.postern('check')
  return { line: /^(?:ok|FAILED|WARNING) +certificate: .*$/m.exec(stdout)?.[0] ?? stdout, passed: code === 0 }
}

describe('H76 A configured pair', () => {
  const BROKEN: readonly (readonly [string, () => readonly [cert: string, key: string], says: RegExp])[] = [
    ['an empty key', () => [ec.cert, ''], /key\.pem is empty/],
    ['half a certificate', () => [half(ec.cert), ec.key], /cert\.pem is incomplete/],
    ['a key of another kind', () => [ec.cert, rsa.key], /the key is RSA, the certificate is for EC/],
  ]

  it.each(BROKEN)(
    'with %s makes `serve` exit with 2, and `check` prints the same reason',
    async (_what, files, says) => {
      const site = await prepareSite()
      const [cert, key] = [join(site.directory, 'cert.pem'), join(site.directory, 'key.pem')]
      const [certText, keyText] = files()
      writeFileSync(cert, certText)
      writeFileSync(key, keyText)
      site.configure({ listen: { tls: { cert, key } } })
      const refused = await site.postern('serve')
      expect([refused.code, refused.stdout]).toEqual([2, ''])
      const [, reason] = /^postern serve: (.*); correct the files, or .*\n$/.exec(refused.stderr) ?? []
      expect(reason).toMatch(says)
      expect(await check(site)).toEqual({ line: `FAILED  certificate: ${reason}`, passed: false })
    },
  )
})

const DAY = 86_400_000

it('check, start and reload warn of a certificate that expires soon or has expired, until it is replaced', async () => {
  const soon = await makeCertificate('soon', {
    notBefore: new Date(Date.now() - 81 * DAY),
    notAfter: new Date(Date.now() + 9 * DAY),
  })
  const past = { notBefore: new Date(Date.now() - 9 * DAY), notAfter: new Date(Date.now() - DAY) }
  const over = await makeCertificate('over', past)
  const site = await prepareSite({ transport: 'tls' })
  const serve = ({ certFile: cert, keyFile: key }: Certificate): void =>
    site.configure({ listen: { tls: { cert, key } } })
  serve(soon)
  const sidecar = await site.serveHere()
  const expiry = (): Promise<number> => sidecar.metric('postern_certificate_expiry_timestamp_seconds')
  const reasonOf = async (msg: string): Promise<unknown> => (await sidecar.waitForLog(msg)).reason

  const expiring = await reasonOf('the certificate expires soon')
  expect(expiring).toContain(`the certificate in ${soon.certFile} expires on `)
  expect(await check(site)).toEqual({ line: `WARNING certificate: ${expiring}`, passed: true })

  serve(over)
  const expired = await reasonOf('the certificate has expired')
  expect(expired).toContain(`the certificate in ${over.certFile} expired on `)
  expect(await check(site)).toEqual({
    line: `FAILED  certificate: ${site.configFile}:1: listen.tls: ${expired}`,
    passed: false,
  })
  expect(await expiry()).toBe(Math.floor(past.notAfter.getTime() / 1000))
  // A client that does not check the certificate is served.
  expect((await sidecar.login()).status).toBe(200)

  serve(ec)
  expect(await reasonOf('the certificate is valid')).toContain(ec.certFile)
  expect(await check(site)).toMatchObject({ line: expect.stringMatching(/^ok /), passed: true })
  expect(await expiry()).toBeGreaterThan(Date.now() / 1000)
})

describe('The self-signed pair', () => {
  const BROKEN: readonly (readonly [
    what: string,
    files: () => { readonly cert?: string; readonly key?: string },
    says: RegExp,
  ])[] = [
    ['an empty key', () => ({ cert: ec.cert, key: '' }), /key\.pem is empty/],
    ['half a certificate', () => ({ cert: half(ec.cert), key: ec.key }), /cert\.pem is incomplete/],
    ['a key of another certificate', () => ({ cert: ec.cert, key: other.key }), /belongs to another/],
    ['no key', () => ({ cert: ec.cert }), /key\.pem is missing/],
    ['no certificate', () => ({ key: ec.key }), /cert\.pem is missing/],
  ]

  async function siteWith(files: { readonly cert?: string; readonly key?: string }): Promise<Site> {
    const site = await prepareSite({ transport: 'tls' })
    site.configure({ listen: { tls: 'auto' } })
    const folder = join(site.stateDir, 'tls')
    mkdirSync(folder, { recursive: true })
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, `${name}.pem`), content)
    return site
  }

  const contentsOf = (site: Site): ReadonlyMap<string, string> => {
    const folder = join(site.stateDir, 'tls')
    return new Map(
      readdirSync(folder).map((name) => [name.replace(/\d.*/, ''), readFileSync(join(folder, name), 'utf8')]),
    )
  }

  it.each(BROKEN)(
    'with %s, is set aside at the next start without loss, as `check` announces',
    async (_what, files, says) => {
      const site = await siteWith(files())
      const { line, passed } = await check(site)
      const [, reason] =
        /^WARNING certificate: (.*); a start sets this self-signed pair aside and makes another$/.exec(
          line,
        ) ?? []
      expect(line).toMatch(says)
      expect(passed).toBe(true)
      const before = Object.entries(files()).map(([name, content]) => [`${name}.pem`, content])
      expect(contentsOf(site)).toEqual(new Map(before as [string, string][]))

      const sidecar = await site.serveHere()
      expect((await sidecar.login()).status).toBe(200)
      const logged = await sidecar.waitForLog('self-signed certificate: unusable, set aside; making another')
      expect(logged).toMatchObject({ level: 50, reason })
      await sidecar.stop()
      const after = contentsOf(site)
      for (const [name, content] of before) expect(after.get(`${name}.broken-`)).toBe(content)
      expect(logged.names).toHaveLength(before.length)
      for (const name of logged.names as string[]) statSync(name)
      expect((await check(site)).line).toMatch(/^ok +certificate: self-signed, in /)
    },
  )

  it('is logged as set aside even if the start then fails', async () => {
    const taken = createServer()
    closeLater(() => void taken.close())
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const address = taken.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    const site = await siteWith({ cert: ec.cert, key: '' })
    site.configure({ listen: { address: `127.0.0.1:${address.port}` } })
    const failed = await site.postern('serve')
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining('EADDRINUSE')])
    expect(failed.stdout).toContain('self-signed certificate: unusable, set aside')
    const left = readdirSync(site.stateDir)
    expect(
      left.filter((name) => /\.sock$|-wal$/.test(name)),
      'a start that fails closes what it opened',
    ).toEqual([])
  })

  it('stays in place if it cannot be read: `serve` exits with 2 and `check` prints the same reason', async () => {
    const site = await siteWith({ cert: ec.cert })
    const key = join(site.stateDir, 'tls', 'key.pem')
    mkdirSync(key)
    const refused = await site.postern('serve')
    const [, reason] = /^postern serve: (.*); name the file in it\n$/.exec(refused.stderr) ?? []
    expect([refused.code, reason]).toEqual([2, expect.stringContaining(`cannot read ${key}: it is a folder`)])
    expect(await check(site)).toEqual({ line: `FAILED  certificate: ${reason}`, passed: false })
    expect(fileNamesIn(site)).toEqual(['cert.pem', 'key.pem'])
  })

  it('is still served after a reload that finds its file damaged, and no file is moved', async () => {
    const site = await siteWith({})
    const sidecar = await site.serveHere()
    const key = join(site.stateDir, 'tls', 'key.pem')
    writeFileSync(key, '')
    const names = fileNamesIn(site)
    sidecar.signal('SIGHUP')
    const { problems, level } = await sidecar.waitForLog(
      'configuration not reloaded: the previous one stays in effect',
    )
    expect(level).toBe(50)
    expect(String(problems)).toContain(
      `${key} is empty; a restart sets this self-signed pair aside and makes another`,
    )
    expect(await sidecar.metric('postern_config_reloads_total', 'result="failure"')).toBe(1)
    expect((await sidecar.login()).status).toBe(200)
    expect(fileNamesIn(site)).toEqual(names)
    // A reload replaces a pair that the operator has removed, as a start does.
    rmSync(join(site.stateDir, 'tls'), { recursive: true })
    sidecar.signal('SIGHUP')
    await sidecar.waitForLog('configuration reloaded')
    expect(fileNamesIn(site)).toEqual(['cert.pem', 'key.pem'])
    expect((await sidecar.login()).status).toBe(200)
  })

  function fileNamesIn(site: Site): readonly string[] {
    return readdirSync(join(site.stateDir, 'tls')).sort()
  }
})
