import { constants, existsSync } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { controlSocketPath } from '../admin/control-socket.ts'
import { socketLengthProblem } from '../config/address.ts'
import type { Config } from '../config/schema.ts'
import { findSelfSigned } from '../listen/tls-material.ts'
import { reasonOf } from '../system/node-permission.ts'
import { isBug, SetupError } from '../system/setup-error.ts'

/**
 * Finds out whether the state folder can be used. Fails with `SetupError` where a start would fail as well: where it has to
 * write a self-signed pair. It does not fail for the token file, without which the sidecar serves from memory.
 */
export async function tryStateFolder({ listen, stateDir }: Config): Promise<string> {
  const found = await tryFolder(resolve(stateDir)).catch(async (error: unknown) => {
    if (isBug(error) || listen.tls !== 'auto' || !(await needsNewPair(stateDir))) throw error
    throw new SetupError(reasonOf(error), { cause: error })
  })
  const socket = controlSocketPath(stateDir)
  const tooLong = socketLengthProblem(socket)
  if (tooLong !== undefined) throw new Error(`status and revoke will not work: ${socket} ${tooLong}`)
  return found
}

/** Whether a start has to write a self-signed pair: there is none, or it is broken. */
async function needsNewPair(stateDir: string): Promise<boolean> {
  const found = await findSelfSigned(stateDir)
  return found === 'missing' || 'broken' in found
}

/** Finds out whether a Unix socket can be made at a path. Its folder has to exist, because a start does not make it. */
export async function trySocketFolder(path: string): Promise<string> {
  await access(dirname(path), constants.W_OK | constants.X_OK)
  const found = await stat(path).catch(() => undefined)
  if (found !== undefined && !found.isSocket()) throw new Error(`${path} exists and is not a socket`)
  return `${path} can be made`
}

/** Finds out whether files can be made in a folder, without making any. A start makes a missing folder in its parent. */
async function tryFolder(folder: string): Promise<string> {
  let present = folder
  while (!existsSync(present) && present !== dirname(present)) present = dirname(present)
  if (!(await stat(present)).isDirectory()) throw new Error(`${present} is not a folder`)
  await access(present, constants.W_OK | constants.X_OK)
  return present === folder ? `${folder} can be written` : `${folder} is made at the first start`
}
