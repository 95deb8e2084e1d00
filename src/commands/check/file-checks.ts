import { constants, existsSync } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { controlSocketPath } from '../../admin/control-socket.ts'
import type { Config } from '../../config/schema.ts'
import { exposedSecrets } from '../../config/secrets.ts'
import { findSelfSigned, isSelfSigned } from '../../listen/tls-material.ts'
import { openPasswordSource } from '../../password/source.ts'
import type { PasswordSourceConfig } from '../../password/source-file.ts'
import { systemClock } from '../../system/clock.ts'
import { socketLengthProblem } from '../../system/listen-address.ts'
import { reasonOf } from '../../system/node-permission.ts'
import { isBug } from '../../system/setup-error.ts'
import { type Check, CheckFailure, type CheckResult, type Finding } from './finding.ts'

export function passwordCheck(config: Config): Check {
  return {
    name: 'password source',
    meaning: 'serve does not start, because no client could get a token',
    remedy:
      'postern hash-password > FILE writes one; the user that runs Postern has to be able to read the file and search its folder',
    run: () => checkPassword(config),
  }
}

async function checkPassword({ password }: Config): Promise<string> {
  if ('device' in password) return 'the device, which checks the password of every grant'
  return readPassword(password)
}

/** Rejects if `serve` could not use the file. */
export async function readPassword(password: PasswordSourceConfig): Promise<string> {
  const source = await openPasswordSource(password, {
    clock: systemClock,
    events: { changed() {}, unreadable() {}, restored() {} },
  })
  source.close()
  return 'readable'
}

export function stateCheck(config: Config): Check {
  return {
    name: 'state_dir',
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
    if (isBug(error) || !isSelfSigned(listen.tls) || !(await needsNewPair(stateDir))) throw error
    throw new CheckFailure(reasonOf(error), {
      meaning: 'serve does not start: it cannot store the self-signed certificate',
      exitCode: 2,
      cause: error,
    })
  })
  const socket = controlSocketPath(stateDir)
  const tooLong = socketLengthProblem(socket)
  if (tooLong !== undefined) {
    throw new CheckFailure(`status, explain and revoke will not work: ${socket} ${tooLong}`, {
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

/** Checks whether files can be created in a folder, without creating any. A start creates a missing folder. */
async function checkFolder(folder: string): Promise<Finding> {
  let present = folder
  while (!existsSync(present) && present !== dirname(present)) present = dirname(present)
  if (!(await stat(present)).isDirectory()) throw new Error(`${present} is not a folder`)
  await access(present, constants.W_OK | constants.X_OK)
  if (present === folder) return `${folder} is writable`
  const parent = dirname(folder)
  if (present === parent) return `${folder} is created at the first start`
  return {
    warning: `${parent} does not exist`,
    meaning: 'the single executable is permitted to create the last folder of a path alone',
    remedy: `mkdir -p ${parent}`,
  }
}

/** A warning for each file with a secret that is open to other users. */
export async function exposureWarnings(config: Config): Promise<readonly CheckResult[]> {
  return (await exposedSecrets(config)).map(({ key, file, reason, remedy }) => ({
    name: key,
    result: 'warning',
    message: `${file}: ${reason}`,
    meaning: 'accounts that do not need the file can read or replace it',
    remedy,
  }))
}
