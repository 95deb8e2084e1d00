import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { loadTlsMaterial, selfSignedPaths } from '../../src/listen/tls-material.ts'
import { systemClock } from '../../src/system/clock.ts'
import { machineNames } from '../../src/system/machine-names.ts'
import { temporaryFolder } from '../child.ts'

/** The paths of the PEM files. */
export interface CertificatePaths {
  readonly cert: string
  readonly key: string
}

/** Makes a certificate as Postern makes its own. */
export async function makeCertificate(): Promise<CertificatePaths> {
  const folder = await temporaryFolder()
  await loadTlsMaterial('auto', folder, { clock: systemClock, machine: machineNames })
  return selfSignedPaths(folder)
}

/** Writes certificate and key into one file, as HAProxy reads them. Resolves with its path. */
export async function writePem(pair: CertificatePaths): Promise<string> {
  const path = join(await temporaryFolder(), 'haproxy.pem')
  await writeFile(path, `${await readFile(pair.cert, 'utf8')}${await readFile(pair.key, 'utf8')}`)
  return path
}
