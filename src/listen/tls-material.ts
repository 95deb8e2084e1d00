import type { X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { canonicalHost } from '../http/ip.ts'
import type { Logger } from '../record/log.ts'
import type { Clock } from '../system/clock.ts'
import type { MachineNames } from '../system/machine-names.ts'
import { explainPathError, readNamedFile } from '../system/named-file.ts'
import { ensureFolder, setAside, writeFlushed } from '../system/own-files.ts'
import { certificatesIn, type PemFile } from '../system/pem.ts'
import { codeOf, reasonOf, SetupError } from '../system/setup-error.ts'
import { makeSelfSigned, remakeSelfSigned } from './self-signed.ts'
import { inspectPair, type TlsMaterial, validityOf } from './tls-pair.ts'

interface PairPaths {
  readonly cert: string
  readonly key: string
}

/** The value of `listen.tls`. `names`: a self-signed certificate for these names; `auto`: for the names of the machine. */
export type TlsSetting = 'auto' | 'off' | PairPaths | { readonly names: readonly string[] }

/** Whether the pair is one that Postern makes itself. */
export function isSelfSigned(setting: TlsSetting): setting is 'auto' | { readonly names: readonly string[] } {
  return setting === 'auto' || (setting !== 'off' && 'names' in setting)
}

export function selfSignedPaths(stateDir: string): PairPaths {
  return { cert: join(stateDir, 'tls', 'cert.pem'), key: join(stateDir, 'tls', 'key.pem') }
}

interface SelfSignedSources {
  readonly clock: Pick<Clock, 'wall'>
  readonly machine: () => MachineNames
  /** Logs that a pair was set aside or made: clients must trust a new pair before they connect. */
  readonly log?: Logger
  /** A broken pair is set aside and a new one made. Otherwise a broken pair is an error. */
  readonly replacesBroken?: boolean
}

/**
 * Reads the certificate and key of the public listener. Makes a self-signed pair if the setting asks for one and none exists. Undefined for
 * cleartext. Rejects with `SetupError` if the pair is unusable.
 */
export async function loadTlsMaterial(
  setting: TlsSetting,
  stateDir: string,
  { clock, machine, log, replacesBroken }: SelfSignedSources,
): Promise<TlsMaterial | undefined> {
  if (setting === 'off') return undefined
  if (!isSelfSigned(setting)) return readPair(setting)
  const found = await findSelfSigned(stateDir)
  if (found !== 'missing' && !('broken' in found)) return found
  if (found !== 'missing') {
    if (replacesBroken !== true) {
      throw new SetupError(`${found.broken}; a restart sets this self-signed pair aside and makes another`)
    }
    const names = setPairAside(selfSignedPaths(stateDir), clock.wall())
    const reason = found.broken
    log?.error({ reason, names }, 'self-signed certificate: unusable, set aside; making another')
  }
  const made = await makePair(stateDir, wantedNames(setting, machine), clock.wall())
  const { cert: file } = selfSignedPaths(stateDir)
  log?.info({ file, names: made.names }, 'self-signed certificate: made; clients trust this file')
  return made
}

/** A certificate that a sidecar serves, and its file. */
export interface KnownCertificate {
  readonly file: string
  readonly certificate: X509Certificate
}

/** Reads the certificate of the public listener, without its key. Rejects with `SetupError` if the file is missing or unusable. */
export async function readCertificate(setting: TlsSetting, stateDir: string): Promise<KnownCertificate> {
  const paths = setting === 'off' || isSelfSigned(setting) ? selfSignedPaths(stateDir) : setting
  const found = certificatesIn(await readPem(paths.cert, 'listen.tls.cert'))
  if (typeof found === 'string') throw new SetupError(found)
  return { file: paths.cert, certificate: found[0] }
}

const SELF_SIGNED = 'remove listen.tls for a self-signed certificate'
const CORRECT = `correct the files, or ${SELF_SIGNED}`

/** Reads a pair that the operator provides. Rejects with `SetupError` if it is unusable. */
export async function readPair(paths: PairPaths): Promise<TlsMaterial> {
  const [cert, key] = [
    await readPem(paths.cert, 'listen.tls.cert'),
    await readPem(paths.key, 'listen.tls.key'),
  ]
  const material = inspectPair(cert, key)
  if (typeof material === 'string') throw new SetupError(material, { key: 'listen.tls', remedy: CORRECT })
  return material
}

/** Reads the self-signed pair and changes nothing. One file without the other is a broken pair. */
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

async function readPem(path: string, key: string): Promise<PemFile> {
  const bytes = await readNamedFile(key, path, `correct the path, or ${SELF_SIGNED}`)
  return { path, text: bytes.toString('utf8') }
}

async function readIfThere(path: string): Promise<PemFile | undefined> {
  try {
    return await readPem(path, 'state_dir')
  } catch (error) {
    if (error instanceof SetupError && ['ENOENT', 'ENOTDIR'].includes(codeOf(error.cause))) return undefined
    throw error
  }
}

/** Renames the files of a pair and returns the new paths. They are not deleted, because the key may be in use elsewhere. */
function setPairAside({ cert, key }: PairPaths, wall: number): readonly string[] {
  try {
    return [cert, key].filter((path) => existsSync(path)).map((path) => setAside(path, 'broken', wall))
  } catch (error) {
    throw notWritten(`cannot set the broken self-signed pair in ${dirname(cert)} aside`, cert, error)
  }
}

async function makePair(stateDir: string, names: readonly string[], wall: number): Promise<TlsMaterial> {
  const paths = selfSignedPaths(stateDir)
  const pair = makeSelfSigned(hostname(), names, wall)
  try {
    ensureFolder(dirname(paths.key))
    await writePrivately(paths.key, pair.key)
    await writePrivately(paths.cert, pair.cert)
  } catch (error) {
    throw notWritten('cannot store the self-signed certificate', paths.cert, error)
  }
  return readPair(paths)
}

function notWritten(what: string, path: string, cause: unknown): SetupError {
  const { reason, remedy } = explainPathError(cause, dirname(path), 'write')
  return new SetupError(`${what}: ${reason}`, { key: 'state_dir', cause, remedy })
}

/** The names by which the machine reaches itself. They are in every self-signed certificate. */
const LOOPBACK = ['localhost', '127.0.0.1', '::1']

/** The most names in a self-signed certificate. Every handshake sends them. */
const MOST_NAMES = 100

/** The names for a self-signed certificate: loopback, and those of the setting or, for `auto`, of the machine. */
export function wantedNames(
  setting: 'auto' | { readonly names: readonly string[] },
  machine: () => MachineNames,
): readonly string[] {
  const names = setting === 'auto' ? machineNamesIn(machine()) : setting.names
  const canonical = [...LOOPBACK, ...names].flatMap((name) => canonicalHost(name) ?? [])
  return [...new Set(canonical)].slice(0, MOST_NAMES)
}

/** The names and addresses in a stable order, which the system does not promise. IPv4 addresses come first, because they are fewer. */
function machineNamesIn({ names, addresses }: MachineNames): readonly string[] {
  const canonical = addresses.flatMap((address) => canonicalHost(address) ?? [])
  const isIpv6 = (address: string): boolean => address.includes(':')
  const [ipv4, ipv6] = [canonical.filter((each) => !isIpv6(each)), canonical.filter(isIpv6)]
  return [...names, ...ipv4.toSorted(), ...ipv6.toSorted()]
}

/** The requirements on a self-signed certificate now. */
interface Upkeep {
  readonly wanted: readonly string[]
  /** An unwanted name is also a reason for a replacement. */
  readonly exact: boolean
  readonly wall: number
  readonly log: Logger
  /** Stores the new certificate. */
  readonly store: (made: TlsMaterial) => Promise<void>
}

/**
 * Replaces the self-signed certificate if it lacks a wanted name, has an unwanted one (only with `exact`), expires within 30 days or has
 * expired. Key and CA stay, so clients need not trust a new file.
 *
 * @returns the new pair; undefined if the certificate can stay; `foreign` if it is outdated but Postern did not make it
 */
export async function remakeIfOutdated(
  { names, valid, key, authority }: TlsMaterial,
  stateDir: string,
  { wanted, exact, wall, log, store }: Upkeep,
): Promise<TlsMaterial | 'foreign' | undefined> {
  const added = wanted.filter((name) => !names.includes(name))
  const removed = names.filter((name) => !wanted.includes(name))
  const renewed = ['expiring', 'expired'].includes(validityOf(valid, wall))
  if (!renewed && added.length === 0 && !(exact && removed.length > 0)) return undefined
  const text = remakeSelfSigned({ authority, key }, wanted, wall, renewed)
  if (text === undefined) return 'foreign'
  const paths = selfSignedPaths(stateDir)
  const made = inspectPair({ path: paths.cert, text }, { path: paths.key, text: key })
  if (typeof made === 'string') throw new TypeError(made)
  await store(made)
  log.info({ added, removed, renewed }, 'self-signed certificate: made anew, with the same key')
  return made
}

/** Replaces the file of the self-signed certificate atomically. Resolves with the reason of a failure, such as a full disk. */
export function storeSelfSigned({ cert }: TlsMaterial, stateDir: string): Promise<string | undefined> {
  return writePrivately(selfSignedPaths(stateDir).cert, cert).then(() => undefined, reasonOf)
}

/** Replaces a file in one step, so that no start reads an incomplete key. */
async function writePrivately(path: string, text: string): Promise<void> {
  const draft = writeFlushed(path, text)
  await rename(draft, path).catch(async (error: unknown) => {
    await rm(draft, { force: true })
    throw error
  })
}
