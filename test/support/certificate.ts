import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generate } from 'selfsigned'
import { closeLater } from './cleanup.ts'

const HOUR = 3_600_000

/** A new directory, removed with all in it when the test ends. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'postern-test-'))
  closeLater(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

export interface Certificate {
  /** PEM. */
  readonly cert: string
  readonly key: string
  /** The same in files. */
  readonly certFile: string
  readonly keyFile: string
}

export interface CertificateOptions {
  /** EC on P-256 unless told. */
  readonly keyType?: 'ec' | 'rsa'
  /** Unless told, an hour ago: a clock that stood still before the certificate was made finds it valid too. */
  readonly notBefore?: Date
  /** Unless told, a year later. */
  readonly notAfter?: Date
}

/** A self-signed certificate for 127.0.0.1 and localhost, which is its own CA. */
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
  // With the line end that openssl writes.
  const [cert, key] = [`${made.cert.trimEnd()}\n`, `${made.private.trimEnd()}\n`]
  const directory = temporaryDirectory()
  const certFile = join(directory, 'cert.pem')
  const keyFile = join(directory, 'key.pem')
  writeFileSync(certFile, cert)
  writeFileSync(keyFile, key)
  return { cert, key, certFile, keyFile }
}
