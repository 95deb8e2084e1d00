import { existsSync } from 'node:fs'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import type { Clock } from '../system/clock.ts'
import { isWithheld, reasonOf } from '../system/node-permission.ts'
import { ensureFolder, setAside } from '../system/own-files.ts'
import type { PemFile } from '../system/pem.ts'
import { codeOf, SetupError } from '../system/setup-error.ts'
import { inspectPair, type TlsMaterial } from './tls-pair.ts'

interface PairPaths {
  readonly cert: string
  readonly key: string
}

export type TlsSetting = 'auto' | 'off' | PairPaths

/** The files of the self-signed pair of `tls: auto`. */
export function selfSignedPaths(stateDir: string): PairPaths {
  return { cert: join(stateDir, 'tls', 'cert.pem'), key: join(stateDir, 'tls', 'key.pem') }
}

/** What is needed to replace a broken self-signed pair. */
export interface Replacement {
  readonly clock: Clock
  /** Called after the files of the pair are renamed and before a new pair is created. */
  readonly onSetAside: (reason: string, names: readonly string[]) => void
}

/**
 * Reads the certificate and key of the public listener. For `auto` it creates a self-signed pair if there is none. Undefined for
 * cleartext. Rejects with `SetupError` if the pair is unusable. A pair of `auto` is replaced instead, if `replacement` is set.
 */
export async function loadTlsMaterial(
  setting: TlsSetting,
  stateDir: string,
  replacement?: Replacement,
): Promise<TlsMaterial | undefined> {
  if (setting === 'off') return undefined
  if (setting !== 'auto') return readPair(setting)
  const found = await findSelfSigned(stateDir)
  if (found === 'missing') return makeSelfSigned(stateDir)
  if (!('broken' in found)) return found
  if (replacement === undefined) {
    throw new SetupError(`${found.broken}; a restart sets this self-signed pair aside and makes another`)
  }
  const names = setPairAside(selfSignedPaths(stateDir), replacement.clock.wall())
  replacement.onSetAside(found.broken, names)
  return makeSelfSigned(stateDir)
}

/** Reads a pair that the operator provides. Rejects with `SetupError` if it is unusable. */
export async function readPair(paths: PairPaths): Promise<TlsMaterial> {
  const [cert, key] = [await readPem(paths.cert), await readPem(paths.key)]
  const material = inspectPair(cert, key)
  if (typeof material === 'string') throw new SetupError(material)
  return material
}

/** Reads the pair of `auto` and changes nothing. One file without the other is a broken pair. */
export async function findSelfSigned(
  stateDir: string,
): Promise<TlsMaterial | 'missing' | { readonly broken: string }> {
  const paths = selfSignedPaths(stateDir)
  const [cert, key] = [await readIfThere(paths.cert), await readIfThere(paths.key)]
  if (cert === undefined && key === undefined) return 'missing'
  if (cert === undefined) return { broken: `${paths.cert} is missing` }
  if (key === undefined) return { broken: `${paths.key} is missing` }
  const material = inspectPair(cert, key)
  return typeof material === 'string' ? { broken: material } : material
}

async function readPem(path: string): Promise<PemFile> {
  try {
    return { path, text: await readFile(path, 'utf8') }
  } catch (error) {
    throw new SetupError(`cannot read ${path}: ${reasonOf(error)}`, { cause: error })
  }
}

async function readIfThere(path: string): Promise<PemFile | undefined> {
  try {
    return await readPem(path)
  } catch (error) {
    if (error instanceof SetupError && codeOf(error.cause) === 'ENOENT') return undefined
    throw error
  }
}

/** Renames the files of a pair. They are not deleted, because the key may be in use elsewhere. */
function setPairAside({ cert, key }: PairPaths, wall: number): readonly string[] {
  try {
    return [cert, key].filter((path) => existsSync(path)).map((path) => setAside(path, 'broken', wall))
  } catch (error) {
    throw new SetupError(
      `cannot set the broken self-signed pair in ${dirname(cert)} aside: ${reasonOf(error)}`,
    )
  }
}

/** Ten years, so that an unattended device does not become unreachable because its certificate expires. */
const SELF_SIGNED_YEARS = 10

/** Clients whose clock is behind accept the certificate, and so does the sidecar after its own clock is set back. */
const BACKDATED_DAYS = 1

async function makeSelfSigned(stateDir: string): Promise<TlsMaterial> {
  const { generate } = await import('selfsigned')
  const notBeforeDate = new Date()
  notBeforeDate.setDate(notBeforeDate.getDate() - BACKDATED_DAYS)
  const notAfterDate = new Date()
  notAfterDate.setFullYear(notAfterDate.getFullYear() + SELF_SIGNED_YEARS)
  const name = hostname()
  const pair = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    algorithm: 'sha256',
    notBeforeDate,
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
    throw new SetupError(
      `cannot store the self-signed certificate in ${dirname(paths.cert)}: ${reasonOf(error)}`,
    )
  }
  return readPair(paths)
}

/**
 * Writes a new file and renames it, so that no start reads an incomplete key. Flushes it, so that a power failure leaves no empty
 * file. Under its permission model Node writes the file and then refuses the flush; that error is ignored.
 */
async function writePrivately(path: string, text: string): Promise<void> {
  const draft = `${path}.new`
  await writeFile(draft, text, { mode: 0o600, flush: true }).catch((error: unknown) => {
    if (!isWithheld(error)) throw error
  })
  await rename(draft, path)
}
