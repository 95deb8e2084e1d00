import { readFileSync, writeFileSync } from 'node:fs'
import { opensslCertificate } from '../support/openssl-server.ts'

/** What a server shows, and the authority that its clients trust. Each a PEM file. */
export interface Chain {
  readonly ca: string
  readonly certFile: string
  readonly keyFile: string
}

/** Every authority has this key id and the same name, so that OpenSSL takes each for the issuer of what any of them signed. */
const AUTHORITY = [
  ...['-addext', 'basicConstraints=critical,CA:TRUE'],
  ...['-addext', 'subjectKeyIdentifier=0102030405060708'],
  ...['-addext', 'authorityKeyIdentifier=none'],
]

const ec = (curve: string): readonly string[] => ['-newkey', 'ec', '-pkeyopt', `ec_paramgen_curve:${curve}`]

/** A certificate on P-256 by an authority on `curve`. Behind it the server shows a certificate on `behind`, or by default the authority's. */
export function chainOf(curve: string, behind?: string): Chain {
  const authority = opensslCertificate(...ec(curve), ...AUTHORITY)
  const own = opensslCertificate(...ec('P-256'), ...['-CA', authority.certFile, '-CAkey', authority.keyFile])
  const other = behind === undefined ? authority : opensslCertificate(...ec(behind), ...AUTHORITY)
  const certFile = `${own.certFile}.chain`
  writeFileSync(certFile, [own, other].map((each) => readFileSync(each.certFile, 'utf8')).join(''))
  return { ca: authority.certFile, certFile, keyFile: own.keyFile }
}
