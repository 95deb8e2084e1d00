import { constants } from 'node:fs'
import { access, statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { controlSocketPath } from '../../admin/control-socket.ts'
import { describePlan, type MemoryPlan, planMemory } from '../../compose/memory.ts'
import { checkedByDevice, passwordSources } from '../../config/password-fields.ts'
import type { Config } from '../../config/schema.ts'
import { isLoopback } from '../../http/ip.ts'
import { remakeSelfSigned } from '../../listen/self-signed.ts'
import {
  findSelfSigned,
  isSelfSigned,
  readPair,
  selfSignedPaths,
  type TlsSetting,
} from '../../listen/tls-material.ts'
import { describeValidity, validityOf } from '../../listen/tls-pair.ts'
import { KINDS } from '../../overview/alarm-kinds.ts'
import { openPasswords } from '../../password/sources.ts'
import { systemClock } from '../../system/clock.ts'
import { socketLengthProblem } from '../../system/listen-address.ts'
import { explainPathError, presentPart } from '../../system/named-file.ts'
import { isBug, SetupError } from '../../system/setup-error.ts'
import { control } from '../control.ts'
import type { Status } from '../status.ts'
import { type Check, CheckFailure, type Finding } from './finding.ts'

export function passwordCheck(config: Config): Check {
  return {
    name: 'password source',
    key: 'password',
    meaning: 'serve does not start, because no client could get a token',
    remedy: 'correct the section password',
    run: async () =>
      checkedByDevice(config)
        ? 'the device, which checks the password of every grant'
        : readPasswords(passwordSources(config), (await planAsRunning(config)).limit),
  }
}

/** Rejects if `serve` could not use a file, if an account is locked, expired or gone, or if two names have the same password. */
async function readPasswords(sources: Parameters<typeof openPasswords>[0], limit: number): Promise<string> {
  const passwords = await openPasswords(sources, { clock: systemClock, memory: { limit, hold() {} } })
  const twins = await passwords.twins()
  const { absent } = passwords.state()
  passwords.close()
  if (absent !== undefined) {
    const { meaning, remedy } = KINDS.NoPassword
    throw new CheckFailure(absent, { meaning, remedy, exitCode: 1 })
  }
  if (twins.length === 0) return 'readable'
  throw new CheckFailure(`${twins.join(' and ')} have the same password`, {
    meaning: 'it logs nobody in, because it does not tell which name is meant',
    remedy: 'change one of them',
  })
}

/** How long the running sidecar may take to answer (ms). */
const ANSWERED_WITHIN = 2_000

/** Plans the memory by the bounds of the sidecar that runs on this `state_dir`, if there is one: its unit may give it less than this command has. */
async function planAsRunning(config: Config): Promise<MemoryPlan> {
  const asked = { method: 'GET', path: '/status' }
  const running = await control<Status>(config.stateDir, asked, ANSWERED_WITHIN).catch((error: unknown) => {
    if (error instanceof SetupError) return undefined
    throw error
  })
  return planMemory(config, running?.memory?.bounds)
}

/** Says what clients may hold, and which keys admit more than that. */
export function memoryCheck(config: Config): Check {
  return {
    name: 'memory',
    key: 'listen.memory',
    meaning: 'what clients hold is not bounded',
    remedy: 'set listen.memory',
    run: async () => describePlan(await planAsRunning(config)),
  }
}

export function stateCheck(config: Config): Check {
  return {
    name: 'state_dir',
    key: 'state_dir',
    meaning: 'a restart loses all tokens, and postern status and revoke do not work',
    remedy: 'make the folder writable for the user that runs Postern, or set state_dir to one that is',
    run: () => checkStateFolder(config),
  }
}

/**
 * Checks whether the state folder is usable. The exit code is 2 if a start would fail too, because it has to write a self-signed
 * pair there. Without its token file the sidecar still runs, from memory.
 */
async function checkStateFolder({ listen, stateDir }: Config): Promise<Finding> {
  const found = await checkFolder(resolve(stateDir)).catch(async (error: unknown) => {
    if (isBug(error)) throw error
    const { reason, remedy } = explainPathError(error, stateDir, 'write')
    const isFatal = isSelfSigned(listen.tls) && (await needsNewPair(stateDir))
    const meaning = isFatal ? 'serve does not start: it cannot store the self-signed certificate' : undefined
    throw new CheckFailure(reason, { meaning, remedy, exitCode: isFatal ? 2 : 1, cause: error })
  })
  const socket = controlSocketPath(stateDir)
  const tooLong = socketLengthProblem(socket)
  if (tooLong !== undefined) {
    throw new CheckFailure(`status, explain, issue and revoke will not work: ${socket} ${tooLong}`, {
      meaning: 'the kernel takes no longer path for a Unix socket',
      remedy: 'set state_dir to a shorter path',
    })
  }
  return found
}

/** Whether a start has to write a self-signed pair, because it is missing, broken or unreadable. */
async function needsNewPair(stateDir: string): Promise<boolean> {
  const found = await findSelfSigned(stateDir).catch((error: unknown) => {
    if (isBug(error)) throw error
    return 'missing' as const
  })
  return found === 'missing' || 'broken' in found
}

/** File systems of the kernel, which take no folder of a user, although they say that root may write: proc, sysfs, cgroup2. */
const KERNELS: ReadonlySet<number> = new Set([0x9fa0, 0x62656572, 0x63677270])

/**
 * Checks whether files can be created in a folder, without creating any. A start creates a missing folder. Rejects with the error
 * that a start would get.
 */
async function checkFolder(folder: string): Promise<Finding> {
  const { path: present, isFolder } = presentPart(folder)
  if (!isFolder) throw systemError(present === folder ? 'EEXIST' : 'ENOTDIR')
  await access(present, constants.W_OK | constants.X_OK)
  if (KERNELS.has((await statfs(present)).type)) throw systemError('ENOENT')
  if (present === folder) return `${folder} is writable`
  const parent = dirname(folder)
  if (present === parent) return `${folder} is created at the first start`
  return {
    warning: `${parent} does not exist`,
    meaning: 'the single executable is permitted to create the last folder of a path alone',
    remedy: `mkdir -p ${parent}`,
  }
}

function systemError(code: string): Error {
  return Object.assign(new Error(code), { code })
}

/** The password of the live page, or that the page is off. None for a page that users of this machine alone can open. */
export function pageChecks(config: Config): readonly Check[] {
  const { address, passwordFile } = config.admin
  if (address === 'off') return []
  if (passwordFile !== undefined) {
    return [
      {
        name: 'admin.password_file',
        key: 'admin.password_file',
        meaning: 'serve does not start: it cannot guard the live page',
        remedy: 'correct admin.password_file',
        run: async () =>
          readPasswords(
            [{ name: '', file: passwordFile, key: 'admin.password_file' }],
            (await planAsRunning(config)).limit,
          ),
      },
    ]
  }
  if (address.kind !== 'tcp' || isLoopback(address.host)) return []
  const run = async (): Promise<string> =>
    'off: admin.address is not on loopback, and admin.password_file is not set'
  const remedy = 'set admin.password_file'
  return [{ name: 'live page', key: 'admin.address', meaning: 'it answers 403 to every viewer', remedy, run }]
}

export function certificateCheck(config: Config): Check {
  return {
    name: 'certificate',
    key: 'listen.tls',
    meaning: 'serve does not start, and a running Postern keeps the certificate that it has',
    remedy: 'correct the file, or remove listen.tls for a self-signed certificate',
    run: () => checkCertificate(config),
  }
}

/** Creates no pair: a check writes nothing. */
async function checkCertificate({ listen: { tls }, stateDir }: Config): Promise<Finding> {
  if (tls === 'off') return 'off, the listener uses cleartext'
  const { cert } = isSelfSigned(tls) ? selfSignedPaths(stateDir) : tls
  const found = isSelfSigned(tls) ? await findSelfSigned(stateDir) : await readPair(tls)
  if (found === 'missing') return `self-signed, created at the first start in ${cert}`
  if ('broken' in found) {
    return {
      warning: `${found.broken}; a start sets this self-signed pair aside and makes another`,
      meaning: 'clients that trust the old certificate do not connect then',
      remedy: `restore the file, or give the clients the new ${cert} after the start`,
    }
  }
  const wall = systemClock.wall()
  const validity = validityOf(found.valid, wall)
  if (validity !== 'valid') {
    const sentence = describeValidity(found.valid, wall)
    const { meaning, remedy: setClock } = KINDS.PosternCertificateInvalid
    if (validity === 'not-yet-valid') throw new CheckFailure(sentence, { meaning, remedy: setClock })
    // Tried in memory. A start renews what Postern made.
    const renewable = isSelfSigned(tls) && remakeSelfSigned(found, found.names, wall, true) !== undefined
    const remedy = renewable ? 'start Postern, which renews it' : replacement(tls, cert)
    if (validity === 'expiring' || renewable) return { warning: sentence, meaning, remedy }
    throw new CheckFailure(sentence, { meaning, remedy })
  }
  if (found.names.length === 0) {
    return {
      warning: `${cert} has no names (subjectAltName)`,
      meaning: 'clients that check the certificate do not connect, whatever its common name is',
      remedy: 'renew it with the names and addresses by which clients reach Postern',
    }
  }
  const what = isSelfSigned(tls) ? `self-signed, in ${cert}` : `${cert} matches its key`
  return `${what}; for ${found.names.join(', ')}; valid until ${new Date(found.valid.until.at).toISOString()}`
}

function replacement(tls: TlsSetting, cert: string): string | undefined {
  return isSelfSigned(tls)
    ? `Postern did not make it: remove ${dirname(cert)} and start Postern, which makes a new one`
    : KINDS.PosternCertificateExpires.remedy
}
