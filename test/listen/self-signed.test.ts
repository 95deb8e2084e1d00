import { execFileSync } from 'node:child_process'
import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeSelfSigned, remakeSelfSigned } from '../../src/listen/self-signed.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { needs } from '../support/tools.ts'

const DAY = 86_400_000
const WALL = Date.UTC(2026, 10, 25, 12)
const NAMES = ['localhost', '127.0.0.1', '::1', 'heizung.example']

/** The certificates of a file: that of the server, then that of the CA. */
function certificatesIn(pem: string): readonly [X509Certificate, X509Certificate] {
  const [server, authority, ...more] = pem.split(/(?<=-----END CERTIFICATE-----\n)/)
  expect(more).toEqual([])
  return [new X509Certificate(server ?? ''), new X509Certificate(authority ?? '')]
}

/** What OpenSSL reads in a certificate, without key, serial number and signature. */
function described(certificate: X509Certificate): string {
  const file = join(temporaryDirectory(), 'cert.pem')
  writeFileSync(file, certificate.toString())
  const hidden = 'no_header,no_version,no_serial,no_pubkey,no_sigdump,no_signame'
  const text = execFileSync('openssl', ['x509', '-in', file, '-noout', '-text', '-certopt', hidden], {
    encoding: 'utf8',
  })
  return text.replace(/(?:[0-9A-F]{2}:){19}[0-9A-F]{2}/g, '<key id>').replace(/^ +| +$/gm, '')
}

describe('H111 A self-signed pair', () => {
  it('has exactly these fields and extensions, as OpenSSL reads them', () => {
    needs('openssl')
    const { cert } = makeSelfSigned('heizung', NAMES, WALL)
    const [server, authority] = certificatesIn(cert)
    const period = [
      'Validity',
      'Not Before: Nov 24 12:00:00 2026 GMT',
      'Not After : Nov 25 12:00:00 2036 GMT',
    ]
    expect(described(server).trimEnd().split('\n')).toEqual([
      'Issuer: CN = Postern on heizung',
      ...period,
      'Subject: CN = Postern server certificate',
      'X509v3 extensions:',
      'X509v3 Basic Constraints: critical',
      'CA:FALSE',
      'X509v3 Key Usage: critical',
      'Digital Signature',
      'X509v3 Extended Key Usage:',
      'TLS Web Server Authentication',
      'X509v3 Subject Alternative Name:',
      'DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, DNS:heizung.example',
      'X509v3 Authority Key Identifier:',
      '<key id>',
      'X509v3 Subject Key Identifier:',
      '<key id>',
    ])
    expect(described(authority).trimEnd().split('\n')).toEqual([
      'Issuer: CN = Postern on heizung',
      ...period,
      'Subject: CN = Postern on heizung',
      'X509v3 extensions:',
      'X509v3 Basic Constraints: critical',
      'CA:TRUE, pathlen:0',
      'X509v3 Key Usage: critical',
      'Certificate Sign',
      'X509v3 Subject Key Identifier:',
      '<key id>',
    ])
  })

  it('says each use of a key without trailing zero bits, as DER demands (X.690 §11.2.2)', () => {
    const { cert } = makeSelfSigned('heizung', NAMES, WALL)
    const uses = certificatesIn(cert).map(
      ({ raw }) => /0603551d0f0101ff04(.{10})/.exec(raw.toString('hex'))?.[1],
    )
    expect(uses).toEqual(['0403020780', '0403020204'])
  })

  it('is read by Node with its names, its purpose, and one key that has signed both', async () => {
    const { cert, key } = makeSelfSigned('héizung', NAMES, WALL)
    const [server, authority] = certificatesIn(cert)
    expect(authority.subject).toBe('CN=Postern on héizung')
    expect(server.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1'])
    expect(NAMES.map((name) => server.checkHost(name) ?? server.checkIP(name))).toEqual([
      'localhost',
      '127.0.0.1',
      '::1',
      'heizung.example',
    ])
    expect([server.ca, authority.ca]).toEqual([false, true])
    expect(server.checkIssued(authority)).toBe(true)
    expect([server, authority].map((each) => each.verify(authority.publicKey))).toEqual([true, true])
    expect(server.publicKey.equals(authority.publicKey)).toBe(true)
    expect(server.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: 'prime256v1' })
    expect(key).toMatch(/^-----BEGIN PRIVATE KEY-----\n/)
    expect(server.serialNumber).not.toBe(authority.serialNumber)
    for (const { serialNumber } of [server, authority])
      expect(serialNumber.length).toBeGreaterThanOrEqual(2 * 8)
  })

  it('has a common name of at most 64 characters, and times in the form of their century', async () => {
    const { cert } = makeSelfSigned('x'.repeat(80), ['localhost'], Date.UTC(2045, 0, 1))
    const [server, authority] = certificatesIn(cert)
    expect(authority.subject).toHaveLength('CN='.length + 64)
    expect(server.validToDate).toEqual(new Date(Date.UTC(2055, 0, 1)))
  })

  it('made anew for other names keeps key, CA certificate and its bytes; renewed, the name and the earlier start', async () => {
    const { cert, key } = makeSelfSigned('heizung', NAMES, WALL)
    const [server, authority] = certificatesIn(cert)
    const material = { authority: authority.toString(), key }
    const again = remakeSelfSigned(material, ['other.example'], WALL + DAY, false)
    const [remade, same] = certificatesIn(again ?? '')
    expect(same.raw).toEqual(authority.raw)
    expect(remade.subjectAltName).toBe('DNS:other.example')
    expect(remade.checkIssued(authority)).toBe(true)
    expect(remade.validToDate).toEqual(server.validToDate)

    const later = remakeSelfSigned(material, NAMES, WALL + 3650 * DAY, true)
    const [renewed, renewedAuthority] = certificatesIn(later ?? '')
    expect(renewedAuthority.subject).toBe(authority.subject)
    expect(renewedAuthority.validFromDate).toEqual(authority.validFromDate)
    expect(renewedAuthority.validToDate.getUTCFullYear()).toBe(2046)
    expect(renewed.verify(authority.publicKey)).toBe(true)
  })

  it('of another curve was not made by Postern', async () => {
    const { cert } = makeSelfSigned('heizung', NAMES, WALL)
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'secp384r1' })
    const material = { authority: cert, key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })) }
    expect(remakeSelfSigned(material, NAMES, WALL, false)).toBeUndefined()
  })
})
