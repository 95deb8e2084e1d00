import { readFile, rename, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { createSecureContext } from 'node:tls'
import { ensureFolder } from '../http/ensure-folder.ts'
import { reasonOf } from '../http/node-permission.ts'

/** A certificate chain and its key, both PEM. */
export interface TlsMaterial {
  readonly cert: string
  readonly key: string
}

export type TlsSetting = 'auto' | 'off' | { readonly cert: string; readonly key: string }

/** The certificate or key cannot be used; the message names the file and the reason, never the content. */
export class TlsMaterialError extends Error {
  override readonly name = 'TlsMaterialError'
}

/** Where the self-signed pair of `tls: auto` lives. */
export function selfSignedPaths(stateDir: string): { readonly cert: string; readonly key: string } {
  return { cert: join(stateDir, 'tls', 'cert.pem'), key: join(stateDir, 'tls', 'key.pem') }
}

/** Reads, and for `auto` makes at first start, what the public listener serves. Undefined for cleartext. */
export async function loadTlsMaterial(
  setting: TlsSetting,
  stateDir: string,
): Promise<TlsMaterial | undefined> {
  if (setting === 'off') return undefined
  if (setting !== 'auto') return readMaterial(setting)
  const paths = selfSignedPaths(stateDir)
  try {
    return await readMaterial(paths)
  } catch (error) {
    if (!(error instanceof TlsMaterialError) || !isMissing(error.cause)) throw error
    return makeSelfSigned(stateDir)
  }
}

async function readMaterial(paths: { readonly cert: string; readonly key: string }): Promise<TlsMaterial> {
  const material = { cert: await readPem(paths.cert), key: await readPem(paths.key) }
  try {
    createSecureContext(material)
  } catch (error) {
    throw new TlsMaterialError(`${paths.cert} and ${paths.key} do not make a usable pair: ${reasonOf(error)}`)
  }
  return material
}

async function readPem(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new TlsMaterialError(`cannot read ${path}: ${reasonOf(error)}`, { cause: error })
  }
}

function isMissing(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === 'ENOENT'
}

/** Ten years: a device that nobody touches must not fall silent because its own certificate ran out. */
const SELF_SIGNED_YEARS = 10

async function makeSelfSigned(stateDir: string): Promise<TlsMaterial> {
  const { generate } = await import('selfsigned')
  const notAfterDate = new Date()
  notAfterDate.setFullYear(notAfterDate.getFullYear() + SELF_SIGNED_YEARS)
  const name = hostname()
  const pair = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    algorithm: 'sha256',
    notAfterDate,
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', digitalSignature: true, keyCertSign: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      {
        name: 'subjectAltName',
        altNames: [
          { type: 2, value: 'localhost' },
          { type: 2, value: name },
          { type: 7, ip: '127.0.0.1' },
          { type: 7, ip: '::1' },
        ],
      },
    ],
  })
  const paths = selfSignedPaths(stateDir)
  try {
    ensureFolder(dirname(paths.key))
    await writePrivately(paths.key, pair.private)
    await writePrivately(paths.cert, pair.cert)
  } catch (error) {
    throw new TlsMaterialError(
      `cannot keep the self-signed certificate in ${dirname(paths.cert)}: ${reasonOf(error)}`,
    )
  }
  return { cert: pair.cert, key: pair.private }
}

/** Written beside and renamed, so that no start ever reads half a key. */
async function writePrivately(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text, { mode: 0o600 })
  await rename(`${path}.new`, path)
}
