import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generate } from 'selfsigned'
import { closeLater } from './cleanup.ts'

const HOUR = 3_600_000

/** Makes a directory that is removed with its contents when the test ends. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'postern-test-'))
  closeLater(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

export interface Certificate {
  /** PEM. */
  readonly cert: string
  readonly key: string
  /** The paths of files that hold the same. */
  readonly certFile: string
  readonly keyFile: string
}

export interface CertificateOptions {
  /** Default: EC on P-256. */
  readonly keyType?: 'ec' | 'rsa'
  /** Default: an hour ago, so that the certificate is also valid for a test clock that stopped before now. */
  readonly notBefore?: Date
  /** Default: a year after `notBefore`. */
  readonly notAfter?: Date
}

/** Makes a self-signed certificate for 127.0.0.1 and localhost. It is its own CA. */
export async function makeCertificate(
  commonName = 'postern test',
  { keyType = 'ec', notBefore = new Date(Date.now() - HOUR), notAfter }: CertificateOptions = {},
): Promise<Certificate> {
  const made = await generate([{ name: 'commonName', value: commonName }], {
    keyType,
    curve: 'P-256',
    notBeforeDate: notBefore,
    ...(notAfter === undefined ? {} : { notAfterDate: notAfter }),
    extensions: [
      { name: 'basicConstraints', cA: true },
      {
        name: 'subjectAltName',
        altNames: [
          { type: 2, value: 'localhost' },
          { type: 7, ip: '127.0.0.1' },
        ],
      },
    ],
  })
  // openssl ends a PEM file with a line end.
  const [cert, key] = [`${made.cert.trimEnd()}\n`, `${made.private.trimEnd()}\n`]
  const directory = temporaryDirectory()
  const certFile = join(directory, 'cert.pem')
  const keyFile = join(directory, 'key.pem')
  writeFileSync(certFile, cert)
  writeFileSync(keyFile, key)
  return { cert, key, certFile, keyFile }
}
